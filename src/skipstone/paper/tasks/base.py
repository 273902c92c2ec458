"""`Task`: a name, options, and a function that makes observations; and the registry of tasks.

Nothing here needs torch, so that tasks can be listed and drawn at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from skipstone.drawing.scene import Scene
from skipstone.errors import require_number, require_seed
from skipstone.paper.tasks.events import Events
from skipstone.registry import Registry

CONTEXT = 4
"""Observations before the first prediction; they are never dropped."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every task; a task's own ones derive from it."""

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
    """Seed of all randomness. Jitter and dropping have streams of their own: they change when
    trajectories are observed, not the trajectories."""

    def __post_init__(self) -> None:
        require_number("trajectories", self.trajectories, 1, whole=True)
        require_number("observations", self.observations, CONTEXT + 1, whole=True)
        require_number("spacing", self.spacing, above=0)
        require_number("jitter", self.jitter, 0, below=1)
        require_number("drop", self.drop, 0, below=1)
        require_number("test", self.test, above=0, below=1)
        require_number("validation", self.validation, above=0, below=1)
        require_seed(self.seed)


@dataclass(frozen=True)
class Observed:
    """What a task's `observe` returns for a batch of trajectories."""

    values: Num[np.ndarray, "batch time dim"]
    """Observations: floating point, or uint8 for images."""
    collisions: Events | None = None
    """True collisions; None for motion without any."""
    controls: Float[np.ndarray, "batch time control"] | None = None
    """Known inputs to the system, such as actions."""

    @property
    def events(self) -> Events:
        """The collisions, also if there are none.

        Then two features are one point in the plane, and others points on a line each.
        """
        if self.collisions is not None:
            return self.collisions
        batch, _, dim = self.values.shape
        balls, axes = (1, 2) if dim == 2 else (dim, 1)
        return Events.none(batch, balls, axes)


@dataclass(frozen=True)
class Task:
    """A named source of trajectories."""

    name: str
    """Name to load it by."""
    summary: str
    """One line for the list of tasks."""
    observe: Callable[[Any, Float[np.ndarray, "batch time"], np.random.Generator], Observed]
    """`observe(options, times, rng)`: new random trajectories, observed at the given times."""
    options: Options = Options()
    """The defaults; `load_task` changes the ones it is given."""
    draw_as: Callable[[Any], Scene] | None = None
    """`draw_as(options)`: how to draw it. By default images are a film, two features a path in the
    plane, and any others curves over time."""
    version: int = 1
    """Raised whenever the same options give other numbers, so that cached ones are not used."""

    def scene(self, options: Any) -> Scene:
        """How to draw the task with these options."""
        if self.draw_as is not None:
            return self.draw_as(options)
        times = options.spacing * np.arange(float(options.observations))
        values = self.observe(options, times[None], np.random.default_rng(0)).values
        if values.dtype == np.uint8:
            return Scene("film")
        dim = values.shape[-1]
        labels = tuple(f"feature {i}" for i in range(dim))
        return Scene("plane") if dim == 2 else Scene("time", labels=labels)


TASKS: Registry[Task] = Registry("task", lambda thing: isinstance(thing, Task))
"""All tasks by name: the paper's, and those added with `skipstone.register`."""
