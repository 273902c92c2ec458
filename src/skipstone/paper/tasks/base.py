"""What a task is: a name, its options, and a function that makes observations.

Nothing here needs torch, so that tasks can be listed and drawn at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from skipstone.drawing.scene import Scene
from skipstone.errors import InvalidInput
from skipstone.paper.tasks.events import Events

CONTEXT = 4
"""Observations a model sees before it predicts. They are never dropped."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every task can be asked for; a task's own options derive from it."""

    trajectories: int = 10_000
    """How many trajectories, all parts together."""
    observations: int = 45
    """How many observations of each, before any are dropped."""
    spacing: float = 0.05
    """Time between two observations. Everything moves at speed 1, so it is a distance, too."""
    jitter: float = 0.0
    """Makes times irregular: each but the first moves at random by up to half this share of the
    spacing, either way. Below 1, so that times stay in order."""
    drop: float = 0.0
    """Makes sequences ragged: the probability with which an observation after the first four is
    left out."""
    test: float = 0.1
    """Share of the trajectories that is kept for the test."""
    validation: float = 0.1
    """Share of the remaining ones that is kept from training, for early stopping."""
    seed: int = 0
    """All randomness follows from it. Jitter and dropping have streams of their own: they change
    when trajectories are observed, not the trajectories."""

    def __post_init__(self) -> None:
        require_at_least("trajectories", self.trajectories, 1)
        require_at_least("observations", self.observations, CONTEXT + 1)
        require_at_least("seed", self.seed, 0)
        require_between("spacing", self.spacing, 0, np.inf)
        require_between("jitter", self.jitter, 0, 1, from_low=True)
        require_between("drop", self.drop, 0, 1, from_low=True)
        require_between("test", self.test, 0, 1)
        require_between("validation", self.validation, 0, 1)


@dataclass(frozen=True)
class Observed:
    """What a task's `observe` returns for a batch of trajectories."""

    values: Num[np.ndarray, "batch time dim"]
    """What is seen: floating point, or uint8 for images."""
    events: Events
    """What truly happened."""
    controls: Float[np.ndarray, "batch time control"] | None = None
    """What was done to the system, if anything."""


@dataclass(frozen=True)
class Task:
    """A named source of trajectories."""

    name: str
    """What to ask for."""
    summary: str
    """One line for the list of tasks."""
    options: Options
    """The defaults; `load_task` changes the ones it is given."""
    observe: Callable[[Any, Float[np.ndarray, "batch time"], np.random.Generator], Observed]
    """`observe(options, times, rng)`: new random trajectories, seen at the given times."""
    scene: Callable[[Any], Scene]
    """`scene(options)`: how to draw it."""
    version: int = 1
    """Raised whenever the same options give other numbers, so that cached ones are not used."""


def require_at_least(name: str, value: float, least: float) -> None:
    """Raise unless `value` is at least `least`."""
    if not value >= least:
        raise InvalidInput(f"{name} must be at least {least:g}; got {value}.")


def require_between(
    name: str, value: float, low: float, high: float, *, from_low: bool = False
) -> None:
    """Raise unless `value` is in (low, high), or in [low, high) with `from_low`."""
    if not (low < value < high or (from_low and value == low)):
        least = "at least" if from_low else "above"
        most = "" if high == np.inf else f" and below {high:g}"
        raise InvalidInput(f"{name} must be {least} {low:g}{most}; got {value}.")
