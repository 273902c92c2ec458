"""Checkpoints: they come back exactly, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skipstone.errors import InvalidInput
from skipstone.models.tensors import read_tensors, write_tensors
from skipstone.training.schemas import MetricsRecord
from skipstone.training.soap import SOAP
from skipstone.training.state import TrainingState, load_checkpoint, save_checkpoint

ROW = dict.fromkeys(MetricsRecord.__struct_fields__, 1.0)


def trained(units: int = 3) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(units, 2)
    optimizer = SOAP(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, units)).square().mean().backward()
        optimizer.step()
    return model, optimizer


def saved(path: Path, **numbers: Any) -> tuple[nn.Module, torch.optim.Optimizer]:
    model, optimizer = trained()
    state = TrainingState(step=2, **numbers)
    state.best_weights = {"weight": torch.ones(2, 3), "bias": torch.ones(2)}
    save_checkpoint(path, state, model, optimizer, "this")
    return model, optimizer


def test_a_checkpoint_comes_back_exactly_also_what_json_lacks(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    row = {**ROW, "validation_error": math.inf, "training_loss": math.nan}
    model, optimizer = saved(path, rows=[row], wall_seconds=1.5)
    torch.manual_seed(5)
    other = nn.Linear(3, 2)
    again = SOAP(other.parameters(), lr=0.1)
    state = load_checkpoint(path, other, again, "this")
    assert (state.step, state.best_error, state.wall_seconds) == (2, math.inf, 1.5)
    assert math.isnan(state.recent_loss)
    assert str(state.rows) == str([row])
    assert torch.equal(state.best_weights["weight"], torch.ones(2, 3))
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)
    before, after = (each.state_dict()["state"] for each in (optimizer, again))
    for index, moments in before.items():
        for name, value in moments.items():
            if isinstance(value, Tensor):
                assert torch.equal(value, after[index][name])


def test_a_flipped_bit_is_not_trained_on(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    saved(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="its checksum differs"):
        load_checkpoint(path, *trained(), "this")


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    saved(path)
    with pytest.raises(InvalidInput, match="must be of the training beside it; it is of another"):
        load_checkpoint(path, *trained(), "that")
    with pytest.raises(InvalidInput, match="must hold the weights and the optimiser"):
        load_checkpoint(path, *trained(units=5), "this")
    tensors, notes = read_tensors(path)
    for progress, message in [
        ("", "must be JSON"),
        ("{}", "missing required field `step`"),
        (notes["progress"].replace("2", '"2"', 1), "step: expected `int`, got `str`"),
    ]:
        write_tensors(path, tensors, {**notes, "progress": progress})
        with pytest.raises(InvalidInput, match=message):
            load_checkpoint(path, *trained(), "this")
    write_tensors(path, {**tensors, "best.weight": torch.ones(1)}, notes)
    with pytest.raises(InvalidInput, match="the best weights are not those of its model"):
        load_checkpoint(path, *trained(), "this")
    mean = "optimizer.1.mean"
    for odd in ({mean: tensors[mean][0]}, {"optimizer.1.more": torch.ones(1)}):
        write_tensors(path, {**tensors, **odd}, notes)
        with pytest.raises(InvalidInput, match="is not what that keeps"):
            load_checkpoint(path, *trained(), "this")
    write_tensors(path, {**tensors, "optimizer.x.right": torch.ones(1)}, notes)
    with pytest.raises(InvalidInput, match="must hold the weights and the optimiser"):
        load_checkpoint(path, *trained(), "this")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": [{**ROW, "step": "x"}]}, r"rows\[0\]\.step: invalid enum value"),
        ({"rows": [ROW, {**ROW, "more": 1.0}]}, "object contains unknown field `more`"),
        ({"rows": [{k: v for k, v in ROW.items() if k != "learning_rate"}]}, "`learning_rate`"),
        ({"step": -1}, "step: expected `int` >= 0"),
        ({"best_step": 10**30}, "best_step: "),
        ({"stale": 2.5}, "stale: expected `int`, got `float`"),
        ({"wall_seconds": -1.0}, "wall_seconds: expected `float` >= 0"),
        ({"best_weights": {}}, "object contains unknown field `best_weights`"),
    ],
)
def test_progress_that_no_training_makes_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    """Under a checksum that is right, as a stranger could write it."""
    path = tmp_path / "checkpoint.safetensors"
    saved(path, rows=[ROW])
    load_checkpoint(path, *trained(), "this")
    tensors, notes = read_tensors(path)
    progress = json.dumps({**json.loads(notes["progress"]), **changed})
    write_tensors(path, tensors, {**notes, "progress": progress})
    with pytest.raises(InvalidInput, match=message):
        load_checkpoint(path, *trained(), "this")
