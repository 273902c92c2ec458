"""`find_knots`: the longest segments within tolerance, by a forward line search.

Rows of a batch walk from knot to knot together, a round for each knot. The search looks ahead
along every row's line for where it has to stop; then all rows that stop are updated at once. A
training step is the same walk with gradients, so nothing is computed twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import select_rows, squared_error
from skipstone.models.controls import changes
from skipstone.models.stepping import Stepper
from skipstone.sequences import Sequences

FIRST_BLOCK = 4
"""Observations decoded ahead after the context. After that it is one more than the last segments
were long on average; a block that holds is followed by one twice as long. Longer blocks mean fewer,
larger products, and more points decoded in vain."""

_SAME_TIME = 1e-6
"""Relative difference below which two lengths of time differ by rounding."""


@runtime_checkable
class LineModel(Stepper[Any], Protocol):
    """What the search asks of a model: steps whose segments can be read before they end."""

    @property
    def min_step(self) -> float:
        """The shortest step, in the model's unit of time."""
        ...

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        """The batch on the model's device and dtype, checked to fit the model."""
        ...

    def clock(self, times: Float[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        """Times since each row's first, in the model's unit."""
        ...

    def bounded_step(self, state: Float[Tensor, "rows state"]) -> Float[Tensor, " rows"]:
        """Predicted length of a segment, as a rollout takes it."""
        ...

    def lines(self, state: Float[Tensor, "rows state"], values: Float[Tensor, "rows dim"]) -> Any:
        """The segments that begin with this state at these values."""
        ...

    def along(
        self, lines: Any, offsets: Float[Tensor, "rows points"]
    ) -> Float[Tensor, "rows points dim"]:
        """Predictions at several offsets from the start of each segment."""
        ...


@dataclass(frozen=True)
class Knots:
    """The observations of a batch at which the cell updates."""

    at: Bool[Tensor, "batch time"]
    """True where a segment begins. The last observation of a row never is: nothing follows it."""

    cut: Bool[Tensor, "batch time"]
    """True at the start of segments that the end of the data or a change of control cut short,
    so that their length is only a lower bound. In a walk with `own_steps`, of those for which that
    is true of their reach."""

    @property
    def count(self) -> Int[Tensor, " batch"]:
        """Number of knots of each row."""
        return self.at.sum(1)


def find_knots(
    model: LineModel,
    batch: Sequences,
    tolerance: float,
    generator: torch.Generator | None = None,
    explore: float | Bool[Tensor, "batch time"] = 0.01,
) -> Knots:
    """Search the longest segments whose error stays below the tolerance (equation 8).

    A segment always takes its first step, and lasts at least the model's shortest step, as in a
    rollout. It goes on to the next observation while the error at every observation it covers is
    below `tolerance`, and with probability `explore` regardless (appendix A.2), which is how a
    model that only ever took single steps gets to try longer ones.
    Instead of a probability, `explore` can be what was drawn: True where a segment goes on.
    Every observation of the context, and every change of control, is a knot.
    """
    batch = model.prepare(batch, max(2, model.config.num_context))
    with torch.no_grad():
        return walk(model, batch, LookAhead(model, batch, tolerance, generator, explore)).knots


class Stop(NamedTuple):
    """Where segments end."""

    knot: Int[Tensor, " rows"]
    """The observation at which each ends, and the next one begins; the last one of a row if it is
    the row's last segment."""

    reach: Int[Tensor, " rows"]
    """The observation at which it should have ended, which is what a predicted step is taught."""

    cut: Bool[Tensor, " rows"]
    """Whether its reach is only a lower bound: the data or the control did not go on."""


@runtime_checkable
class Stops(Protocol):
    """Who says where the rows of a walk stop next."""

    def following(
        self,
        lines: Any,
        state: Float[Tensor, "rows state"],
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> Stop:
        """Where the segments of some rows end, given their lines and states, where they begin, and
        how long the segments before them were."""
        ...


@dataclass(frozen=True)
class Walk:
    """A batch walked from knot to knot, with everything that was computed on the way."""

    knots: Knots
    """Where the cell updated."""

    reach: Int[Tensor, "batch time"]
    """At a knot, the observation that its segment should have reached: where it ends, unless it
    ended where the model would have ended it."""

    number: Int[Tensor, "batch rounds"]
    """The number of the segment that a row begins in a round; segments are numbered round by
    round. Rows that have no more knots have none there, and some number stands for it."""

    states: Float[Tensor, "segments state"]
    """The state after each update."""

    lines: Any
    """The segments."""


def walk(
    model: LineModel,
    batch: Sequences,
    stops: Stops,
    seen: Float[Tensor, "batch time dim"] | None = None,
) -> Walk:
    """Update every row at every observation of its context, and then wherever it has to stop.

    `seen` is what the model reads of the observations, if not their values; segments begin at the
    values all the same.
    """
    values, width = batch.values.flatten(0, 1), batch.mask.shape[1]
    clock, context = model.clock(batch.times), model.config.num_context
    gaps = clock.diff(dim=1, prepend=clock[:, :1]).to(values.dtype)
    readings = model.readings(batch.values if seen is None else seen, gaps).flatten(0, 1)
    controls = None if batch.controls is None else batch.controls.flatten(0, 1)
    at, cut = torch.zeros_like(batch.mask), torch.zeros_like(batch.mask)
    # A segment of the context ends at the next observation.
    reach = torch.arange(1, width + 1, device=at.device).repeat(len(batch), 1)
    rows = torch.arange(len(batch), device=at.device)
    knot, length = torch.zeros_like(rows), torch.full_like(rows, FIRST_BLOCK - 1)
    last, state = batch.lengths - 1, model.initial_state(len(batch))
    places = rows[:, None] * width + torch.arange(context, device=rows.device)
    known = _encode(model, readings, controls, places.T.flatten(), gaps[:, :context].T.flatten())
    known = known.unflatten(0, (context, len(batch)))
    numbers, states, starts, pieces, total, drawn = [], [], [], [], 0, 0
    lines: Any = None
    for index in itertools.count():
        if index < context:
            following = torch.where(last[rows] > index, index, NEVER)
        else:
            stop = stops.following(lines, state, rows, knot, length)
            reach[rows, knot], cut[rows, knot] = stop.reach, stop.cut
            following = torch.where(stop.knot < last[rows], stop.knot, NEVER)
        going = (following < NEVER).nonzero()[:, 0]
        if len(going) < len(rows):
            rows, following, knot, length = (
                part[going] for part in (rows, following, knot, length)
            )
            state = select_rows(state, going)
        if len(rows) == 0:
            break
        place = rows * width + following
        elapsed = (clock[rows, following] - clock[rows, knot]).to(values.dtype)
        if index < context:
            encoded = known[index] if len(rows) == len(batch) else select_rows(known[index], rows)
        else:
            encoded = _encode(model, readings, controls, place, elapsed)
            length = following - knot
        knot = following
        at[rows, knot] = True
        # The first of these times is zero, and moving by zero is the identity.
        state = model.update(model.move(state, elapsed), encoded)
        numbers.append(torch.zeros_like(last))
        numbers[-1][rows] = torch.arange(total, total + len(rows), device=rows.device)
        total += len(rows)
        states.append(state)
        starts.append(select_rows(values, place))
        # Nobody looks along the lines of the context, so they are made together, with the first
        # that somebody does look along.
        if index >= context - 1:
            pieces.append(model.lines(torch.cat(states[drawn:]), torch.cat(starts[drawn:])))
            lines = type(pieces[-1])(*(part[-len(rows) :] for part in pieces[-1]))
            drawn = len(states)
    if drawn < len(states):
        pieces.append(model.lines(torch.cat(states[drawn:]), torch.cat(starts[drawn:])))
    joined = type(pieces[0])(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))
    return Walk(Knots(at, cut), reach, torch.stack(numbers, dim=1), torch.cat(states), joined)


def _encode(
    model: LineModel,
    readings: Float[Tensor, "points reading"],
    controls: Float[Tensor, "points control"] | None,
    place: Int[Tensor, " rows"],
    elapsed: Float[Tensor, " rows"],
) -> Float[Tensor, "rows encoded"]:
    """What the cell reads at some of the observations."""
    inputs = None if controls is None else select_rows(controls, place)
    return model.encode(select_rows(readings, place), inputs, elapsed)


class LookAhead:
    """Stops where a line leaves the tolerance: decodes along it, a block of observations at a
    time, until it misses. A share of the segments, `own_steps`, drawn for where they begin, stop
    where the model itself would have ended them, at the nearest observation."""

    def __init__(
        self,
        model: LineModel,
        batch: Sequences,
        tolerance: float,
        generator: torch.Generator | None,
        explore: float | Bool[Tensor, "batch time"],
        own_steps: float | Bool[Tensor, "batch time"] = 0.0,
    ):
        if not (tolerance >= 0):
            raise InvalidInput(
                "tolerance must be zero or more, the squared error a step may reach; got "
                f"{tolerance}."
            )
        self._model, self._tolerance = model, tolerance
        self._values, self._width = batch.values.flatten(0, 1), batch.mask.shape[1]
        clock, last = model.clock(batch.times), batch.lengths - 1
        self._clock = clock.flatten()
        # No step of a rollout is shorter, and no segment that it learns from need be. On a grid
        # with a shortest step of one observation, that is the next one.
        least = (clock + model.min_step * (1 - _SAME_TIME)).contiguous()
        self._least = torch.searchsorted(clock.contiguous(), least).flatten()
        # Exploration can only put a stop off, to the next observation where none was drawn; a
        # change of control stops every line. Both are known for all observations in advance.
        explored = _drawn("explore", batch, generator, explore)
        self._allowed = next_true(~explored).flatten()
        own = _drawn("own_steps", batch, generator, own_steps).flatten()
        self._own = own if bool(own.any()) else None
        ends = torch.zeros_like(batch.mask).scatter_(1, last[:, None], True)
        self._changed = None
        if batch.controls is not None:
            changed = changes(batch.controls)
            self._changed = changed.flatten()
            ends = ends | changed
        self._last, self._end = last, next_true(ends).flatten()

    @torch.no_grad()
    def following(
        self,
        lines: Any,
        state: Float[Tensor, "rows state"],
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> Stop:
        """Look ahead until every row has missed, or has come to an end.

        A line that first misses at observation b stops at the one before, but always takes its
        first step, and lasts as long as the shortest step.
        """
        row = rows * self._width
        knot = row + knot
        last, end = row + self._last[rows], row + self._end[knot + 1]
        missed = self._first_misses(lines, knot, end, block=1 + int(length.double().mean()))
        stop = torch.maximum(missed - 1, knot + 1).maximum(row + self._least[knot]).minimum(last)
        stop = (row + self._allowed[stop]).minimum(end)
        stop = torch.where(missed < NEVER, stop, end)
        cut = stop == last if self._changed is None else (stop == last) | self._changed[stop]
        reach = stop - row
        if self._own is not None:
            nearest = self._nearest(rows, knot, end, self._model.bounded_step(state))
            stop = torch.where(self._own[knot], nearest.maximum(row + self._least[knot]), stop)
            stop = stop.minimum(end)
        return Stop(stop - row, reach, cut)

    def _nearest(
        self,
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        end: Int[Tensor, " rows"],
        step: Float[Tensor, " rows"],
    ) -> Int[Tensor, " rows"]:
        """The observation nearest to where a rollout would end a step; like there, a remainder
        shorter than the shortest step is taken in."""
        wanted = self._clock[knot] + step
        clock = self._clock.unflatten(0, (-1, self._width))[rows]
        after = torch.searchsorted(clock, wanted[:, None]).clamp(1, self._width - 1)
        middle = (clock.gather(1, after - 1) + clock.gather(1, after))[:, 0] / 2
        nearest = rows * self._width + after[:, 0] - (wanted < middle).long()
        remains = self._clock[end] - wanted
        return torch.where(remains < self._model.min_step * (1 - _SAME_TIME), end, nearest)

    def _first_misses(
        self, lines: Any, knot: Int[Tensor, " rows"], end: Int[Tensor, " rows"], block: int
    ) -> Int[Tensor, " rows"]:
        """The first observation up to its end that each line misses, or `NEVER`."""
        missed = torch.full_like(knot, NEVER)
        start, going, reached = self._clock[knot], torch.arange(len(knot), device=knot.device), knot
        while True:
            ahead = torch.arange(1, block + 1, device=knot.device)
            place = (reached[:, None] + ahead).minimum(end[:, None])
            offsets = (self._clock[place] - start[:, None]).to(self._values.dtype)
            observed = select_rows(self._values, place.flatten()).reshape(*place.shape, -1)
            error = squared_error(self._model.along(lines, offsets), observed)
            here = torch.where(error < self._tolerance, NEVER, place).amin(1)
            missed[going] = here
            reached = place[:, -1]
            unknown = ((here == NEVER) & (reached < end)).nonzero()[:, 0]
            if len(unknown) == 0:
                return missed
            going, reached, start, end = (part[unknown] for part in (going, reached, start, end))
            lines = type(lines)(*(select_rows(part, unknown) for part in lines))
            block = 2 * block


def next_true(mask: Bool[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """The index of the first True at or after each place of its row; the last, if there is none."""
    index = torch.arange(mask.shape[1], device=mask.device)
    found = torch.where(mask, index, mask.shape[1] - 1)
    return found.flip(1).cummin(dim=1).values.flip(1)


class Planned:
    """Stops at knots that are known."""

    def __init__(self, knots: Knots, batch: Sequences):
        # The last observation of a row is never a knot: found there, there is none.
        following = next_true(knots.at).roll(-1, dims=1)
        there = knots.at.gather(1, following)
        there[:, -1] = False
        end = batch.lengths[:, None] - 1
        self._next, self._cut = torch.where(there, following, end), knots.cut

    def following(
        self,
        lines: Any,
        state: Float[Tensor, "rows state"],
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> Stop:
        """Look it up."""
        following = self._next[rows, knot]
        return Stop(following, following, self._cut[rows, knot])


def _drawn(
    name: str,
    batch: Sequences,
    generator: torch.Generator | None,
    chance: float | Bool[Tensor, "batch time"],
) -> Bool[Tensor, "batch time"]:
    """Where something is to happen: drawn for all observations at once, so that it does not depend
    on how the search goes about it; or what was drawn before."""
    if isinstance(chance, Tensor):
        return chance.to(batch.mask.device)
    if not 0 <= chance <= 1:
        raise InvalidInput(f"{name} must be a probability between 0 and 1; got {chance}.")
    if chance == 0:
        return torch.zeros_like(batch.mask)
    device = "cpu" if generator is None else generator.device
    drawn = torch.rand(batch.mask.shape, generator=generator, device=device) < chance
    return drawn.to(batch.mask.device)


NEVER = torch.iinfo(torch.int64).max
"""The index of a knot that does not come."""
