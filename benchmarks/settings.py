"""Sizes of the benchmark: the ones that count, and tiny ones that show that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How large everything is, and how often it is repeated."""

    batch: int = 256
    """Sequences of a training step."""

    small_batch: int = 64
    """The same for small batches, which is what presets have."""

    long: int = 8000
    """Observations of one long sequence."""

    many: int = 1000
    """Sequences of a large rollout, and candidates of a planner."""

    observations: int = 45
    """Length of a sequence, its context included."""

    dim: int = 4
    """Features of an observation: two balls on a plane."""

    hidden: int = 128
    """Units of every model."""

    layers: int = 4
    """Layers of every encoder and decoder."""

    mean_steps: tuple[float, ...] = (1, 2.7, 5, 17)
    """Mean steps of the PC-ODE in training and rollouts; the bars name these."""

    typical_step: float = 5
    """The mean step wherever there is only one."""

    recommended_step: float = 3.5
    """The mean step that the recommended settings reach on billiards."""

    planning_step: float = 4
    """The mean step of a planner's model."""

    rounds: int = 15
    """Turns of each contender."""

    slow_rounds: int = 5
    """The same among peers that take seconds."""

    growth_rounds: int = 3
    """The same at every point of a growth curve."""

    turn_seconds: float = 0.1
    """How long a turn of short calls is."""

    square: int = 1024
    """Side of the large matrix product."""

    batches: tuple[int, ...] = (1, 4, 16, 64, 256, 1024, 4096)
    """Batch sizes of the growth curve."""

    rates: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Sampling rates: as many times more observations of the same events."""

    rate_batch: int = 64
    """Sequences there: the longest of an RNN would not fit into memory with more."""

    hiddens: tuple[int, ...] = (32, 64, 128, 256, 512)
    """Hidden sizes of the growth curve."""

    @property
    def sizes(self) -> dict[str, Any]:
        """What every model has in common."""
        return {"hidden": self.hidden, "layers": self.layers}


QUICK = Settings(
    batch=8,
    small_batch=4,
    long=100,
    many=10,
    hidden=8,
    observations=24,
    rounds=2,
    slow_rounds=1,
    growth_rounds=1,
    turn_seconds=0.0,
    square=64,
    batches=(1, 4),
    rates=(1, 4),
    rate_batch=4,
    hiddens=(8, 16),
)
"""Every line runs, in seconds. The numbers mean nothing."""
