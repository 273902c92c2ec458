"""What a training step takes and gives: draws, knots and losses."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.models.typing import BatchMask, BatchTimes, BatchValues
from skipstone.sequences import Sequences


@dataclass(frozen=True)
class Knots:
    """The observations of a batch at which the cell updates."""

    at: BatchMask
    """True where a segment begins. Never at a row's last observation: nothing follows it."""

    cut: BatchMask
    """True at the start of segments that the end of the data or a change of control cut short, so
    that their length is only a lower bound."""

    @property
    def count(self) -> Int[Tensor, " batch"]:
        """Number of knots of each row."""
        return self.at.sum(1)


@dataclass(frozen=True)
class Draws:
    """What training brings to one step. A model ignores what it does not need."""

    progress: float = 1.0
    """Share of the annealing that is done; at 1 every setting has its final value."""

    noise: BatchValues | None = None
    """Added to what the encoder is shown. Targets stay clean."""

    uniform: Callable[[str], BatchTimes] | None = None
    """Random numbers in [0, 1) for a named purpose, one per observation; None for no chance."""

    knots: Knots | None = None
    """Where segments begin, instead of searching; from `find_knots`."""

    @classmethod
    def seeded(cls, batch: Sequences, *seed: int, progress: float = 1.0) -> Draws:
        """Draws for a training loop of your own: `Draws.seeded(batch, step)`."""

        def uniform(purpose: str) -> Tensor:
            rng = np.random.default_rng([*seed, zlib.crc32(purpose.encode())])
            return torch.as_tensor(rng.random(batch.times.shape))

        return cls(progress=progress, uniform=uniform)

    def shown(self, values: BatchValues) -> BatchValues:
        """The values as the encoder is shown them."""
        return values if self.noise is None else values + self.noise

    def happens(self, purpose: str, chance: float, batch: Sequences) -> BatchMask:
        """Bernoulli mask, sampled for all observations up front."""
        if self.uniform is None or chance == 0:
            return torch.zeros_like(batch.mask)
        return (self.uniform(purpose) < chance).to(batch.mask.device)


@dataclass(frozen=True)
class Losses:
    """A training loss and what it is made of."""

    total: Float[Tensor, ""]
    """What to minimise."""

    prediction: Float[Tensor, ""]
    """Mean squared error of the predictions after the context, in scaled units."""

    predicted: BatchValues
    """The predictions, laid out like the batch, in scaled units, without gradient; NaN where
    nothing was predicted."""

    num_points: int
    """Observations that `prediction` is a mean over."""

    mean_step: float
    """Mean time between two cell updates after the context, in the model's unit of time; of a
    model that searches its segments, as the search would have it."""

    num_updates: int
    """Cell updates of the batch, context included."""

    step: Float[Tensor, ""] | float = 0.0
    """Mean squared error of predicted step sizes; 0 for models that predict none."""

    step_weight: float = 0.0
    """Weight of `step` in the total."""

    num_steps: int = 0
    """Step sizes that `step` is a mean of."""
