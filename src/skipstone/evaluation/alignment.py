"""Do cell updates happen where something happens? Updates against true collisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.evaluation.rollouts import Rollouts

RANDOM_DRAWS = 20
"""Random placements that the chance level is averaged over."""

# A distance this much above one observation, relative to it, is rounding.
_SLACK = 1e-6


@runtime_checkable
class TimedEvents(Protocol):
    """What truly happened in a batch of trajectories, collisions say."""

    @property
    def batch(self) -> int:
        """Number of trajectories."""
        ...

    @property
    def times(self) -> Float[np.ndarray, " events"]:
        """When each event happened."""
        ...

    @property
    def trajectories(self) -> Int[np.ndarray, " events"]:
        """In which trajectory."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Alignment:
    """How well updates line up with collisions: near is within one observation of each other.

    Collisions count between the last observation of the context and the end. The first update of
    a path, at that observation, is there whatever the model does, and does not count.
    """

    num_collisions: int
    """Collisions that count, in all trajectories."""

    num_updates: int
    """Updates that count, in all trajectories."""

    recall: Estimate
    """Share of collisions that have an update near them."""

    precision: Estimate
    """Share of updates that have a collision near them."""

    random_recall: Estimate
    """The recall of as many updates per trajectory, placed uniformly at random."""

    random_precision: Estimate
    """Their precision."""


@dataclass(frozen=True)
class _Moments:
    """Moments of many trajectories on one axis, so that one search serves them all.

    Time counts in observations since the start of a path, and each trajectory has a stretch of
    the axis to itself, too far from the next one for anything to be near.
    """

    at: Float[np.ndarray, " moments"]
    """Where on the axis, in ascending order."""

    trajectory: Int[np.ndarray, " moments"]
    """Whose they are."""

    @classmethod
    def place(
        cls,
        trajectory: Int[np.ndarray, " moments"],
        since: Float[np.ndarray, " moments"],
        stretch: float,
    ) -> _Moments:
        """Put moments, `since` the start of their trajectory, on the axis."""
        order = np.argsort(trajectory * stretch + since)
        return cls((trajectory * stretch + since)[order], trajectory[order])

    def near(self, others: _Moments) -> Bool[np.ndarray, " moments"]:
        """Which of these have one of the others within one observation."""
        edges = np.concatenate([[-np.inf], others.at, [np.inf]])
        after = np.searchsorted(others.at, self.at) + 1
        distance = np.minimum(self.at - edges[after - 1], edges[after] - self.at)
        return distance <= 1 + _SLACK

    def count(
        self, batch: int, where: Bool[np.ndarray, " moments"] | None = None
    ) -> Int[np.ndarray, " batch"]:
        """Number of them in each trajectory, all or where it is True."""
        whose = self.trajectory if where is None else self.trajectory[where]
        return np.bincount(whose, minlength=batch)


def align(
    rollouts: Rollouts,
    events: TimedEvents,
    time_unit: float,
    bootstrap: Bootstrap,
    rng: np.random.Generator,
) -> Alignment:
    """Compare the updates of rollouts with the events of the same trajectories."""
    batch = len(rollouts.start)
    spans = (rollouts.end - rollouts.start) / time_unit
    stretch = spans.max() + 3
    collisions = _collisions(rollouts, events, time_unit, stretch)
    free = rollouts.knots[:, 1:]
    rows, columns = np.isfinite(free).nonzero()
    since = (free[rows, columns] - rollouts.start[rows]) / time_unit
    updates = _Moments.place(rows, since, stretch)

    found = _hits(collisions, updates, batch)
    chance = np.zeros_like(found)
    for _ in range(RANDOM_DRAWS):
        placed = _Moments.place(rows, rng.uniform(0, spans[rows]), stretch)
        chance += _hits(collisions, placed, batch) / RANDOM_DRAWS

    hittable = np.stack([collisions.count(batch), updates.count(batch)], axis=1)
    recall, precision = bootstrap.ratios(found, hittable)
    random_recall, random_precision = bootstrap.ratios(chance, hittable)
    return Alignment(
        num_collisions=len(collisions.at),
        num_updates=len(updates.at),
        recall=recall,
        precision=precision,
        random_recall=random_recall,
        random_precision=random_precision,
    )


def _hits(collisions: _Moments, updates: _Moments, batch: int) -> Float[np.ndarray, "batch 2"]:
    """For each trajectory, collisions near an update and updates near a collision."""
    hits = [
        collisions.count(batch, collisions.near(updates)),
        updates.count(batch, updates.near(collisions)),
    ]
    return np.stack(hits, axis=1).astype(np.float64)


def _collisions(
    rollouts: Rollouts, events: TimedEvents, time_unit: float, stretch: float
) -> _Moments:
    """The collisions inside the range of each path."""
    rows = events.trajectories
    inside = (events.times > rollouts.start[rows]) & (events.times < rollouts.end[rows])
    rows = rows[inside]
    since = (events.times[inside] - rollouts.start[rows]) / time_unit
    return _Moments.place(rows, since, stretch)
