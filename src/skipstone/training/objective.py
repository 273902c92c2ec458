"""One training step's batch, draws and losses, as functions of seed and step alone."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.models.base import Model
from skipstone.models.learning import Draws, Losses
from skipstone.sequences import Sequences
from skipstone.training.recipe import Recipe


@dataclass(frozen=True)
class Objective:
    """What to minimise: data, recipe and seed."""

    train: Sequences
    recipe: Recipe
    seed: int

    def rows(self, step: int) -> Int[Tensor, " rows"]:
        """The sequences of a step: every epoch is a new permutation, cut into batches."""
        size, count = min(self.recipe.batch_size, len(self.train)), len(self.train)
        first = step * size
        epochs = range(first // count, (first + size - 1) // count + 1)
        order = np.concatenate([self._rng("order", epoch).permutation(count) for epoch in epochs])
        start = first - epochs[0] * count
        return torch.as_tensor(order[start : start + size])

    def losses(self, model: Model[Any], step: int, rank: int = 0, ranks: int = 1) -> Losses:
        """The losses of a step, or of one process's share of it.

        Shares interleave, and everything random is drawn for the whole batch first: together the
        processes do exactly what one would.
        """
        rows = self.rows(step)
        share = slice(rank, None, ranks)
        weight = next(model.parameters())
        batch = self.train[rows[share]].to(weight.device, weight.dtype)
        shape, width = (len(rows), self.train.times.shape[1]), batch.times.shape[1]

        def uniform(purpose: str) -> Float[Tensor, "batch time"]:
            drawn = self._rng(purpose, step).random(shape)
            return torch.as_tensor(drawn[share, :width])

        noise, level = None, self.recipe.noise_at(step)
        if level:
            drawn = self._rng("noise", step).standard_normal((*shape, batch.dim), np.float32)
            noise = torch.as_tensor(drawn[share, :width]).to(batch.values)
            noise = level * noise
        return model.loss(batch, Draws(self.recipe.progress_at(step), noise, uniform))

    def _rng(self, purpose: str, number: int) -> np.random.Generator:
        """A stream of random numbers for each purpose."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode()), number])


def share_of_mean(losses: Losses, counts: Int[Tensor, " two"], ranks: int) -> Float[Tensor, ""]:
    """A process's loss, scaled so that the mean over processes is the loss of the whole batch.

    `counts` are the predicted observations and the step sizes of all processes together.
    """
    points, steps = counts.to(losses.total.dtype).clamp(min=1)
    points = losses.num_points * ranks / points
    steps = losses.num_steps * ranks / steps
    weighted = losses.step_weight * losses.step
    return points * (losses.total - weighted) + steps * weighted
