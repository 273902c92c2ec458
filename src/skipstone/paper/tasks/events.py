"""`Events`: the true collisions of a batch of trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np
from jaxtyping import Float, Int


class Kind(IntEnum):
    """What a ball collides with."""

    WALL = 0
    BALL = 1


@dataclass(frozen=True)
class Events:
    """The collisions of a batch, one row each, ordered by trajectory and then by time.

    Trajectory i owns rows `offsets[i]` to `offsets[i + 1]`, so batches of any raggedness take
    exactly the memory of their collisions.
    """

    offsets: Int[np.ndarray, " batch_plus_one"]
    """Where each trajectory's rows start; the last entry is the number of rows."""
    times: Float[np.ndarray, " event"]
    """Time of each collision."""
    kinds: Int[np.ndarray, " event"]
    """A `Kind` for each."""
    balls: Int[np.ndarray, " event"]
    """Index of the ball; of two, the smaller one."""
    others: Int[np.ndarray, " event"]
    """The other ball; for a wall 2·axis, plus 1 for the wall at 1 (0 left, 1 right, ...)."""
    positions: Float[np.ndarray, "event ball axis"]
    """Positions of all balls of that trajectory."""
    velocities: Float[np.ndarray, "event ball axis"]
    """Velocities of all balls of that trajectory, just after."""

    @classmethod
    def none(cls, batch: int, balls: int = 1, axes: int = 2) -> Events:
        """No events: for trajectories without collisions."""
        column, states = np.zeros(0, dtype=np.int64), np.zeros((0, balls, axes))
        offsets = np.zeros(batch + 1, dtype=np.int64)
        return cls(offsets, np.zeros(0), column, column, column, states, states)

    @classmethod
    def concat(cls, parts: Sequence[Events]) -> Events:
        """The events of several batches as those of one."""
        counts = np.concatenate([part.counts for part in parts])
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(_offsets(counts), *map(np.concatenate, columns))

    @classmethod
    def column_names(cls) -> list[str]:
        """The fields that have one row per event."""
        return [field.name for field in fields(cls) if field.name != "offsets"]

    def _columns(self) -> list[np.ndarray]:
        return [getattr(self, name) for name in self.column_names()]

    @property
    def batch(self) -> int:
        """Number of trajectories, with events or without."""
        return len(self.offsets) - 1

    @property
    def counts(self) -> Int[np.ndarray, " batch"]:
        """Number of events of each trajectory."""
        return np.diff(self.offsets)

    @property
    def trajectories(self) -> Int[np.ndarray, " event"]:
        """Trajectory that each row belongs to."""
        return np.repeat(np.arange(self.batch), self.counts)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: int | slice) -> Events:
        """The events of one trajectory, or of a range of them, as a batch of their own."""
        if isinstance(index, int):
            if not -self.batch <= index < self.batch:
                raise IndexError(f"trajectory {index} of {self.batch}")
            index = slice(index % self.batch, index % self.batch + 1)
        start, stop, step = index.indices(self.batch)
        if step != 1:
            raise IndexError(f"a range of trajectories must have step 1; got {step}")
        rows = slice(self.offsets[start], self.offsets[max(start, stop)])
        return Events(_offsets(self.counts[start:stop]), *(c[rows] for c in self._columns()))

    def until(self, ends: Float[np.ndarray, " batch"]) -> Events:
        """The events up to each trajectory's own end."""
        kept = self.times <= ends[self.trajectories]
        counts = np.bincount(self.trajectories[kept], minlength=self.batch)
        return Events(_offsets(counts), *(column[kept] for column in self._columns()))

    def delayed(self, delays: Float[np.ndarray, " batch"]) -> Events:
        """The same events, later by each trajectory's own delay."""
        return replace(self, times=self.times + delays[self.trajectories])


def _offsets(counts: Int[np.ndarray, " batch"]) -> Int[np.ndarray, " batch_plus_one"]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
