"""Contact-rich simulators that others wrote: MuJoCo's walkers, and pool with friction and spin."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hopper import episodes
from benchmarks.reality.problem import MissingData, Parts
from skipstone import Sequences

EPISODES = (600, 100, 100)
"""To train on, to validate and to test with."""

LENGTH = 100
"""Observations of an episode: 0.8 s."""

SPREAD = 0.3
"""Of the states that walkers begin in, in radians and metres."""


def load_walker(
    env_name: str, hold: int, counts: tuple[int, ...] = EPISODES, length: int = LENGTH
) -> Parts:
    """Episodes of a walker: it falls (`hold=0`), or moves by random actions, each held."""
    # Parts must not share a stream of random numbers.
    seeds = (100 * (hold + 1) + part for part in range(len(counts)))
    try:
        return Parts(
            *(
                episodes(count, hold, seed, env_name, length, SPREAD)
                for count, seed in zip(counts, seeds, strict=True)
            )
        )
    except ImportError as error:
        raise MissingData(
            f"walkers need MuJoCo: pip install 'skipstone[reality]'. {error}"
        ) from None


SHOTS = (1_500, 200, 300)
"""Shots to train on, to validate and to test with."""

SHOT_LENGTH, SHOT_SPACING = 61, 0.04
"""Observations of a shot, and the seconds between them."""

SPEEDS = (1.0, 3.0)
"""Of the cue, in metres per second."""

SPIN = 0.4
"""Largest distance from the ball's centre at which the cue strikes, as a share of its radius."""

BALLS = ("cue", "1")


def load_pool(file: Path | None = None, counts: tuple[int, ...] = SHOTS) -> Parts:
    """Shots at random tables: x and y of the cue ball and of a second one, in metres.

    Spin is never observed: it has to be inferred from how balls move. Training shots also take part
    mirrored, since a table has no left or right.
    """
    rngs = np.random.default_rng(0).spawn(len(counts))
    parts = Parts(*(pool_shots(count, rng) for count, rng in zip(counts, rngs, strict=True)))
    return parts._replace(train=mirrored(parts.train))


def mirrored(shots: Sequences) -> Sequences:
    """Shots, and the same on the table turned over along, across and both ways."""
    table = _pooltool().Table.default()
    size = np.tile([table.w, table.l], len(BALLS))
    values = shots.values.numpy()
    views = [
        np.where(np.tile(turned, len(BALLS)), size - values, values)
        for turned in itertools.product((False, True), repeat=2)
    ]
    return Sequences.from_array(np.concatenate(views).astype(np.float32), spacing=SHOT_SPACING)


def pool_shots(count: int, rng: np.random.Generator) -> Sequences:
    """Random shots that pocket nothing while they are watched."""
    shots: list[np.ndarray] = []
    while len(shots) < count:
        shot = pool_shot(rng)
        if shot is not None:
            shots.append(shot)
    return Sequences.from_array(np.stack(shots).astype(np.float32), spacing=SHOT_SPACING)


def pool_shot(rng: np.random.Generator) -> np.ndarray | None:
    """One shot, `(observation, feature)`; None if a ball falls into a pocket."""
    pt: Any = _pooltool()
    table = pt.Table.default()
    radius = pt.BallParams.default().R
    low = np.array([3 * radius, 3 * radius])
    high = np.array([table.w, table.l]) - low
    places = rng.uniform(low, high, (len(BALLS), 2))
    while np.linalg.norm(places[0] - places[1]) < 4 * radius:
        places = rng.uniform(low, high, (len(BALLS), 2))
    # Aimed about at the other ball, so that most shots meet it.
    along = places[1] - places[0]
    angle = np.degrees(np.arctan2(along[1], along[0])) + rng.normal(0, 6)
    balls = {
        name: pt.Ball.create(name, xy=tuple(place))
        for name, place in zip(BALLS, places, strict=True)
    }
    system = pt.System(table=table, balls=balls, cue=pt.Cue(cue_ball_id="cue"))
    a, b = rng.uniform(-SPIN, SPIN, 2)
    system.cue.set_state(V0=rng.uniform(*SPEEDS), phi=angle % 360, a=a, b=b)
    duration = SHOT_LENGTH * SHOT_SPACING
    pt.simulate(system, inplace=True, t_final=duration)
    if any(event.event_type == pt.EventType.BALL_POCKET for event in system.events):
        return None
    pt.continuize(system, dt=SHOT_SPACING, inplace=True)
    return np.concatenate([_track(system.balls[name]) for name in BALLS], axis=1)


def _track(ball: Any) -> np.ndarray:
    """x and y at each observation; a ball that has come to rest stays there."""
    track = np.array([state.rvw[0, :2] for state in ball.history_cts])[:SHOT_LENGTH]
    return np.concatenate([track, np.repeat(track[-1:], SHOT_LENGTH - len(track), axis=0)])


def _pooltool() -> Any:
    try:
        import pooltool  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingData(
            f"pool needs pooltool: pip install 'skipstone[reality]'. {error}"
        ) from None
    return pooltool
