"""The one loop over time: every row moves from knot to knot, at its own pace.

Rollouts, training and the reading of a context are this loop. They differ in two things: a policy
says where segments end, and a source says what a row sees there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from skipstone.models.arithmetic import filled, select_rows
from skipstone.models.base import SteppingModel
from skipstone.models.controls import ControlSignal, Drive
from skipstone.models.typing import (
    BatchIndex,
    BatchMask,
    BatchTimes,
    BatchValues,
    Lengths,
    Rows,
    State,
    Values,
)
from skipstone.sequences import Sequences


class Front(NamedTuple):
    """Rows of a batch, each just updated at a knot."""

    rows: Rows
    """Which rows of the batch they are."""

    knot: Shaped[Tensor, " rows"]
    """Where each of them is: an observation's index in data, a time in a rollout."""

    values: Values
    """Where its next segment begins."""

    state: State
    """The state after the update."""


class Stop(NamedTuple):
    """Where the segments of a front end."""

    knot: Shaped[Tensor, " rows"]
    """An observation's index, or a time."""

    lengths: Lengths
    """How long the segments last, in the model's unit of time."""

    going: Int[Tensor, " going"]
    """The rows of the front that update there. The others have arrived."""


class Arrival(NamedTuple):
    """Rows that go on, just before their update."""

    values: Float[Tensor, "going dim"]
    state: Float[Tensor, "going state"]
    encoded: Float[Tensor, "going encoded"]


@runtime_checkable
class Policy(Protocol):
    """Decides where each segment ends."""

    def stop(self, front: Front) -> Stop:
        """Where the segments that begin here end."""
        ...


@runtime_checkable
class Source(Protocol):
    """Says what a row sees at its next knot: an observation, or its own prediction."""

    def arrive(self, front: Front, stop: Stop) -> Arrival:
        """Values, moved state and encoded input of the rows that go on."""
        ...


class Round(NamedTuple):
    """One turn of the loop: where rows were, where their segments end, how they arrived."""

    front: Front
    stop: Stop
    arrival: Arrival


def walk(
    model: SteppingModel[Any], front: Front, policy: Policy, source: Source
) -> Iterator[Round]:
    """Move from knot to knot until every row has arrived."""
    while len(front.rows):
        stop = policy.stop(front)
        arrival = source.arrive(front, stop)
        yield Round(front, stop, arrival)
        front = Front(
            pick(front.rows, stop.going),
            pick(stop.knot, stop.going),
            arrival.values,
            model.update(arrival.state, arrival.encoded) if len(stop.going) else arrival.state,
        )


def pick(values: Tensor, going: Int[Tensor, " going"]) -> Tensor:
    """The rows that go on; the tensor itself if all do."""
    return values if len(going) == len(values) else values.index_select(0, going)


class TeacherForcing:
    """Source: rows see the observations of a batch, and their own predictions of missing values.

    `shown` is what the encoder sees of the values, if not the values themselves; segments begin at
    the values all the same. Observations in `together` are encoded in one product, which pays where
    all of them are known to be knots and nothing is missing.
    """

    def __init__(
        self, model: SteppingModel[Any], batch: Sequences, shown: BatchValues, together: range
    ):
        self._model, self._width, self._together = model, batch.mask.shape[1], together
        self.clock = model.clock(batch.times)
        gaps = self.clock.diff(dim=1, prepend=self.clock[:, :1]).to(shown.dtype)
        inputs = model.encoder_inputs(shown, gaps)
        self._values, self._inputs = batch.values.flatten(0, 1), inputs.flatten(0, 1)
        self._controls = None if batch.controls is None else batch.controls.flatten(0, 1)
        self.signal = None
        if batch.controls is not None and model.crosses_controls:
            self.signal = ControlSignal(self.clock, batch.controls, 1.0)
        self._missing = not batch.complete
        self._known = inputs[:0]
        if self._missing:
            return

        def by_time(values: Tensor) -> Tensor:
            """Time first: a round takes one observation of all rows."""
            return values[:, together.start : together.stop].transpose(0, 1)

        controls = None if batch.controls is None else by_time(batch.controls)
        self._known = model.encode(by_time(inputs), controls, by_time(gaps))

    def begin(self) -> Front:
        """All rows, updated at their first observation."""
        state = self._model.initial_state(len(self.clock))
        rows = torch.arange(len(self.clock), device=state.device)
        place = rows * self._width
        values = select_rows(self._values, place)
        if self._missing:
            # Nothing was predicted yet: what is missing reads as the center of its feature.
            values = values.nan_to_num()
            inputs = select_rows(self._inputs, place).nan_to_num()
            encoded = self._encode(inputs, place, torch.zeros_like(values[:, 0]))
        else:
            encoded = self._known[0]
        return Front(rows, torch.zeros_like(rows), values, self._model.update(state, encoded))

    def arrive(self, front: Front, stop: Stop) -> Arrival:
        """Move the rows that go on to their next observation, and encode that."""
        rows, index = pick(front.rows, stop.going), pick(stop.knot, stop.going)
        lengths, state = pick(stop.lengths, stop.going), pick(front.state, stop.going)
        if len(rows) == 0:
            return Arrival(front.values[:0], state, state)
        place, drive = rows * self._width + index, None
        if self.signal is not None:
            drive = Drive(self.signal, rows, self.clock[rows, pick(front.knot, stop.going)])
        moved = self._model.move(state, lengths, drive)
        values = select_rows(self._values, place)
        # Rows are in step as long as every observation is a knot.
        first = int(index[0]) - self._together.start
        if first < len(self._known):
            return Arrival(values, moved, pick(self._known[first], rows))
        inputs = select_rows(self._inputs, place)
        if self._missing:
            begins = pick(front.values, stop.going)
            values, inputs = self._fill(values, inputs, (state, begins, lengths, drive))
        return Arrival(values, moved, self._encode(inputs, place, lengths))

    @torch.no_grad()
    def _fill(self, values: Values, inputs: Tensor, segment: Any) -> tuple[Tensor, Tensor]:
        """The model's own predictions in the place of missing values; data for the gradient."""
        segments, _ = self._model.segments(*segment)
        own, own_inputs = self._model.ends(segments, segment[2])
        return filled(values, own), filled(inputs, own_inputs)

    def _encode(self, inputs: Tensor, place: Rows, lengths: Lengths) -> Tensor:
        controls = None if self._controls is None else select_rows(self._controls, place)
        return self._model.encode(inputs, controls, lengths)


class GivenKnots:
    """Policy: segments end at knots that are known."""

    def __init__(
        self, at: BatchMask, end: Int[Tensor, " batch"], clock: BatchTimes, dtype: torch.dtype
    ):
        """`at` marks the knots, and `end` is the observation at which each row arrives."""
        following = next_true(at).roll(-1, dims=1)
        there = at.gather(1, following)
        there[:, -1] = False
        self._next = torch.where(there, following, end[:, None])
        self._goes_on, self._clock, self._dtype = there, clock, dtype

    def stop(self, front: Front) -> Stop:
        """Look it up."""
        following = self._next[front.rows, front.knot]
        going = self._goes_on[front.rows, front.knot].nonzero()[:, 0]
        elapsed = self._clock[front.rows, following] - self._clock[front.rows, front.knot]
        return Stop(following, elapsed.to(self._dtype), going)


class EveryObservation:
    """Policy: every observation before `stop` is a knot, of all rows, which are in step."""

    def __init__(self, clock: BatchTimes, stop: int, dtype: torch.dtype):
        self._gaps, self._stop = clock.diff(dim=1).to(dtype), stop
        self._all = torch.arange(len(clock), device=clock.device)

    def stop(self, front: Front) -> Stop:
        """The next observation, or nowhere after the last."""
        index = int(front.knot[0])
        if index + 1 >= self._stop:
            return Stop(front.knot, front.values.new_zeros(len(front.rows)), self._all[:0])
        return Stop(front.knot + 1, self._gaps[:, index], self._all)


def next_true(mask: BatchMask) -> BatchIndex:
    """Index of the first True at or after each place of a row; the last place if there is none."""
    index = torch.arange(mask.shape[1], device=mask.device)
    found = torch.where(mask, index, mask.shape[1] - 1)
    return found.flip(1).cummin(dim=1).values.flip(1)


class Intervals(NamedTuple):
    """All intervals between neighbouring observations of a batch, in the order of the rounds."""

    before: Float[Tensor, "intervals dim"]
    """The observation at the start."""

    state: Float[Tensor, "intervals state"]
    """The state after the update there."""

    moved: Float[Tensor, "intervals state"]
    """The state just before the update at the end."""

    lengths: Float[Tensor, " intervals"]
    """Time between the two, in the model's unit."""

    place: Int[Tensor, " intervals"]
    """Where the observation at the end is in the flattened batch."""


def every_interval(model: SteppingModel[Any], batch: Sequences, shown: BatchValues) -> Intervals:
    """Teacher-force a model that updates at every observation: states and targets."""
    width, parts = batch.mask.shape[1], []
    source = TeacherForcing(model, batch, shown, range(width))
    policy = GivenKnots(batch.mask, batch.lengths - 1, source.clock, batch.values.dtype)
    for front, stop, arrival in walk(model, source.begin(), policy, source):
        rows, values, state, index, lengths = (
            pick(part, stop.going)
            for part in (front.rows, front.values, front.state, stop.knot, stop.lengths)
        )
        place = rows * width + index
        parts.append((values, state, arrival.state, lengths, place))
    return Intervals(*(torch.cat(column) for column in zip(*parts, strict=True)))


def read_context(
    model: SteppingModel[Any], context: Sequences
) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, "batch state"]]:
    """The last values, and the state after an update at each observation of a context.

    As long as all rows are the same, one is read for all of them: the candidates of a planner
    differ only in their last control.
    """
    front = None
    for rows, part in _shared_and_own(model, context):
        source = TeacherForcing(model, rows, rows.values, part)
        policy = EveryObservation(source.clock, part.stop, rows.values.dtype)
        if front is None:
            front = source.begin()
        else:
            every = torch.arange(len(rows), device=rows.times.device)
            front = Front(
                every,
                front.knot.expand(len(rows)),
                front.values.expand(len(rows), -1),
                front.state.expand(len(rows), -1),
            )
        *_, last = walk(model, front, policy, source)
        front = last.front
    assert front is not None
    return front.values.expand(len(context), -1), front.state.expand(len(context), -1)


def _shared_and_own(model: SteppingModel[Any], context: Sequences) -> list[tuple[Sequences, range]]:
    """The observations that all rows of a context share, as one row, and those after them."""
    count, parts = context.mask.shape[1], [context.values, context.times[..., None]]
    parts += [] if context.controls is None else [context.controls]
    state = model.initial_state(len(context))
    if any(part.requires_grad for part in parts) or not bool((state == state[:1]).all()):
        return [(context, range(count))]
    same = torch.stack([(part == part[:1]).all(2).all(0) for part in parts]).all(0)
    alike = int(same.long().cumprod(0).sum())
    shared = [(context[:1], range(alike))] if alike else []
    return [*shared, (context, range(alike, count))] if alike < count else shared
