"""Motion in which nothing happens: straight lines, and circles."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from skipstone.paper.tasks.base import Observed, Options, Scene, Task
from skipstone.paper.tasks.events import Events


def _observe_lines(
    options: Options, times: Float[np.ndarray, "batch time"], rng: np.random.Generator
) -> Observed:
    height = rng.uniform(0, 1, (len(times), 1))
    values = np.stack([times, np.broadcast_to(height, times.shape)], axis=-1)
    return Observed(values, Events.none(len(times)))


def _observe_circles(
    options: Options, times: Float[np.ndarray, "batch time"], rng: np.random.Generator
) -> Observed:
    start = rng.uniform(0, 2 * np.pi, (len(times), 1))
    radius = rng.uniform(1, 2, (len(times), 1))
    angle = start + times / radius
    values = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return Observed(values, Events.none(len(times)))


LINES = Task(
    name="lines",
    summary="a point moves right at some height",
    options=Options(observations=21, spacing=0.1),
    observe=_observe_lines,
    scene=lambda options: Scene("plane"),
)

CIRCLES = Task(
    name="circles",
    summary="a point circles the origin",
    options=Options(observations=25, spacing=0.3),
    observe=_observe_circles,
    scene=lambda options: Scene("plane"),
)
