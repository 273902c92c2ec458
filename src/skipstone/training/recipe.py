"""How to train: budget, optimiser and schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch

from skipstone.errors import as_plain, require_choice, require_number
from skipstone.training.soap import SOAP

SETTLED = 0.6
"""Share of the steps after which tolerance and noise have their final values."""

LONGEST, _LARGEST_BATCH = 10**9, 10**6
"""Steps of a training, and sequences of one of them: more would not end, or not fit anywhere."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training budget and schedule, the same for every model that is to be compared."""

    steps: int = 6_000
    """Gradient steps."""

    batch_size: int = 64
    """Sequences per step, over all devices together."""

    optimizer: str = "soap"
    """`soap` is Adam in the eigenbasis of the gradients' second moments, which takes far
    fewer steps to the same error; `adam` is the paper's."""

    learning_rate: float = 6e-3
    """Peak of the learning rate."""

    schedule: str = "one-cycle"
    """`one-cycle` warms up over the first 30 % and falls to nearly nothing by a cosine;
    `decay` multiplies by 0.9 every 5,000 steps, as in the paper."""

    gradient_clip: float = 1.0
    """Largest norm of a gradient; 0 for no limit."""

    noise: float = 0.0
    """Standard deviation of noise on the encoder's input at the start, as a share of the data's. A
    model that has only seen true observations trusts its own predictions too much; with noise its
    rollouts drift much less. The noise falls evenly and is gone after 60 % of the steps: later it
    would keep predictions from becoming exact."""

    validate_every: int = 500
    """Steps between two validations, which are also when the best weights are kept."""

    patience: int = 0
    """Validations without improvement after which training stops early; 0 to train to the end."""

    checkpoint_every: int = 250
    """Steps between two checkpoints: the most that a kill can lose."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, as_plain(getattr(self, field.name)))
        for name in ("steps", "validate_every", "checkpoint_every"):
            require_number(name, getattr(self, name), 1, most=LONGEST, whole=True)
        require_number("batch_size", self.batch_size, 1, most=_LARGEST_BATCH, whole=True)
        require_number("patience", self.patience, 0, most=LONGEST, whole=True)
        require_number("gradient_clip", self.gradient_clip, 0)
        require_number("noise", self.noise, 0)
        require_number("learning_rate", self.learning_rate, above=0)
        require_choice("optimizer", self.optimizer, OPTIMIZERS)
        require_choice("schedule", self.schedule, _SCHEDULES)

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, a function of its number alone."""
        return self.learning_rate * _SCHEDULES[self.schedule](step, self.steps)

    def progress_at(self, step: int) -> float:
        """Share of the annealing that is done by a step."""
        return min(1.0, step / (SETTLED * self.steps))

    def noise_at(self, step: int) -> float:
        """The noise of a step, on its way to none."""
        return self.noise * (1 - self.progress_at(step))

    @property
    def settled_from(self) -> int:
        """The step from which everything has its final value. Only weights from there on compete
        for the best."""
        return math.ceil(SETTLED * self.steps)


def _one_cycle(step: int, steps: int) -> float:
    rise = 0.3 * steps
    if step < rise:
        low, high, progress = 0.04, 1.0, step / rise
    else:
        low, high, progress = 1.0, 1e-4, (step - rise) / max(1.0, steps - 1 - rise)
    return low + (high - low) * (1 - math.cos(math.pi * min(1.0, progress))) / 2


def _decay(step: int, steps: int) -> float:
    return 0.9 ** (step // 5_000)


_SCHEDULES = {"one-cycle": _one_cycle, "decay": _decay}

OPTIMIZERS = {"soap": SOAP, "adam": torch.optim.Adam}
"""By name; each takes parameters and a learning rate."""
