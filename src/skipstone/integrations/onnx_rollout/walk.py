"""The loop of a rollout, from knot to knot, and the controls on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .path import MAX_UPDATES, OnnxPath

if TYPE_CHECKING:
    from .model import OnnxModel

MOST_UPDATES = 10_000
"""Updates of a trajectory unless `max_updates` says otherwise."""


class HeldSignal:
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


class Walker:
    """The loop from knot to knot; rows that arrive leave the batch."""

    def __init__(
        self,
        model: OnnxModel,
        signal: HeldSignal | None,
        end: np.ndarray,
        step: float | None,
        most_updates: int,
    ):
        self._model, self._signal, self._end, self._step = model, signal, end, step
        self._most_updates, config = most_updates, model.config
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
            if updates == self._most_updates:
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
            # As long as a float can be: longer ones end where the rollout does, too.
            longest = np.finfo(wanted.dtype).max
            wanted = np.full_like(wanted, min(self._step / self._unit, longest))
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
