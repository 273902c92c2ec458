"""Models that step, as functions of tensors for `torch.export`: read a context, step, query.

They take any number of rows and check nothing, since an exported program cannot raise. `onnx.py`
writes them as ONNX. `FixedRollout` is all of them together.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from skipstone.errors import InvalidInput, require_number
from skipstone.models.arithmetic import filled
from skipstone.models.base import Model, SteppingModel
from skipstone.models.controls import SAME_TIME, ControlSignal, Drive
from skipstone.models.typing import BatchTimes, BatchValues, Lengths, Rows, State, Values


class HeldControls(Drive):
    """Controls over segments, as tensors: the one held at the start, and its later changes."""

    def __init__(
        self,
        held: Float[Tensor, "rows control"],
        changes: Float[Tensor, "rows changes"],
        jumps: Float[Tensor, "rows changes control"],
    ):
        """`changes` are times since the start, in the model's unit, and `jumps` by how much the
        control changes there."""
        self._held, self._changes, self._jumps = held, changes, jumps

    def upto(self, offsets: Float[Tensor, "rows ..."]) -> Float[Tensor, "rows ..."]:
        """Integrals from the start to so long after it. A jump adds a ramp from its time on."""
        along = (offsets if offsets.ndim == 2 else offsets[:, None]).to(self._changes.dtype)
        since = (along[..., None] - self._changes[:, None]).clamp(min=0)
        held, jumps = self._held[:, None].to(since.dtype), self._jumps.to(since.dtype)
        once = held * along[..., None] + since @ jumps
        twice = held * along[..., None].square() / 2 + (since.square() / 2) @ jumps
        found = torch.cat([once, twice], dim=-1).to(self._held.dtype)
        return found if offsets.ndim == 2 else found[:, 0]

    def pick(self, going: Rows) -> HeldControls:
        """That of some of the rows."""
        parts = self._held, self._changes, self._jumps
        return HeldControls(*(part.index_select(0, going) for part in parts))


class ContextReader(nn.Module):
    """Reads a context, observation by observation."""

    def __init__(self, model: SteppingModel[Any]):
        super().__init__()
        self.model = model

    def forward(
        self,
        values: BatchValues,
        gaps: BatchTimes,
        controls: Float[Tensor, "batch time control"] | None = None,
    ) -> tuple[Values, State, Lengths]:
        """Last values, the state after the update there, and the first step.

        Values and controls are scaled, NaN where missing. `gaps` are times since the observation
        before, in the model's unit, 0 for the first.
        """
        model = self.model
        inputs = model.encoder_inputs(values, gaps)
        # Nothing was predicted yet: what is missing reads as the center of its feature.
        value, shown = values[:, 0].nan_to_num(), inputs[:, 0].nan_to_num()
        state = model.initial_state(values.shape[0])
        now = None if controls is None else controls[:, 0]
        state = model.update(state, model.encode(shown, now, torch.zeros_like(gaps[:, 0])))
        for index in range(1, values.shape[1]):
            gap, drive = gaps[:, index], None
            if now is not None and model.crosses_controls:
                drive = HeldControls(now, gap[:, None], torch.zeros_like(now)[:, None])
            moved, shown = model.move(state, gap, drive), inputs[:, index]
            if model.config.missing:
                own, own_inputs = model.ends(model.segments(state, value, gap, drive)[0], gap)
                value, shown = filled(values[:, index], own), filled(shown, own_inputs)
            else:
                value = values[:, index]
            now = None if controls is None else controls[:, index]
            state = model.update(moved, model.encode(shown, now, gap))
        return value, state, model.next_steps(state)


class Stepper(nn.Module):
    """Takes one step of a rollout: along a segment, and the update at its end."""

    def __init__(self, model: SteppingModel[Any]):
        super().__init__()
        self.model = model

    def forward(
        self,
        values: Values,
        state: State,
        lengths: Lengths,
        controls: Float[Tensor, "rows control"] | None = None,
        held: Float[Tensor, "rows control"] | None = None,
        changes: Float[Tensor, "rows changes"] | None = None,
        jumps: Float[Tensor, "rows changes control"] | None = None,
    ) -> tuple[Values, State, Lengths]:
        """Values and state at the next knot, `lengths` later, and the step from there.

        `controls` are those of the next knot. The rest is for controls that drive the motion
        (`HeldControls`).
        """
        drive = _held(held, changes, jumps)
        segments, _ = self.model.segments(state, values, lengths, drive)
        return take_step(self.model, segments, state, lengths, controls, drive)


class Query(nn.Module):
    """Predicts inside segments."""

    def __init__(self, model: SteppingModel[Any]):
        super().__init__()
        self.model = model

    def forward(
        self,
        values: Values,
        state: State,
        lengths: Lengths,
        index: Int[Tensor, " queries"],
        offsets: Float[Tensor, " queries"],
        held: Float[Tensor, "rows control"] | None = None,
        changes: Float[Tensor, "rows changes"] | None = None,
        jumps: Float[Tensor, "rows changes control"] | None = None,
    ) -> Float[Tensor, "queries dim"]:
        """Predictions at `offsets` from the start of the segments `index`, in scaled units. The
        segments begin with these values and states, and last these lengths."""
        drive = _held(held, changes, jumps)
        segments, _ = self.model.segments(state, values, lengths, drive)
        drive = None if drive is None else drive.pick(index)
        return self.model.predict(segments, index[:, None], offsets[:, None], drive)[0][:, 0]


class FixedRollout(nn.Module):
    """A whole rollout in at most so many updates, in the units of the data, for `torch.export`.

    What a rollout decides row by row, when to stop, is decided by `updates` here: rows that have
    arrived stand still. Times that are not reached are NaN.

    A row's last query is its `until`, where the last segment is cut off. Where a moment's
    prediction must not depend on the others asked for, end every row's queries with a fixed time.
    """

    center: Tensor
    scale: Tensor
    control_center: Tensor
    control_scale: Tensor

    def __init__(self, model: Model[Any], updates: int):
        super().__init__()
        require_number("updates", updates, 1, whole=True)
        self.reader, self.updates = ContextReader(as_exportable(model)), updates
        config = model.config
        for name in ("center", "scale", "control_center", "control_scale"):
            self.register_buffer(name, torch.tensor(getattr(config, name), dtype=torch.float64))

    def forward(
        self,
        times: BatchTimes,
        values: BatchValues | UInt8[Tensor, "batch time dim"],
        queries: Float[Tensor, "batch queries"],
        controls: Float[Tensor, "batch time control"] | None = None,
        later_times: Float[Tensor, "batch later"] | None = None,
        later: Float[Tensor, "batch later control"] | None = None,
    ) -> Float[Tensor, "batch queries dim"]:
        """Predictions at `queries`, from a context of `num_context` observations.

        Times are in double precision. `later` are controls after the context, from `later_times`
        on. Values of `uint8` are images, as in `Sequences`. Nothing is checked: an exported program
        cannot raise.
        """
        model = self.reader.model
        unit, dtype = model.config.time_unit, next(model.parameters()).dtype
        values = values.to(dtype) / 255 if values.dtype == torch.uint8 else values
        signal, scaled = None, None
        if controls is not None:
            parts = [controls] if later is None else [controls, later]
            stamps = [times[:, -1:]] if later_times is None else [times[:, -1:], later_times]
            every = (torch.cat(parts, dim=1) - self.control_center) / self.control_scale
            every, count = every.to(dtype), controls.shape[1]
            scaled = every[:, :count]
            signal = ControlSignal(torch.cat(stamps, dim=1), every[:, count - 1 :], unit)
        gaps = (times.diff(dim=1, prepend=times[:, :1]) / unit).to(dtype)
        start = self.reader(((values - self.center) / self.scale).to(dtype), gaps, scaled)
        predicted = _fixed(model, start, times[:, -1], queries, signal, self.updates)
        return torch.addcmul(self.center, predicted.double(), self.scale).to(dtype)


def _fixed(
    model: SteppingModel[Any],
    start: tuple[Tensor, Tensor, Tensor],
    knot: Float[Tensor, " batch"],
    queries: Float[Tensor, "batch queries"],
    signal: ControlSignal | None,
    updates: int,
) -> Float[Tensor, "batch queries dim"]:
    """Predictions at times, in scaled units, by so many segments for every row."""
    (value, state, wanted), end, unit = start, queries.amax(1), model.config.time_unit
    rows = torch.arange(knot.shape[0], device=knot.device)
    shortest = max(model.min_step - SAME_TIME, SAME_TIME) * unit
    driven = signal if model.crosses_controls else None
    knots, columns = [], []
    for _ in range(updates):
        limit = end
        if signal is not None and driven is None:
            limit = limit.minimum(signal.next_change(rows, knot))
        after = knot + wanted.to(limit.dtype) * unit
        after = torch.where(limit - after < shortest, limit, after)
        # Rows that have arrived go on by a unit, which nothing asks for.
        after = torch.where(knot < end, after, knot + unit)
        lengths = ((after - knot) / unit).to(value.dtype)
        drive = None if driven is None else Drive(driven, rows, knot)
        knots.append(torch.where(knot < end, knot, torch.inf) if knots else knot)
        columns.append(model.segments(state, value, lengths, drive)[0])
        controls = None if signal is None else signal.at(rows, after)
        value, state, wanted = take_step(model, columns[-1], state, lengths, controls, drive)
        knot = after
    every = torch.stack(knots, dim=1)
    segments = type(columns[0])(*(torch.cat(parts) for parts in zip(*columns, strict=True)))
    # The left limit at a knot, also where a query differs from it by rounding.
    nudge = 1e-10 * (end - every[:, 0]) + 4 * torch.finfo(end.dtype).eps * end.abs()
    number = ((every[:, None] + nudge[:, None, None] < queries[..., None]).sum(2) - 1).clamp(min=0)
    begins = every.gather(1, number)
    drive = None if driven is None else Drive(driven, rows, begins)
    offsets = ((queries - begins) / unit).to(value.dtype)
    predicted, _ = model.predict(segments, number * rows.shape[0] + rows[:, None], offsets, drive)
    inside = (queries >= every[:, :1]) & (queries <= knot[:, None])
    return torch.where(inside[..., None], predicted, torch.nan)


def take_step(
    model: SteppingModel[Any],
    segments: Any,
    state: State,
    lengths: Lengths,
    controls: Float[Tensor, "rows control"] | None,
    drive: Drive | None,
) -> tuple[Values, State, Lengths]:
    """Values and state after segments and the updates at their ends, and the steps from there."""
    values, inputs = model.ends(segments, lengths)
    moved = model.move(state, lengths, drive, segments)
    state = model.update(moved, model.encode(inputs, controls, lengths))
    return values, state, model.next_steps(state)


def _held(*parts: Tensor | None) -> HeldControls | None:
    held, changes, jumps = parts
    if held is None or changes is None or jumps is None:
        return None
    return HeldControls(held, changes, jumps)


def as_exportable(model: Any) -> SteppingModel[Any]:
    """The model, if it can be exported: it steps, and integrates nothing numerically."""
    name = type(model).__name__
    if not isinstance(model, SteppingModel):
        raise InvalidInput(
            f"only models that move from update to update can be exported; a {name} does not. "
            "Export the models of an ensemble one by one."
        )
    with torch.no_grad():
        state = model.initial_state(1)
        values, lengths = state.new_zeros(1, model.config.dim), state.new_ones(1)
        _, evaluations = model.segments(state, values, lengths, None)
    if evaluations:
        raise InvalidInput(
            f"a model that integrates an ODE numerically cannot be exported; a {name} does."
        )
    if state.dtype != torch.float32:
        raise InvalidInput(
            f"only models in single precision can be exported; this one has {state.dtype}. Convert "
            "a copy: copy.deepcopy(model).float()."
        )
    return model
