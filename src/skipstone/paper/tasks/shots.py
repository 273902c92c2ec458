"""One shot at pool: training data, and the game that planners play.

Both use the same functions to place the balls, to draw random shots and to measure success.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from skipstone.paper.tasks.balls import place_balls, random_directions
from skipstone.paper.tasks.base import CONTEXT, Observed, Options, Scene, Task
from skipstone.paper.tasks.billiards import RADIUS, Motion, simulate

POCKET = (1.0, 0.0)
"""Centre of the pocket, in the lower right corner."""

POCKET_RADIUS = 0.17
"""Distance of its centre below which the target is pocketed; in the corner it is at 0.14."""

CUE, TARGET = 0, 1
"""Indices of the balls."""

SHOT = CONTEXT - 1
"""Index of the observation at which the cue ball is struck: the last one of the context."""

SPACING = 0.05
"""Time between two observations."""

AFTER_SHOT = 35
"""Observations after the shot: how long the target has to reach the pocket."""

SPEEDS = (0.5, 2.0)
"""Slowest and fastest shot."""


def random_tables(rng: np.random.Generator, count: int) -> Float[np.ndarray, "count 2 2"]:
    """Random places of cue and target ball."""
    return place_balls(rng, count, balls=2, axes=2)


def random_shots(rng: np.random.Generator, count: int) -> Float[np.ndarray, "count 2"]:
    """Random velocities of the cue ball: any direction, speed uniform in `SPEEDS`.

    Training, planning and the upper bound share this distribution. A ball slower than 0.5 does not
    cross the table in the 1.75 time units after the shot, and the target gets only part of its
    speed. At 2 it moves one radius between two observations; at higher speeds collisions would be
    too close together to be seen. Almost every table can be won, but by few shots.
    """
    speed = rng.uniform(*SPEEDS, (count, 1))
    return speed * random_directions(rng, (count,), axes=2)


def play(
    tables: Float[np.ndarray, "batch 2 2"],
    shots: Float[np.ndarray, "batch 2"],
    duration: float = AFTER_SHOT * SPACING,
) -> Motion:
    """True motion after each shot; time 0 is when the cue ball is struck."""
    velocities = np.zeros_like(tables)
    velocities[:, CUE] = shots
    return simulate(tables, velocities, duration)


def pocket_distance(motion: Motion) -> Float[np.ndarray, " batch"]:
    """Closest distance of the target's centre to the pocket: exact, at all times."""
    segments = motion.segments
    offset = segments.positions[:, TARGET] - POCKET
    velocity = segments.velocities[:, TARGET]
    speed = np.einsum("sa,sa->s", velocity, velocity)
    # The closest point of a straight piece: the foot of the perpendicular, or an end.
    foot = np.zeros_like(speed)
    np.divide(-np.einsum("sa,sa->s", offset, velocity), speed, out=foot, where=speed > 0)
    foot = np.clip(foot, 0, segments.durations)
    closest = np.linalg.norm(offset + velocity * foot[:, None], axis=-1)
    return np.minimum.reduceat(closest, segments.offsets[:-1])


def _observe(
    options: Options, times: Float[np.ndarray, "batch time"], rng: np.random.Generator
) -> Observed:
    tables, shots = random_tables(rng, len(times)), random_shots(rng, len(times))
    struck = times[:, SHOT]
    since = np.maximum(times - struck[:, None], 0)
    motion = play(tables, shots, float(since.max()))
    values = motion.state_at(since)[0].reshape(*times.shape, -1)
    controls = np.zeros((*times.shape, 2))
    controls[:, SHOT] = shots
    return Observed(values, motion.events.delayed(struck), controls)


SHOTS = Task(
    name="shots",
    summary="a cue ball is shot at a target ball",
    # Planners look for the rare shots that win: with more data a model has seen enough collisions.
    options=Options(
        trajectories=50_000,
        observations=CONTEXT + AFTER_SHOT,
        spacing=SPACING,
        test=0.02,
        validation=0.02,
    ),
    observe=_observe,
    draw_as=lambda options: Scene(
        "plane", RADIUS, (*POCKET, POCKET_RADIUS), labels=("cue", "target")
    ),
)
