"""One training step's batch, draws and losses, as functions of seed and step alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import Model
from skipstone.models.learning import Draws, Losses
from skipstone.sequences import Sequences
from skipstone.training.cuts import Cuts
from skipstone.training.recipe import Recipe

DIVERGED = 1e4
"""Loss, in scaled units, from which a training counts as lost."""


@dataclass(frozen=True)
class Objective:
    """What to minimise: data, recipe and seed."""

    train: Sequences
    recipe: Recipe
    seed: int
    window: int | None = None
    """Observations of the windows to train on; None for whole sequences."""

    @cached_property
    def cuts(self) -> Cuts:
        """The windows of an epoch, or the sequences."""
        return Cuts.of(self.train, self.window)

    @property
    def size(self) -> int:
        """Sequences or windows of a step; never more than there are different ones."""
        return min(self.recipe.batch_size, self.cuts.distinct)

    def rows(self, step: int) -> Int[np.ndarray, "two rows"]:
        """The windows of a step, and their epochs: each epoch is a new permutation of all, cut into
        batches."""
        size, count = self.size, len(self.cuts)
        first = step * size
        epochs = range(first // count, (first + size - 1) // count + 1)
        order = np.concatenate([self._rng("order", epoch).permutation(count) for epoch in epochs])
        start = first - epochs[0] * count
        return np.stack([order, np.repeat(epochs, count)])[:, start : start + size]

    def batch(self, step: int, share: slice = slice(None)) -> Sequences:
        """The sequences of a step, or one process's share; windows are drawn anew each epoch."""
        rows, epochs = self.rows(step)[:, share]
        if self.window is None:
            return self.train[rows]
        chance = np.zeros(len(rows))
        for epoch in np.unique(epochs):
            drawn = self._rng("window", int(epoch)).random(len(self.cuts))
            chance[epochs == epoch] = drawn[rows[epochs == epoch]]
        return self.cuts.take(rows, chance)

    def losses(self, model: Model[Any], step: int, rank: int = 0, ranks: int = 1) -> Losses:
        """The losses of a step, or of one process's share of it.

        Shares interleave, and everything random is drawn for the whole batch first: together the
        processes do exactly what one would.
        """
        share = slice(rank, None, ranks)
        weight = next(model.parameters())
        batch = self.batch(step, share).to(weight.device, weight.dtype)
        shape, width = (self.size, self.cuts.width), batch.times.shape[1]

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


def check_loss(losses: Losses, step: int, kept: Callable[[], str]) -> None:
    """Raise if a loss is not finite, or beyond `DIVERGED`; `kept` says what is left to use."""
    loss = float(losses.total.detach())
    if loss <= DIVERGED:
        return
    raise InvalidInput(
        f"a loss must be finite and not diverge; at step {step} it is {loss:g}, with data "
        f'scaled to size one. {kept()} Try a lower learning rate, or scaling="robust" if a few '
        "values are far from all others."
    )
