"""The loop without Lightning takes the very steps of `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import random_batch
from skipstone import PCODE, RNN, InvalidInput, Recipe, calibrate, fit
from skipstone.training.in_memory import train_in_memory
from skipstone.training.objective import Objective

DATA = random_batch(0, [9, 12, 7, 10] * 8, irregular=False, dtype=torch.float32)


@pytest.mark.parametrize("kind", [PCODE, RNN])
@pytest.mark.parametrize("horizon", [None, 4])
def test_weights_are_those_of_fit(kind: Any, horizon: int | None, tmp_path: Path) -> None:
    recipe = Recipe(steps=7, batch_size=8, validate_every=7, noise=0.1)
    models = []
    for _ in range(2):
        torch.manual_seed(1)
        models.append(kind.for_data(DATA, hidden=8))
    fitted, plain = models
    kept = DATA[:2]
    fit(
        fitted, DATA, kept, folder=tmp_path, recipe=recipe, seed=3, horizon=horizon,
        progress=False, device="cpu",
    )  # fmt: skip
    calibrate(plain, kept)
    window = None if horizon is None else plain.config.num_context + horizon
    train_in_memory(plain, Objective(DATA, recipe, 3, window))
    for name, weight in fitted.state_dict().items():
        assert torch.equal(weight, plain.state_dict()[name]), name
    assert not plain.training
    assert plain.calibration is None


def test_a_loss_that_diverges_is_said() -> None:
    recipe = Recipe(steps=200, batch_size=8, learning_rate=1e6, gradient_clip=0)
    model = RNN.for_data(DATA, hidden=8)
    with pytest.raises(InvalidInput, match="a loss must be finite and not diverge; at step"):
        train_in_memory(model, Objective(DATA, recipe, 0))
