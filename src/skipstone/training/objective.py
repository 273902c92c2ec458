"""One training step's batch and loss, as functions of seed and step alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.models.base import Losses, Model
from skipstone.models.pcode import PCODE, STEP_LOSS_WEIGHTS
from skipstone.sequences import Sequences
from skipstone.training.recipe import Recipe

# What a stream of random numbers is for; each has its own.
_ORDER, _EXPLORE, _NOISE, _OWN_STEPS = 0, 1, 2, 3


@dataclass(frozen=True)
class Objective:
    """What to minimise: data, recipe, tolerance and seed."""

    train: Sequences
    recipe: Recipe
    tolerance: float | None
    """Final tolerance; None for models without one."""
    seed: int

    @cached_property
    def variance(self) -> float:
        """Variance of the training data, averaged over features; of a part, if there are many."""
        values = self.train[:1000].to(dtype=torch.float32)
        return float(values.values[values.mask].var(0, correction=0).mean())

    def rows(self, step: int) -> Int[Tensor, " rows"]:
        """The sequences of a step: every epoch is a new permutation, cut into batches."""
        size, count = min(self.recipe.batch_size, len(self.train)), len(self.train)
        first = step * size
        epochs = range(first // count, (first + size - 1) // count + 1)
        order = np.concatenate([self._random(_ORDER, epoch).permutation(count) for epoch in epochs])
        start = first - epochs[0] * count
        return torch.as_tensor(order[start : start + size])

    def losses(self, model: Model[Any], step: int, rank: int = 0, ranks: int = 1) -> Losses:
        """The losses of a step, or of one process's share of it.

        Shares interleave, and noise and exploration are drawn for the whole batch first: together
        the processes do exactly what one would.
        """
        rows = self.rows(step)
        share = slice(rank, None, ranks)
        weight = next(model.parameters())
        batch = self.train[rows[share]].to(weight.device, weight.dtype)
        shape, width = (len(rows), self.train.times.shape[1]), batch.times.shape[1]
        seen, level = None, self.recipe.noise_at(step)
        if level:
            draws = self._random(_NOISE, step).standard_normal((*shape, batch.dim), np.float32)
            noise = torch.as_tensor(draws[share, :width]).to(batch.values)
            seen = batch.values + level * self.variance**0.5 * noise
        if not isinstance(model, PCODE):
            return model.loss(batch, seen=seen)
        assert self.tolerance is not None

        def drawn(stream: int, chance: float) -> Tensor:
            return torch.as_tensor(self._random(stream, step).random(shape) < chance)[share, :width]

        tolerance = self.recipe.tolerance_at(step, self.tolerance, self.variance)
        return model.loss(
            batch,
            tolerance,
            explore=drawn(_EXPLORE, self.recipe.explore),
            own_steps=drawn(_OWN_STEPS, self.recipe.own_steps),
            overshoot=self.recipe.overshoot,
            step_loss=self.recipe.step_loss,
            seen=seen,
        )

    def _random(self, stream: int, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream, number])


def share_of_mean(
    losses: Losses, counts: Int[Tensor, " two"], ranks: int, step_loss: str
) -> Float[Tensor, ""]:
    """A process's loss, scaled so that the mean over processes is the loss of the whole batch.

    `counts` are the predicted observations and the step sizes of all processes together.
    """
    points, steps = counts.to(losses.total.dtype).clamp(min=1)
    points = losses.errors.isfinite().sum() * ranks / points
    steps = losses.num_steps * ranks / steps
    weighted = STEP_LOSS_WEIGHTS[step_loss] * losses.step
    return points * (losses.total - weighted) + steps * weighted
