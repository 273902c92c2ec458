"""Checkpoints: they come back exactly, and nothing else is taken for one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skipstone.errors import InvalidInput
from skipstone.models.tensors import read_tensors, write_tensors
from skipstone.training.soap import SOAP
from skipstone.training.state import TrainingState, load_checkpoint, save_checkpoint


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
    state.best_weights = {"weight": torch.ones(2, 3)}
    save_checkpoint(path, state, model, optimizer, "this")
    return model, optimizer


def test_a_checkpoint_comes_back_exactly_also_what_json_lacks(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    row = {"step": 1.0, "validation_error": math.inf, "training_loss": math.nan}
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
    write_tensors(path, {**tensors, "optimizer.x.right": torch.ones(1)}, notes)
    with pytest.raises(InvalidInput, match="must hold the weights and the optimiser"):
        load_checkpoint(path, *trained(), "this")
