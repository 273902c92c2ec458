"""Rollouts of an exported model with NumPy and onnxruntime alone.

    model = OnnxModel("exported")
    path = model.rollout(times, values, until=12.0)
    path.evaluate([10.0, 11.5])

This file imports nothing else: copy it to where torch is not installed. `onnx.py` writes the folder
that it reads. It keeps the rules of `Model.rollout` and `Path`: times in double precision, left
limits at knots, no extrapolation.
"""

from __future__ import annotations

import json
import pathlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

FORMAT = 1
"""Number of the folder's format that this file reads."""

BLOCK = 4096
"""Queries that are decoded together."""

MAX_UPDATES = 1
"""Status of a trajectory that used up its updates; 0 is one that reached its end."""

_SLACK = 1e-6
"""Share of the range by which a query may lie outside it: that is rounding."""

_SAME_KNOT = 1e-10
"""Times this close, relative to the range, are the same."""


class OnnxModel:
    """A model that `export_onnx` wrote."""

    def __init__(
        self,
        folder: str | pathlib.Path,
        threads: int = 1,
        providers: tuple[str, ...] = ("CPUExecutionProvider",),
    ):
        """Load a folder. `threads` are those of one operator; more than one pays for large batches
        only. `providers` are onnxruntime's, best first."""
        folder = pathlib.Path(folder)
        if not (folder / "rollout.json").is_file():
            raise ValueError(f"{folder} must be what export_onnx wrote; it has no rollout.json.")
        self.config: dict[str, Any] = json.loads((folder / "rollout.json").read_text("utf-8"))
        if self.config.get("format") != FORMAT:
            raise ValueError(
                f"{folder} must have format {FORMAT}; it has {self.config.get('format')}. Export "
                "the model again, or use the file that belongs to its version."
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._sessions = {
            name: onnxruntime.InferenceSession(
                str(folder / f"{name}.onnx"), options, providers=list(providers)
            )
            for name in ("context", "step", "query")
        }

    def run(self, graph: str, inputs: dict[str, Any]) -> list[np.ndarray]:
        """The outputs of one of the graphs `context`, `step` and `query`; inputs that are None are
        left out."""
        given = {name: part for name, part in inputs.items() if part is not None}
        return [np.asarray(part) for part in self._sessions[graph].run(None, given)]

    def rollout(
        self,
        times: Any,
        values: Any,
        until: Any,
        controls: Any = None,
        later: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> OnnxPath:
        """Predict from the end of a context until a time, one for all rows or one per row.

        The context has `times` (time,) or (batch, time), `values` (batch, time, dim), NaN where
        missing, and `controls` (batch, time, control) if the model takes any. `later` are the
        controls after it: a pair of times, (time,) or (batch, time), and values (time, control) or
        (batch, time, control). `step` is a constant time between updates; a row that has used
        `max_updates` ends early.
        """
        clock, scaled, inputs = self._context(times, values, controls)
        end = _expanded("until", until, (len(clock),))
        early = ~(np.isfinite(end) & (end > clock[:, -1]))
        if early.any():
            row = int(np.nonzero(early)[0][0])
            raise ValueError(
                f"until must be a finite time after the context; the context of trajectory {row} "
                f"ends at {clock[row, -1]:.13g} and until is {end[row]:.13g}."
            )
        for name, number in (("step", step), ("max_updates", max_updates)):
            if number is not None and not 0 < number < np.inf:
                raise ValueError(f"{name} must be above 0; got {number}.")
        signal = None if inputs is None else self._signal(clock[:, -1], inputs[:, -1], later)
        if signal is None and later is not None:
            raise ValueError("controls were given to a model that takes none. Leave them out.")
        gaps = np.diff(clock, axis=1, prepend=clock[:, :1]) / self.config["time_unit"]
        read = {"values": scaled, "gaps": gaps.astype(np.float32), "controls": inputs}
        front = self.run("context", read)
        return _Walk(self, signal, end, step, max_updates).path(clock[:, -1], front)

    def _context(
        self, times: Any, values: Any, controls: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Times, scaled values and scaled controls of the observations that are read, checked."""
        config, values = self.config, np.asarray(values)
        if values.ndim != 3 or values.shape[2] != config["dim"] or values.dtype.kind not in "fiu":
            raise ValueError(
                f"values must be numbers of shape (batch, time, {config['dim']}); got shape "
                f"{values.shape} of {values.dtype}. One sequence needs a first axis: x[None]."
            )
        count, have = config["num_context"], values.shape[1]
        if have < count or 0 in values.shape:
            raise ValueError(f"a context must have {count} observations; this one has {have}.")
        if have > count:
            warnings.warn(
                f"this model reads the last {count} of these {have} observations.", stacklevel=3
            )
        clock = _expanded("times", times, values.shape[:2])
        if not (np.isfinite(clock).all() and (np.diff(clock, axis=1) > 0).all()):
            raise ValueError("times must be finite and increase within a sequence; they do not.")
        values = values / np.float32(255) if values.dtype == np.uint8 else values
        bad = np.isinf(values) if config["missing"] else ~np.isfinite(values)
        if bad.any():
            raise ValueError(
                "values must be finite"
                + (", or NaN where they were not observed" if config["missing"] else "")
                + "; some are not. Only a model that was built with missing=True takes NaN."
            )
        scaled = self._scaled(values[:, -count:], "")
        return clock[:, -count:], scaled, self._controls(controls, values.shape[:2], count)

    def _controls(self, controls: Any, shape: tuple[int, ...], count: int) -> np.ndarray | None:
        """Scaled controls of a context's last observations, checked; None if there are none."""
        wanted = (*shape, self.config["control"])
        given = np.empty((*shape, 0)) if controls is None else np.asarray(controls)
        if given.shape != wanted or not np.isfinite(given).all():
            raise ValueError(
                f"controls of the context must be finite numbers of shape {wanted}, as the model "
                f"takes {wanted[2]}; got shape {given.shape}."
            )
        return self._scaled(given[:, -count:], "control_") if wanted[2] else None

    def _signal(self, start: np.ndarray, now: np.ndarray, later: Any) -> _Signal:
        """Controls from the end of the context on."""
        times, values = start[:, None], now[:, None]
        if later is not None:
            width = self.config["control"]
            after, given = (np.asarray(part) for part in later)
            shape = (len(start), after.size if after.ndim < 2 else after.shape[-1], width)
            after = _expanded("times of later controls", after, shape[:2])
            given = self._scaled(_expanded("later controls", given, shape), "control_")
            times, values = np.concatenate([times, after], 1), np.concatenate([values, given], 1)
            if not (np.isfinite(values).all() and (np.diff(times, axis=1) > 0).all()):
                raise ValueError(
                    "later controls must be finite, at times that increase from the context's on."
                )
        return _Signal(times, values, self.config["time_unit"], self.config["same_time"])

    def _scaled(self, data: np.ndarray, kind: str) -> np.ndarray:
        """In the model's units. In the precision of the data, and rounded afterwards."""
        dtype = data.dtype if data.dtype.kind == "f" else np.dtype(np.float32)
        center, scale = (np.array(self.config[kind + name], dtype) for name in ("center", "scale"))
        return ((data - center) / scale).astype(np.float32)


def _expanded(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in double precision, repeated along first axes that they lack."""
    array = np.asarray(given, dtype=np.float64)
    if array.ndim and array.shape != shape[len(shape) - array.ndim :]:
        raise ValueError(f"{name} must have shape {shape}, or its last axes; got {array.shape}.")
    return np.broadcast_to(array, shape)


@dataclass(frozen=True)
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

    @property
    def num_updates(self) -> np.ndarray:
        """Updates of each row, the one at the end of its context included."""
        return np.isfinite(self.knots).sum(1)

    def evaluate(self, t: Any, side: str = "left") -> np.ndarray:
        """Predictions (batch, *time, dim) at one time, (time,) or (batch, time)."""
        if side not in ("left", "right"):
            raise ValueError(f'side must be "left" or "right"; got {side!r}.')
        times = self._queries(np.asarray(t, dtype=np.float64))
        low, high = self.knots[:, :1], self.end[:, None]
        nudge = _SAME_KNOT * (high - low) + 4 * np.finfo(np.float64).eps * np.abs(high)
        nudged = times + (nudge if side == "right" else -nudge)
        place = np.maximum((self.knots[:, None] < nudged[..., None]).sum(2) - 1, 0)
        since = (times - np.take_along_axis(self.knots, place, 1)).ravel()
        offsets = (since / self.model.config["time_unit"]).astype(np.float32)
        segment = np.take_along_axis(self.segments["table"], place, 1).ravel()
        blocks = [
            self._predict(segment[begin : begin + BLOCK], offsets[begin : begin + BLOCK])
            for begin in range(0, len(segment), BLOCK)
        ]
        config = self.model.config
        center, scale = (np.array(config[name], np.float32) for name in ("center", "scale"))
        found = np.concatenate(blocks).reshape(*times.shape, -1) * scale + center
        return found[:, 0] if np.ndim(t) == 0 else found

    def _predict(self, segment: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        used, index = np.unique(segment, return_inverse=True)
        parts = {name: part[used] for name, part in self.segments.items() if name != "table"}
        inputs = {**parts, "index": index.reshape(-1), "offsets": offsets}
        return self.model.run("query", inputs)[0]

    def _queries(self, t: np.ndarray) -> np.ndarray:
        """Times, one row per trajectory, checked against the range."""
        times = _expanded("times", t, (len(self.end), t.shape[-1] if t.ndim else 1))
        low, high = self.knots[:, :1], self.end[:, None]
        slack = _SLACK * (high - low)
        outside = ~((times >= low - slack) & (times <= high + slack))
        if outside.any():
            row, index = (int(i[0]) for i in np.nonzero(outside))
            raise ValueError(
                f"a path can be asked for times inside its range; trajectory {row} covers "
                f"[{low[row, 0]:.13g}, {high[row, 0]:.13g}] and was asked for "
                f"{times[row, index]:.13g}. Roll out with a later `until`, or more updates."
            )
        return np.clip(times, low, high)


class _Signal:
    """Piecewise-constant controls: a control holds until the next one."""

    def __init__(self, times: np.ndarray, values: np.ndarray, unit: float, same: float):
        self._times, self._values, self._unit, self._same = times, values, unit, same * unit
        changed = (values[:, 1:] != values[:, :-1]).any(2)
        never = np.full_like(times[:, :1], np.inf)
        starts = np.concatenate([np.where(changed, times[:, 1:], np.inf), never], axis=1)
        self._next_change = np.minimum.accumulate(starts[:, ::-1], axis=1)[:, ::-1]

    def _place(self, rows: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows, (self._times[rows] <= (now + self._same)[:, None]).sum(1) - 1

    def at(self, rows: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Controls of these rows at these times."""
        return self._values[self._place(rows, now)]

    def next_change(self, rows: np.ndarray, now: np.ndarray) -> np.ndarray:
        """When they next change, infinity if never."""
        return self._next_change[self._place(rows, now)]

    def held(self, rows: np.ndarray, now: np.ndarray) -> dict[str, np.ndarray]:
        """What drives segments that begin now: the control, and its changes since then."""
        never = np.full_like(self._times[:, :1], np.inf)
        times = np.concatenate([self._times[:, 1:], never], axis=1)[rows] - now[:, None]
        jumps = np.concatenate([np.diff(self._values, axis=1), 0 * self._values[:, :1]], axis=1)
        changes = np.where(times > self._same, times / self._unit, np.inf)
        return {"held": self.at(rows, now), "changes": changes, "jumps": jumps[rows]}


class _Walk:
    """The loop from knot to knot; rows that arrive leave the batch."""

    def __init__(
        self,
        model: OnnxModel,
        signal: _Signal | None,
        end: np.ndarray,
        step: float | None,
        max_updates: int | None,
    ):
        self._model, self._signal, self._end, self._step = model, signal, end, step
        self._max_updates, config = max_updates, model.config
        self._drives, self._unit, same = config["drives"], config["time_unit"], config["same_time"]
        shortest = config["min_step"] - same if step is None else 0.0
        self._shortest = max(shortest, same) * self._unit

    def path(self, knot: np.ndarray, front: list[np.ndarray]) -> OnnxPath:
        """Step until every row has arrived."""
        rows, status, reached = (
            np.arange(len(knot)),
            np.zeros(len(knot), np.int64),
            self._end.copy(),
        )
        kept, updates = [], 0
        values, state, wanted = front
        while len(rows):
            after = self._stop(rows, knot, wanted)
            lengths = ((after - knot) / self._unit).astype(np.float32)
            drive = self._signal.held(rows, knot) if self._signal and self._drives else {}
            segment = {"values": values, "state": state, "lengths": lengths, **drive}
            kept.append((rows, knot, segment))
            going, updates = after < self._end[rows], updates + 1
            if updates == self._max_updates:
                status[rows[going]], reached[rows[going]] = MAX_UPDATES, after[going]
                break
            rows, knot = rows[going], after[going]
            if len(rows):
                inputs = {name: part[going] for name, part in segment.items()}
                inputs["controls"] = self._signal.at(rows, knot) if self._signal else None
                values, state, wanted = self._model.run("step", inputs)
        return self._collected(kept, reached, status)

    def _stop(self, rows: np.ndarray, knot: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """After a step, or at the next limit if that is about as near."""
        limit = self._end[rows]
        if self._signal and not self._drives:
            limit = np.minimum(limit, self._signal.next_change(rows, knot))
        if self._step is not None:
            wanted = np.full_like(wanted, self._step / self._unit)
        after = knot + wanted.astype(np.float64) * self._unit
        after = np.where(limit - after < self._shortest, limit, after)
        if not (after > knot).all():
            raise ValueError(
                "a step must be a positive, finite length of time; the model's does not advance. "
                "Its context holds numbers that are far too large, or the times are not in its "
                f"unit of time, {self._unit:g}."
            )
        return after

    def _collected(self, kept: list[Any], reached: np.ndarray, status: np.ndarray) -> OnnxPath:
        """All segments side by side, and where each row's are."""
        knots = np.full((len(reached), len(kept)), np.inf)
        table, start = np.zeros(knots.shape, np.int64), 0
        for number, (rows, knot, _) in enumerate(kept):
            knots[rows, number] = knot
            table[rows, number] = start + np.arange(len(rows))
            start += len(rows)
        parts = {name: np.concatenate([part[name] for *_, part in kept]) for name in kept[0][2]}
        return OnnxPath(self._model, knots, reached, status, {**parts, "table": table})
