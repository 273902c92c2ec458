"""Bouncing balls, observed as coordinates or as images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float

from skipstone.errors import InvalidInput, require_number
from skipstone.paper.tasks.base import Observed, Options, Scene, Task
from skipstone.paper.tasks.billiards import RADIUS, simulate
from skipstone.paper.tasks.render import render

_TRIES = 100
"""Placements tried for one ball before its table counts as full."""

_FRESH_STARTS = 50
"""How often a full table is cleared before giving up."""


@dataclass(frozen=True, kw_only=True)
class BallOptions(Options):
    """Options of the billiards tasks."""

    balls: int = 2
    """How many balls; each starts with speed 1 in a random direction."""
    radius: float = RADIUS
    """Radius of a ball, in a box of width 1. More balls need smaller ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("balls", self.balls, 1, whole=True)
        require_number("radius", self.radius, above=0, below=0.5)


def place_balls(
    rng: np.random.Generator, batch: int, balls: int, axes: int, radius: float = RADIUS
) -> Float[np.ndarray, "batch ball axis"]:
    """Random positions in the unit box at which no two balls overlap."""
    if axes == 1:
        return _place_on_line(rng, batch, balls, radius)
    positions = np.empty((batch, balls, axes))
    rows = np.arange(batch)
    for _ in range(_FRESH_STARTS):
        positions[rows], full = _place_one_by_one(rng, len(rows), balls, axes, radius)
        rows = rows[full]
        if not len(rows):
            return positions
    raise InvalidInput(_no_room(balls, radius))


def _place_one_by_one(
    rng: np.random.Generator, batch: int, balls: int, axes: int, radius: float
) -> tuple[Float[np.ndarray, "batch ball axis"], np.ndarray]:
    """Place each ball where no earlier one is; also say which tables had no room left."""
    positions = np.empty((batch, balls, axes))
    full = np.zeros(batch, dtype=bool)
    for ball in range(balls):
        rows = np.flatnonzero(~full)
        for _ in range(_TRIES):
            positions[rows, ball] = rng.uniform(radius, 1 - radius, (len(rows), axes))
            gaps = positions[rows, :ball] - positions[rows, ball, None]
            rows = rows[(np.linalg.norm(gaps, axis=-1) < 2 * radius).any(axis=1)]
            if not len(rows):
                break
        full[rows] = True
    return positions, full


def _place_on_line(
    rng: np.random.Generator, batch: int, balls: int, radius: float
) -> Float[np.ndarray, "batch ball 1"]:
    """Uniform over all placements: divide the free length at random, then shuffle the balls."""
    free = 1 - 2 * radius * balls
    if free <= 0:
        raise InvalidInput(_no_room(balls, radius))
    ordered = np.sort(rng.uniform(0, free, (batch, balls)), axis=1)
    ordered += radius * (2 * np.arange(balls) + 1)
    return rng.permuted(ordered, axis=1)[..., None]


def _no_room(balls: int, radius: float) -> str:
    return (
        f"the balls must fit in the unit box with room to move; {balls} of radius {radius:g} do "
        "not. Ask for fewer or smaller ones."
    )


def random_directions(
    rng: np.random.Generator, shape: tuple[int, ...], axes: int
) -> Float[np.ndarray, "*shape axis"]:
    """Random unit vectors, uniform in direction."""
    if axes == 1:
        return rng.choice([-1.0, 1.0], (*shape, 1))
    angle = rng.uniform(0, 2 * np.pi, shape)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


Camera = Callable[
    [Float[np.ndarray, "batch time ball axis"], BallOptions], Float[np.ndarray, "batch time dim"]
]


def _coordinates(positions: np.ndarray, options: BallOptions) -> np.ndarray:
    return positions.reshape(*positions.shape[:2], -1)


def _images(positions: np.ndarray, options: BallOptions) -> np.ndarray:
    if positions.shape[-1] == 1:
        # Balls on a line move up and down in the middle of the image.
        positions = np.concatenate([np.full_like(positions, 0.5), positions], axis=-1)
    return render(positions, options.radius).reshape(*positions.shape[:2], -1)


def _observe(
    options: BallOptions,
    times: Float[np.ndarray, "batch time"],
    rng: np.random.Generator,
    *,
    axes: int,
    camera: Camera,
) -> Observed:
    positions = place_balls(rng, len(times), options.balls, axes, options.radius)
    velocities = random_directions(rng, (len(times), options.balls), axes)
    motion = simulate(positions, velocities, float(times.max()), options.radius)
    return Observed(camera(motion.state_at(times)[0], options), motion.events)


def _ball_task(
    name: str, summary: str, axes: int, camera: Camera, kind: Literal["time", "plane", "film"]
) -> Task:
    return Task(
        name,
        summary,
        partial(_observe, axes=axes, camera=camera),
        BallOptions(),
        draw_as=lambda options: Scene(kind, options.radius),
    )


BILLIARDS_1D = _ball_task("billiards1d", "two balls bounce on a line", 1, _coordinates, "time")
BILLIARDS_2D = _ball_task("billiards2d", "two balls bounce on a table", 2, _coordinates, "plane")
PIXELS_1D = _ball_task("pixels1d", "billiards1d as 28×28 grey images", 1, _images, "film")
PIXELS_2D = _ball_task("pixels2d", "billiards2d as 28×28 grey images", 2, _images, "film")
