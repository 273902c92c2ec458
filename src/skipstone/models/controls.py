"""Known inputs over time: a control holds its value until the next one."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.checking import as_times, as_values
from skipstone.errors import InvalidInput
from skipstone.models.limits import MOST_STEPS, describe_unit
from skipstone.models.scaling import Scaler
from skipstone.models.typing import BatchTimes, Lengths, Rows
from skipstone.sequences import Sequences
from skipstone.tables.clock import is_stamp

SAME_TIME = 1e-6
"""Times closer than this, in the model's unit, are the same time: rounding of time stamps."""


class Integrals:
    """First and second integral of piecewise-constant controls, from the first of their times on.

    Over a stretch of time they are U = ∫u dt and V = ∫U dt, both 0 at its start, side by side. Time
    is the model's.
    """

    def __init__(self, clock: BatchTimes, controls: Float[Tensor, "batch time control"]):
        self._clock, self._controls = clock.flatten(), controls.flatten(0, 1)
        gaps, held = clock.diff(dim=1)[..., None], controls[:, :-1].to(clock.dtype)
        once = torch.nn.functional.pad((held * gaps).cumsum(1), (0, 0, 1, 0))
        twice = (once[:, :-1] * gaps + held * gaps.square() / 2).cumsum(1)
        self._once = once.flatten(0, 1)
        self._twice = torch.nn.functional.pad(twice, (0, 0, 1, 0)).flatten(0, 1)

    def sums(self) -> tuple[Tensor, Tensor]:
        """Both integrals at each of the controls' times, flattened."""
        return self._once, self._twice

    def between(
        self, begin: Int[Tensor, "*points"], end: Int[Tensor, "*points"]
    ) -> Float[Tensor, "*points integrals"]:
        """From one of the controls' times to another; both are places in the flattened batch."""
        return self._over(self._at(begin), self._at(end))

    def after(
        self,
        begin: Int[Tensor, "*points"],
        since_begin: Float[Tensor, "*points"],
        end: Int[Tensor, "*points"],
        since_end: Float[Tensor, "*points"],
    ) -> Float[Tensor, "*points integrals"]:
        """Between times so long after two of the controls' own."""
        return self._over(self._at(begin, since_begin), self._at(end, since_end))

    def _at(self, place: Tensor, since: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Time and both integrals, some time after a place."""
        time, once, twice = self._clock[place], self._once[place], self._twice[place]
        if since is None:
            return time, once, twice
        more, held = since[..., None], self._controls[place]
        return (
            time + since,
            once + held * more,
            twice + once * more + held * more.square() / 2,
        )

    def _over(self, begin: tuple[Tensor, ...], end: tuple[Tensor, ...]) -> Tensor:
        (start, once, twice), (stop, once_then, twice_then) = begin, end
        second = twice_then - twice - once * (stop - start)[..., None]
        return torch.cat([once_then - once, second], dim=-1).to(self._controls.dtype)


class ControlSignal:
    """Piecewise-constant controls of a batch, for any time after the context."""

    def __init__(self, times: BatchTimes, values: Float[Tensor, "batch time control"], unit: float):
        self._times, self.unit = times.contiguous(), unit
        self._values = values
        self._slack = SAME_TIME * unit
        changed = changes(values)
        starts = torch.where(changed, times, torch.inf)
        following = starts.flip(1).cummin(dim=1).values.flip(1)
        never = torch.full_like(times[:, :1], torch.inf)
        self._next_change = torch.cat([following[:, 1:], never], dim=1)
        self.integrals = Integrals((times - times[:, :1]) / unit, values)

    @classmethod
    def after(
        cls, context: Sequences, controls: Any, until: Lengths, unit: float, scaler: Scaler
    ) -> ControlSignal | None:
        """The controls from the last observation of a prepared context on; None without any."""
        if context.controls is None:
            if controls is not None:
                raise InvalidInput(
                    "controls were given to a model that takes none. Build the model with "
                    "controls in its training data."
                )
            return None
        times, values = context.times[:, -1:], context.controls[:, -1:]
        if controls is not None:
            later_times, later = _checked(_as_pair(controls, context, unit, until), context)
            later = scaler.into(later)
            times, values = torch.cat([times, later_times], 1), torch.cat([values, later], 1)
        return cls(times, values, unit)

    def tables(self, drive: bool) -> dict[str, Any]:
        """What lookups need, of controls that drive segments or end them, by the names of
        `Rollout` in `fast/rollout.h`."""
        found = {
            "controls": self._values.shape[2],
            "changes": self._times.shape[1],
            "slack": self._slack,
            "control_times": self._times,
            "control_values": self._values.contiguous(),
        }
        if not drive:
            return {**found, "next_change": self._next_change.contiguous()}
        once, twice = self.integrals.sums()
        return {**found, "once": once.contiguous(), "twice": twice.contiguous()}

    def at(self, rows: Rows, now: Lengths) -> Tensor:
        """The controls of these rows at these times."""
        return self._values[rows, self._position(rows, now[:, None])[:, 0]]

    def next_change(self, rows: Rows, now: Lengths) -> Lengths:
        """When the controls of these rows next change, infinity if they never do."""
        return self._next_change[rows, self._position(rows, now[:, None])[:, 0]]

    def between(
        self,
        rows: Rows,
        begin: Float[Tensor, "rows queries"],
        end: Float[Tensor, "rows queries"],
    ) -> Float[Tensor, "rows queries integrals"]:
        """Integrals of the controls of these rows between times."""
        places = [self._position(rows, times) for times in (begin, end)]
        times = self._times[rows]
        since = [
            (each - times.gather(1, place)) / self.unit
            for each, place in zip((begin, end), places, strict=True)
        ]
        row = (rows * self._times.shape[1])[:, None]
        return self.integrals.after(row + places[0], since[0], row + places[1], since[1])

    def _position(
        self, rows: Tensor, times: Float[Tensor, "rows queries"]
    ) -> Int[Tensor, "rows queries"]:
        """The control that holds at each time; before all of them, the first."""
        later = (times.detach() + self._slack).contiguous()
        return (torch.searchsorted(self._times[rows], later, right=True) - 1).clamp(min=0)


class Drive:
    """The controls over segments, which a model may be driven by: what counts is how much of them
    there was since a segment began, their integrals."""

    def __init__(self, signal: ControlSignal, rows: Rows, begin: Tensor):
        """`begin` is a time for each row, or one for each of its queries."""
        self._signal, self._rows, self._begin = signal, rows, begin

    def upto(self, offsets: Float[Tensor, "rows ..."]) -> Float[Tensor, "rows ..."]:
        """Integrals from the beginning to so long after it, in the model's unit of time."""
        begin = self._begin if self._begin.ndim == 2 else self._begin[:, None]
        along = offsets.to(begin.dtype) * self._signal.unit
        end = begin + (along if along.ndim == 2 else along[:, None])
        found = self._signal.between(self._rows, begin.expand_as(end), end)
        return found if offsets.ndim == 2 else found[:, 0]

    def pick(self, going: Rows) -> Drive:
        """That of some of the rows."""
        return Drive(self._signal, self._rows[going], self._begin[going])


def changes(values: Float[Tensor, "batch time control"]) -> Tensor:
    """Where a control differs from the one before it; False at the first."""
    changed = (values[:, 1:] != values[:, :-1]).any(-1)
    return torch.cat([torch.zeros_like(changed[:, :1]), changed], dim=1)


def _as_pair(controls: Any, context: Sequences, unit: float, until: Lengths) -> tuple[Tensor, Any]:
    """Controls in any of their forms as times and values.

    Without times, the first holds from one interval after the context on, the second from the next.
    """
    if isinstance(controls, tuple | list) and len(controls) == 2:
        return _given_times(controls[0], context, until), controls[1]
    if callable(controls):
        wanted = float(((until - context.ends) / unit).max())
        if wanted * len(context) > MOST_STEPS:
            raise InvalidInput(
                "controls as a function are asked for at every unit of time, at most "
                f"{MOST_STEPS:,} times; until is {wanted:.3g} units of "
                f"{describe_unit(unit, context.clock)} after the context. Check the unit of the "
                "data's times, or give controls as times and values."
            )
        count = max(1, math.ceil(wanted))
    else:
        shape: tuple[int, ...] = (*getattr(controls, "shape", ()),)
        if len(shape) not in (2, 3):
            raise InvalidInput(
                "controls must be a pair of times and values, values alone, (time, control) or "
                "(batch, time, control), or a function of time; got "
                + (f"shape {shape}." if shape else f"{type(controls).__name__}.")
            )
        count = shape[-2]
    following = unit * torch.arange(1, count + 1, device=context.times.device)
    times = context.ends[:, None] + following.to(context.times.dtype)
    return times, controls(times) if callable(controls) else controls


def _given_times(times: Any, context: Sequences, until: Lengths) -> Tensor:
    """Times of controls in model time."""
    if not isinstance(times, Tensor) and is_stamp(times):
        return context.model_times(times)
    times = as_times(times, "times of controls").to(context.times)
    counted = context.clock.origins is not None and times.ndim in (1, 2) and times.numel() > 0
    # Integers since 1970, say: none of them would ever hold, and nobody would notice.
    if counted and bool((times > until.max()).all()):
        raise InvalidInput(
            "times of controls that are numbers count from each sequence's first stamp, and must "
            f"begin before the end of the rollout; the first is {times.min().item():.13g} and "
            f"until is {until.max().item():.13g}. Convert stamps: context.model_times(stamps)."
        )
    return times


def _checked(controls: tuple[Tensor, Any], context: Sequences) -> tuple[Tensor, Tensor]:
    """Times and values of controls, checked to lie after the context."""
    times, values = controls[0].to(context.times), controls[1]
    values = as_values(values, "controls", None).to(context.values)
    shape = (len(context), times.shape[-1] if times.ndim else 0, context.control_dim)
    if tuple(values.shape) not in (shape, shape[1:]) or times.ndim not in (1, 2):
        raise InvalidInput(
            f"controls must have times of shape (time,) or (batch, time) and values of shape "
            f"{shape}, or {shape[1:]} for all rows; got {tuple(times.shape)} and "
            f"{tuple(values.shape)}."
        )
    values = values.expand(shape)
    times = times.expand(len(context), -1)
    for name, numbers in (("times of controls", times), ("controls", values)):
        if not bool(numbers.isfinite().all()):
            row, index = (int(i) for i in (~numbers.isfinite()).nonzero()[0, :2])
            raise InvalidInput(
                f"{name} must be finite; trajectory {row} has NaN or infinity at index {index}. "
                "Controls are known at all times: fill them in."
            )
    if bool((times.diff(dim=1) <= 0).any()):
        row = int((times.diff(dim=1) <= 0).nonzero()[0, 0])
        raise InvalidInput(f"times of controls must increase; those of trajectory {row} do not.")
    if times.shape[1] and bool((times[:, 0] <= context.ends).any()):
        row = int((times[:, 0] <= context.ends).nonzero()[0, 0])
        raise InvalidInput(
            "controls after the context must be later than its last observation, whose control "
            f"it holds already; trajectory {row} has one at {times[row, 0].item():.7g} and its "
            f"context ends at {context.ends[row].item():.7g}."
        )
    return times, values
