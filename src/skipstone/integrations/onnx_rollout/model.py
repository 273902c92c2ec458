"""`OnnxModel`: an exported model that rolls out."""

from __future__ import annotations

import pathlib
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

from .folder import open_graphs, read_description, require_fitting
from .path import MAX_UPDATES, OnnxPath, expanded
from .walk import MOST_UPDATES, HeldSignal, Walker


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
        _require_positive("threads", threads, whole=True)
        self.config = read_description(folder)
        """What `rollout.json` says."""
        self._sessions = open_graphs(folder, self.config["graphs"], threads, providers)
        require_fitting(folder, self._sessions["context"], self.config)

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
        (batch, time, control). `step` is a constant time between updates. A row that has used
        `max_updates` updates ends early, and its status says so; unless told, it may use 10,000,
        and a warning says so, too.
        """
        clock, scaled, inputs = self._context(times, values, controls)
        end = expanded("until", until, (len(clock),))
        early = ~(np.isfinite(end) & (end > clock[:, -1]))
        if early.any():
            row = int(np.nonzero(early)[0][0])
            raise ValueError(
                f"until must be a finite time after the context; the context of trajectory {row} "
                f"ends at {clock[row, -1]:.13g} and until is {end[row]:.13g}."
            )
        if step is not None:
            _require_positive("step", step)
        if max_updates is not None:
            _require_positive("max_updates", max_updates, whole=True)
        signal = None if inputs is None else self._signal(clock[:, -1], inputs[:, -1], later)
        if signal is None and later is not None:
            raise ValueError("controls were given to a model that takes none. Leave them out.")
        gaps = np.diff(clock, axis=1, prepend=clock[:, :1]) / self.config["time_unit"]
        read = {"values": scaled, "gaps": gaps.astype(np.float32), "controls": inputs}
        front = self.run("context", read)
        most = MOST_UPDATES if max_updates is None else int(max_updates)
        path = Walker(self, signal, end, step, most).path(clock[:, -1], front)
        if max_updates is None:
            self._warn_of_limit(path, end)
        return path

    def _warn_of_limit(self, path: OnnxPath, until: np.ndarray) -> None:
        """Warn where rows used up the updates that nobody asked to limit."""
        stopped, unit = path.status == MAX_UPDATES, self.config["time_unit"]
        if stopped.any():
            spans = (until - path.knots[:, 0]) / unit
            warnings.warn(
                f"{stopped.sum()} of {len(stopped)} trajectories stopped after {MOST_UPDATES} "
                f"updates, before `until`; path.status says which. The model's unit of time is "
                f"{unit:g}, and `until` is up to {spans.max():.3g} of them after the context. Are "
                "the times in the unit of the training data? If so, allow more: max_updates=...",
                stacklevel=3,
            )

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
        clock = expanded("times", times, values.shape[:2])
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
        numbers = given.dtype.kind in "fiu" and np.isfinite(given).all()
        if given.shape != wanted or not numbers:
            raise ValueError(
                f"controls of the context must be finite numbers of shape {wanted}, as the model "
                f"takes {wanted[2]}; got shape {given.shape}."
            )
        return self._scaled(given[:, -count:], "control_") if wanted[2] else None

    def _signal(self, start: np.ndarray, now: np.ndarray, later: Any) -> HeldSignal:
        """Controls from the end of the context on."""
        times, values = start[:, None], now[:, None]
        if later is not None:
            width = self.config["control"]
            after, given = (np.asarray(part) for part in later)
            shape = (len(start), after.size if after.ndim < 2 else after.shape[-1], width)
            after = expanded("times of later controls", after, shape[:2])
            given = self._scaled(expanded("later controls", given, shape), "control_")
            times, values = np.concatenate([times, after], 1), np.concatenate([values, given], 1)
            if not (np.isfinite(values).all() and (np.diff(times, axis=1) > 0).all()):
                raise ValueError(
                    "later controls must be finite, at times that increase from the context's on."
                )
        return HeldSignal(times, values, self.config["time_unit"], self.config["same_time"])

    def _scaled(self, data: np.ndarray, kind: str) -> np.ndarray:
        """In the model's units. In the precision of the data, and rounded afterwards."""
        dtype = data.dtype if data.dtype.kind == "f" else np.dtype(np.float32)
        center, scale = (np.array(self.config[kind + name], dtype) for name in ("center", "scale"))
        return ((data - center) / scale).astype(np.float32)


def _require_positive(name: str, value: Any, whole: bool = False) -> None:
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    size: Any = value
    if not (is_number and 0 < size < np.inf):
        kind = "a whole number" if whole else "a finite number"
        raise ValueError(f"{name} must be {kind} above 0; got {value!r:.60}.")
