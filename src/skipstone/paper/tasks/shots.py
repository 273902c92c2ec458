"""One shot at pool: the data to learn from, and the game that planners play.

The same functions place the balls, draw random shots and keep the score, for training data, for
planners and for the best that is possible with the true simulator.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from skipstone.paper.tasks.balls import place_balls, random_directions
from skipstone.paper.tasks.base import CONTEXT, Observed, Options, Scene, Task
from skipstone.paper.tasks.billiards import RADIUS, Motion, simulate

POCKET = (1.0, 0.0)
"""Where the pocket is: in the lower right corner."""

POCKET_RADIUS = 0.17
"""The target is pocketed when its centre comes closer than this; in the corner it is at 0.14."""

CUE, TARGET = 0, 1
"""Which ball is which."""

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

    The one distribution of actions, for training, planning and the upper bound alike. A ball
    slower than 0.5 crosses less than the table in the 1.75 time units after the shot, and the
    target gets only part of its speed. At 2 it moves one radius between two observations: faster,
    and collisions would fall too close together to be seen. In between almost every table can be
    won, but by few shots: the game is about aiming.
    """
    speed = rng.uniform(*SPEEDS, (count, 1))
    return speed * random_directions(rng, (count,), axes=2)


def play(
    tables: Float[np.ndarray, "batch 2 2"],
    shots: Float[np.ndarray, "batch 2"],
    duration: float = AFTER_SHOT * SPACING,
) -> Motion:
    """What truly happens after each shot; time 0 is when the cue ball is struck."""
    velocities = np.zeros_like(tables)
    velocities[:, CUE] = shots
    return simulate(tables, velocities, duration)


def pocket_distance(motion: Motion) -> Float[np.ndarray, " batch"]:
    """How close the target's centre came to the pocket: exact, not only at observations."""
    segments = motion.segments
    offset = segments.positions[:, TARGET] - POCKET
    velocity = segments.velocities[:, TARGET]
    speed = np.einsum("sa,sa->s", velocity, velocity)
    # On a straight line the closest point is the foot of the perpendicular, if it is on the piece.
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
    # A planner looks for the rare shots that win: more of them than in the other tasks, so that a
    # model has seen enough collisions.
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
