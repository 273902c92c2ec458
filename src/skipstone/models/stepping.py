"""The loop of a rollout: every row steps from knot to knot at its own times.

One step of a model is arithmetic (`Stepper`); the loop over time is here, once for all models.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import ModelConfig
from skipstone.models.controls import ControlSignal
from skipstone.path import Path, Status
from skipstone.sequences import Sequences

# Times closer than this, in the model's unit, are the same time.
_SAME_TIME = 1e-9

_Segments = TypeVar("_Segments")


@runtime_checkable
class Stepper(Protocol[_Segments]):
    """What the loop asks of a model. Lengths are in the model's unit of time.

    A segment is whatever a model needs to predict between two updates: a named tuple of tensors
    with one row per segment.
    """

    @property
    def config(self) -> ModelConfig:
        """Sizes and units of the model."""
        ...

    def initial_state(self, rows: int) -> Float[Tensor, "rows state"]:
        """The state before the first observation."""
        ...

    def readings(
        self, values: Float[Tensor, "batch time dim"], gaps: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time reading"]:
        """What the encoder is shown of observations that follow each other after these gaps."""
        ...

    def encode(
        self,
        readings: Float[Tensor, "*rows reading"],
        controls: Float[Tensor, "*rows control"] | None,
        elapsed: Float[Tensor, "*rows"],
    ) -> Float[Tensor, "*rows encoded"]:
        """What the cell reads at a knot, some time after the one before."""
        ...

    def update(
        self, state: Float[Tensor, "rows state"], encoded: Float[Tensor, "rows encoded"]
    ) -> Float[Tensor, "rows state"]:
        """The cell update at a knot, from the state just before it."""
        ...

    def move(
        self, state: Float[Tensor, "rows state"], lengths: Float[Tensor, " rows"]
    ) -> Float[Tensor, "rows state"]:
        """The state just before the next knot."""
        ...

    def segments(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> _Segments:
        """The segments that begin with this state at these values."""
        ...

    def advance(
        self,
        segments: _Segments,
        state: Float[Tensor, "rows state"],
        lengths: Float[Tensor, " rows"],
    ) -> tuple[
        Float[Tensor, "rows dim"], Float[Tensor, "rows reading"], Float[Tensor, "rows state"]
    ]:
        """Prediction, what the encoder is shown of it, and state at the end of each segment."""
        ...

    def read(
        self,
        segments: _Segments,
        index: Int[Tensor, "batch time"],
        offsets: Float[Tensor, "batch time"],
    ) -> tuple[Float[Tensor, "batch time dim"], int | Int[Tensor, " batch"]]:
        """Predictions at some time after the start of some segment of each row.

        Beside them, how many evaluations of a right-hand side each row took.
        """
        ...


def roll_out(
    model: Stepper[Any],
    context: Sequences,
    until: float | Tensor,
    controls: Any,
    choose_lengths: Callable[[Float[Tensor, "rows state"]], Float[Tensor, " rows"]],
    max_updates: int | None = None,
    shortest: float = 0.0,
    evaluations: Callable[[Any], Int[Tensor, " segments"]] | None = None,
) -> Path:
    """Step from the end of the context until a time; rows that arrive leave the batch.

    A remainder below `shortest`, in the model's unit, is not worth an update: the segment before
    takes it in. `evaluations` tells, for models that integrate, what each segment took.
    """
    if max_updates is not None and max_updates < 1:
        raise InvalidInput(f"max_updates must be at least 1; got {max_updates}.")
    unit = model.config.time_unit
    context = context.tail(model.config.num_context)
    end = _end_times(until, context)
    signal = ControlSignal.after(context, controls, slack=_SAME_TIME * unit)
    state, values, now = read_context(model, context), context.values[:, -1], context.ends
    rows = torch.arange(len(context), device=now.device)
    status = torch.full_like(rows, Status.REACHED_END)
    rounds: list[tuple[Tensor, Tensor, Any]] = []
    stopped, ends = end.clone(), []
    for count in itertools.count(1):
        lengths = choose_lengths(state)
        step = lengths.to(now.dtype) * unit
        limit = end[rows]
        if signal is not None:
            limit = limit.minimum(signal.next_change(rows, now))
        following = _next_knot(now, step, limit, max(shortest - _SAME_TIME, _SAME_TIME) * unit)
        lengths = ((following - now) / unit).to(values.dtype)
        segments = model.segments(state, values, lengths)
        rounds.append((rows, now, segments))
        ends.append(following.detach())
        going = (ends[-1] < end[rows]).nonzero()[:, 0]
        if len(going) == 0:
            break
        if count == max_updates:
            status[rows[going]] = Status.MAX_UPDATES
            stopped[rows[going]] = following.detach()[going]
            break
        if len(going) < len(rows):
            rows, following, state, lengths = (
                part.index_select(0, going) for part in (rows, following, state, lengths)
            )
            segments = _pick(segments, going)
        values, readings, state = model.advance(segments, state, lengths)
        now = following
        inputs = None if signal is None else signal.at(rows, now)
        state = model.update(state, model.encode(readings, inputs, lengths))
    # Once for all rounds: a row whose step is not a number has left as if it had arrived.
    if bool(torch.cat(ends).isnan().any()):
        raise InvalidInput(
            "a step must be a finite number; the model predicts nan. Its weights or its context "
            "hold numbers that are not finite or far too large."
        )
    knots, table, segments = _assemble(rounds, len(context))

    def read(segment: Tensor, elapsed: Tensor) -> tuple[Tensor, int | Tensor]:
        return model.read(segments, table.gather(1, segment), (elapsed / unit).to(values.dtype))

    spent = torch.zeros_like(status)
    if evaluations is not None:
        spent = (evaluations(segments)[table] * knots.isfinite()).sum(1)
    return Path(read, knots, stopped, status, spent)


def read_context(
    model: Stepper[Any],
    context: Sequences,
    seen: Float[Tensor, "batch time dim"] | None = None,
) -> Float[Tensor, "batch state"]:
    """The state after an update at each observation of the context, or at what is `seen` of it.

    As long as all rows are the same, one is read for all of them: the candidates of a planner
    differ only in what they do at the end.
    """
    gaps = (context.times.diff(dim=1) / model.config.time_unit).to(context.values.dtype)
    gaps = torch.nn.functional.pad(gaps, (1, 0))
    readings = model.readings(context.values if seen is None else seen, gaps)
    state = model.initial_state(len(context))
    read = (
        [readings, gaps[..., None]]
        if context.controls is None
        else [readings, gaps[..., None], context.controls]
    )
    alike = _alike(state, read)

    def encode(rows: slice, indices: slice) -> Tensor:
        controls = None if context.controls is None else context.controls[rows, indices]
        return model.encode(readings[rows, indices], controls, gaps[rows, indices])

    if alike:
        together = encode(slice(1), slice(alike))
        state = _read(model, state[:1], together, gaps[:1, :alike])
    if alike < readings.shape[1]:
        state = state.expand(len(context), -1)
        apart = slice(alike, None)
        state = _read(model, state, encode(slice(None), apart), gaps[:, apart])
    return state.expand(len(context), -1)


def _read(
    model: Stepper[Any],
    state: Float[Tensor, "rows state"],
    encoded: Float[Tensor, "rows time encoded"],
    gaps: Float[Tensor, "rows time"],
) -> Float[Tensor, "rows state"]:
    for i in range(encoded.shape[1]):
        # The first gap of all is zero, and moving by zero is the identity.
        state = model.update(model.move(state, gaps[:, i]), encoded[:, i])
    return state


def _alike(state: Float[Tensor, "batch state"], read: list[Tensor]) -> int:
    """Observations up to which all rows of a context are the same; 0 if gradients tell them
    apart."""
    if any(part.requires_grad for part in read):
        return 0
    same = [(part == part[:1]).all(2).all(0) for part in read]
    together = torch.stack(same).all(0) & (state == state[:1]).all()
    return int(together.long().cumprod(0).sum())


def one_unit(state: Float[Tensor, "rows state"]) -> Float[Tensor, " rows"]:
    """Steps of one typical observation interval."""
    return torch.ones_like(state[:, 0])


def _next_knot(
    now: Float[Tensor, " rows"],
    step: Float[Tensor, " rows"],
    limit: Float[Tensor, " rows"],
    shortest: float,
) -> Float[Tensor, " rows"]:
    """Where each segment ends: after its step, or at its limit if that is about as near."""
    return torch.where(limit - (now + step) < shortest, limit, now + step)


def _end_times(until: float | Tensor, context: Sequences) -> Float[Tensor, " batch"]:
    end = torch.as_tensor(until, dtype=context.times.dtype, device=context.times.device)
    if end.ndim > 1 or (end.ndim == 1 and len(end) != len(context)):
        raise InvalidInput(
            f"until must be one time, or one per trajectory, shape ({len(context)},); got shape "
            f"{tuple(end.shape)}."
        )
    end = end.expand(len(context)).clone()
    early = (~((end > context.ends) & end.isfinite())).nonzero()
    if len(early):
        row = int(early[0])
        raise InvalidInput(
            "until must be a finite time after the context; the context of trajectory "
            f"{row} ends at {context.ends[row].item():.13g} and until is {end[row].item():.13g}."
        )
    return end


def _assemble(
    rounds: list[tuple[Tensor, Tensor, Any]], batch: int
) -> tuple[Float[Tensor, "batch segments"], Int[Tensor, "batch segments"], Any]:
    """Knots and the number of each row's segments in the list of all segments, as tables."""
    knots, table, start = [], [], 0
    for rows, now, _ in rounds:
        numbers = torch.arange(start, start + len(rows), device=rows.device)
        table.append(torch.zeros(batch, dtype=torch.long, device=rows.device))
        table[-1][rows] = numbers
        knots.append(now.new_full((batch,), torch.inf).index_put((rows,), now))
        start += len(rows)
    segments = [segments for _, _, segments in rounds]
    joined = type(segments[0])(*(torch.cat(parts) for parts in zip(*segments, strict=True)))
    return torch.stack(knots, dim=1), torch.stack(table, dim=1), joined


def _pick(segments: Any, index: Tensor) -> Any:
    return type(segments)(*(part.index_select(0, index) for part in segments))
