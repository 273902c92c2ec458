"""A training loop without Lightning and without a folder, for models inside other tools."""

from __future__ import annotations

from typing import Any

import torch

from skipstone.models.base import Model
from skipstone.training.objective import Objective, check_loss
from skipstone.training.recipe import OPTIMIZERS


def train_in_memory(model: Model[Any], objective: Objective) -> None:
    """Take all steps of the objective's recipe. The model ends with its last weights, in evaluation
    mode and without a calibration.

    Nothing is validated, kept or resumed: that is what `fit` is for. The steps are those of `fit`.
    """
    recipe = objective.recipe
    model.calibration = None  # Of other weights.
    model.train()
    optimizer = OPTIMIZERS[recipe.optimizer](model.parameters(), lr=recipe.learning_rate)
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate_at(step)
        losses = objective.losses(model, step)
        check_loss(losses, step, lambda: "No weights were kept.")
        optimizer.zero_grad()
        losses.total.backward()
        if recipe.gradient_clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clip)
        optimizer.step()
        model.adapt(losses)
    model.eval()
