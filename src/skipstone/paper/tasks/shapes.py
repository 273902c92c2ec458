"""Motion without collisions: straight lines, and circles."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from skipstone.paper.tasks.base import Observed, Options, Task


def _observe_lines(
    options: Options, times: Float[np.ndarray, "batch time"], rng: np.random.Generator
) -> Observed:
    height = rng.uniform(0, 1, (len(times), 1))
    values = np.stack([times, np.broadcast_to(height, times.shape)], axis=-1)
    return Observed(values)


def _observe_circles(
    options: Options, times: Float[np.ndarray, "batch time"], rng: np.random.Generator
) -> Observed:
    start = rng.uniform(0, 2 * np.pi, (len(times), 1))
    radius = rng.uniform(1, 2, (len(times), 1))
    angle = start + times / radius
    values = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return Observed(values)


LINES = Task(
    "lines",
    "a point moves right at some height",
    _observe_lines,
    Options(observations=21, spacing=0.1),
)

CIRCLES = Task(
    "circles",
    "a point circles the origin",
    _observe_circles,
    Options(observations=25, spacing=0.3),
)
