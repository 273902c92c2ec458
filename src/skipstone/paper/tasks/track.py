"""`Track`: one recorded trajectory as the polyline it truly was, for drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.recording import Recording


@dataclass(frozen=True)
class Track:
    """Where balls were at every observation and at every collision between."""

    times: Float[np.ndarray, " knot"]
    """When."""
    positions: Float[np.ndarray, "knot ball axis"]
    """Where."""
    seen: Bool[np.ndarray, " knot"]
    """Whether it is an observation that was kept."""
    events: Events
    """The collisions."""
    shot: tuple[float, np.ndarray] | None
    """When the first ball was struck and with which velocity, if it was."""

    def until(self, moment: float) -> Track:
        """The track as far as it has come by `moment`."""
        moment = min(moment, float(self.times[-1]))
        count = int(np.searchsorted(self.times, moment, side="right"))
        flat = self.positions.reshape(len(self.times), -1)
        here = np.array([np.interp(moment, self.times, column) for column in flat.T])
        return replace(
            self,
            times=np.append(self.times[:count], moment),
            positions=np.concatenate(
                [self.positions[:count], here.reshape(1, *self.positions.shape[1:])]
            ),
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
    shot = None
    if recording.controls is not None:
        struck = int(np.abs(recording.controls[row]).sum(axis=-1).argmax())
        shot = float(recording.times[row, struck]), recording.controls[row, struck]
    return Track(times[order], positions[order], seen[order], events, shot)
