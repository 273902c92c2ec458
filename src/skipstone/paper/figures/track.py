"""`Track`: one recorded trajectory as a polyline, to draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.recording import Recording


@dataclass(frozen=True)
class Track:
    """Positions of the balls at every observation and at every collision between."""

    times: Float[np.ndarray, " knot"]
    """Time of each point."""
    positions: Float[np.ndarray, "knot ball axis"]
    """Positions of the balls."""
    seen: Bool[np.ndarray, " knot"]
    """Whether it is an observation that was kept."""
    events: Events
    """The collisions."""
    shot: tuple[float, np.ndarray] | None
    """When the first ball is struck and with which velocity, if it is."""

    def until(self, moment: float) -> Track:
        """The track up to `moment`."""
        moment = min(moment, float(self.times[-1]))
        count = int(np.searchsorted(self.times, moment, side="right"))
        flat = self.positions.reshape(len(self.times), -1)
        here = np.array([np.interp(moment, self.times, column) for column in flat.T])
        here = here.reshape(1, *self.positions.shape[1:])
        return replace(
            self,
            times=np.append(self.times[:count], moment),
            positions=np.concatenate([self.positions[:count], here]),
            seen=np.append(self.seen[:count], False),
            events=self.events.until(np.array([moment])),
            shot=self.shot if self.shot is not None and self.shot[0] <= moment else None,
        )


def track_of(recording: Recording, row: int) -> Track:
    """The track of one trajectory that was observed as coordinates."""
    events = recording.events[row]
    balls, axes = events.positions.shape[1:]
    observed = recording.values[row].reshape(-1, balls, axes)
    times = np.concatenate([recording.times[row], events.times])
    positions = np.concatenate([observed, events.positions])
    seen = np.concatenate([recording.keep[row], np.zeros(len(events), dtype=bool)])
    order = np.argsort(times, kind="stable")
    return Track(
        times[order], positions[order], seen[order], events, _shot_of(recording, row, axes)
    )


def _shot_of(recording: Recording, row: int, axes: int) -> tuple[float, np.ndarray] | None:
    """Time and velocity of a shot: the only control of a trajectory, one number per axis."""
    if recording.controls is None or recording.controls.shape[-1] != axes:
        return None
    struck = np.flatnonzero(recording.controls[row].any(axis=-1))
    if len(struck) != 1:
        return None
    index = int(struck[0])
    return float(recording.times[row, index]), recording.controls[row, index]
