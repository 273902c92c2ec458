"""`OnnxPath`: what a rollout predicts, at any time of its range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .model import OnnxModel

BLOCK = 4096
"""Queries that are decoded together."""

MAX_UPDATES = 1
"""Status of a trajectory that used up its updates; 0 is one that reached its end."""

_SLACK = 1e-6
"""Share of the range by which a query may lie outside it: that is rounding."""

_SAME_KNOT = 1e-10
"""Times this close, relative to the range, are the same."""


@dataclass(frozen=True, eq=False, repr=False)
class OnnxPath:
    """Predicted trajectories, to evaluate at any time from `knots[:, 0]` to `end`."""

    model: OnnxModel
    knots: np.ndarray
    """Time of each update, (batch, segments); infinity where a row has no more."""
    end: np.ndarray
    """Last time of each row, (batch,)."""
    status: np.ndarray
    """0, or `MAX_UPDATES`, for each row."""
    segments: dict[str, Any]
    """Values, states, lengths and held controls of all segments, and where each row's are."""

    def __repr__(self) -> str:
        start, end = self.knots[:, 0].min(), self.end.max()
        return (
            f"OnnxPath(batch={len(self.end)}, start={start:.6g}, end={end:.6g}, updates per "
            f"row={self.num_updates.mean():.3g})"
        )

    @property
    def num_updates(self) -> np.ndarray:
        """Updates of each row, the one at the end of its context included."""
        return np.isfinite(self.knots).sum(1)

    def evaluate(self, t: Any, side: str = "left") -> np.ndarray:
        """Predictions (batch, *time, dim) at one time, (time,) or (batch, time)."""
        if side not in ("left", "right"):
            raise ValueError(f'side must be "left" or "right"; got {side!r}.')
        times = self._queries(t)
        low, high = self.knots[:, :1], self.end[:, None]
        nudge = _SAME_KNOT * (high - low) + 4 * np.finfo(np.float64).eps * np.abs(high)
        nudged = times + (nudge if side == "right" else -nudge)
        rows = zip(self.knots, nudged, strict=True)
        place = np.stack([np.searchsorted(knots, row) for knots, row in rows])
        place = np.maximum(place - 1, 0)
        since = (times - np.take_along_axis(self.knots, place, 1)).ravel()
        offsets = (since / self.model.config["time_unit"]).astype(np.float32)
        segment = np.take_along_axis(self.segments["table"], place, 1).ravel()
        config = self.model.config
        blocks = [
            np.empty((0, config["dim"]), np.float32),
            *(
                self._predict(segment[begin : begin + BLOCK], offsets[begin : begin + BLOCK])
                for begin in range(0, len(segment), BLOCK)
            ),
        ]
        center, scale = (np.array(config[name], np.float32) for name in ("center", "scale"))
        found = np.concatenate(blocks).reshape(*times.shape, config["dim"]) * scale + center
        return found[:, 0] if np.ndim(t) == 0 else found

    def _predict(self, segment: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        used, index = np.unique(segment, return_inverse=True)
        parts = {name: part[used] for name, part in self.segments.items() if name != "table"}
        inputs = {**parts, "index": index.reshape(-1), "offsets": offsets}
        return self.model.run("query", inputs)[0]

    def _queries(self, t: Any) -> np.ndarray:
        """Times, one row per trajectory, checked against the range."""
        given = as_numbers("times", t)
        times = expanded("times", given, (len(self.end), given.shape[-1] if given.ndim else 1))
        low, high = self.knots[:, :1], self.end[:, None]
        slack = _SLACK * (high - low)
        outside = ~((times >= low - slack) & (times <= high + slack))
        if outside.any():
            row, index = (int(i[0]) for i in np.nonzero(outside))
            raise ValueError(
                f"a path can be asked for times inside its range; trajectory {row} covers "
                f"[{low[row, 0]:.13g}, {high[row, 0]:.13g}] and was asked for "
                f"{times[row, index]:.13g}. {self._how_to_extend(row)}"
            )
        return np.clip(times, low, high)

    def _how_to_extend(self, row: int) -> str:
        if self.status[row] != MAX_UPDATES:
            return "Roll out with a later `until`."
        return (
            f"It stopped after {self.num_updates[row]} updates: raise max_updates to go on, or "
            "check that the times are in the model's unit of time, "
            f"{self.model.config['time_unit']:g}."
        )


def expanded(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in double precision, repeated along first axes that they lack."""
    array = as_numbers(name, given)
    if array.ndim and array.shape != shape[len(shape) - array.ndim :]:
        raise ValueError(f"{name} must have shape {shape}, or its last axes; got {array.shape}.")
    return np.broadcast_to(array, shape)


def as_numbers(name: str, given: Any) -> np.ndarray:
    """Numbers in double precision, of anything that nests evenly."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{name} must be numbers that nest evenly; got others: {reason}") from None
