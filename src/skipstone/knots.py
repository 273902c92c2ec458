"""`find_knots`: the longest segments within tolerance, by a forward line search.

Rows of a batch walk from knot to knot together, a round for each knot. The search looks ahead
along every row's line for where it has to stop; then all rows that stop are updated at once. A
training step is the same walk with gradients, so nothing is computed twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import select_rows, squared_error
from skipstone.models.controls import changes
from skipstone.models.stepping import Stepper
from skipstone.sequences import Sequences

FIRST_BLOCK = 4
"""Observations decoded ahead after the context. After an update it is one more than the row's last
segment was long, since neighbours are alike; a block that holds is followed by one twice as long.
Longer blocks mean fewer, larger products, and more points decoded in vain."""


@runtime_checkable
class LineModel(Stepper[Any], Protocol):
    """What the search asks of a model: steps whose segments can be read before they end."""

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        """The batch on the model's device and dtype, checked to fit the model."""
        ...

    def clock(self, times: Float[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        """Times since each row's first, in the model's unit."""
        ...

    def lines(self, state: Float[Tensor, "rows state"], values: Float[Tensor, "rows dim"]) -> Any:
        """The segments that begin with this state at these values."""
        ...

    def predict(
        self, lines: Any, index: Int[Tensor, " points"], offsets: Float[Tensor, " points"]
    ) -> Float[Tensor, "points dim"]:
        """Predictions at offsets from the start of some of the segments."""
        ...


@dataclass(frozen=True)
class Knots:
    """The observations of a batch at which the cell updates."""

    at: Bool[Tensor, "batch time"]
    """True where a segment begins. The last observation of a row never is: nothing follows it."""

    cut: Bool[Tensor, "batch time"]
    """True at the start of segments that the end of the data or a change of control cut short,
    so that their length is only a lower bound."""

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

    A segment always takes its first step. It goes on to the next observation while the error at
    every observation it covers is below `tolerance`, and with probability `explore` regardless
    (appendix A.2), which is how a model that only ever took single steps gets to try longer ones.
    Instead of a probability, `explore` can be what was drawn: True where a segment goes on.
    Every observation of the context, and every change of control, is a knot.
    """
    batch = model.prepare(batch, max(2, model.config.num_context))
    with torch.no_grad():
        return walk(model, batch, LookAhead(model, batch, tolerance, generator, explore)).knots


@runtime_checkable
class Stops(Protocol):
    """Who says where the rows of a walk stop next."""

    def following(
        self,
        lines: Any,
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> tuple[Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
        """The next knot of each row, `NEVER` if there is none, and whether the segment up to it is
        cut short, given its line, where that begins, and how long the segment before it was."""
        ...


@dataclass(frozen=True)
class Walk:
    """A batch walked from knot to knot, with everything that was computed on the way."""

    knots: Knots
    """Where the cell updated."""

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
    values = batch.values.flatten(0, 1)
    seen = values if seen is None else seen.flatten(0, 1)
    controls = None if batch.controls is None else batch.controls.flatten(0, 1)
    clock, width = model.clock(batch.times), batch.mask.shape[1]
    at, cut = torch.zeros_like(batch.mask), torch.zeros_like(batch.mask)
    rows = torch.arange(len(batch), device=at.device)
    knot, length = torch.zeros_like(rows), torch.full_like(rows, FIRST_BLOCK - 1)
    last, context = batch.lengths - 1, model.config.num_context
    state, lines, numbers, states, pieces, total = None, None, [], [], [], 0
    for index in itertools.count():
        if index < context:
            following = torch.where(last[rows] > index, index, NEVER)
        else:
            following, cut[rows, knot] = stops.following(lines, rows, knot, length)
        going = (following < NEVER).nonzero()[:, 0]
        if len(going) == 0:
            break
        if len(going) < len(rows):
            rows, following, knot, length = (
                part[going] for part in (rows, following, knot, length)
            )
            state = None if state is None else select_rows(state, going)
        elapsed = (clock[rows, following] - clock[rows, knot]).to(values.dtype)
        if index >= context:
            length = following - knot
        knot, place = following, rows * width + following
        at[rows, knot] = True
        state = model.initial_state(len(rows)) if state is None else model.move(state, elapsed)
        inputs = None if controls is None else select_rows(controls, place)
        state = model.update(state, select_rows(seen, place), inputs, elapsed)
        lines = model.lines(state, select_rows(values, place))
        numbers.append(torch.zeros_like(last))
        numbers[-1][rows] = torch.arange(total, total + len(rows), device=rows.device)
        total += len(rows)
        states.append(state)
        pieces.append(lines)
    joined = type(pieces[0])(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))
    return Walk(Knots(at, cut), torch.stack(numbers, dim=1), torch.cat(states), joined)


class LookAhead:
    """Stops where a line leaves the tolerance: decodes along it, a block of observations at a
    time."""

    def __init__(
        self,
        model: LineModel,
        batch: Sequences,
        tolerance: float,
        generator: torch.Generator | None,
        explore: float | Bool[Tensor, "batch time"],
    ):
        if not (tolerance >= 0):
            raise InvalidInput(
                "tolerance must be zero or more, the squared error a step may reach; got "
                f"{tolerance}."
            )
        self._model, self._tolerance = model, tolerance
        self._clock, self._values = model.clock(batch.times), batch.values.flatten(0, 1)
        self._last, self._width = batch.lengths - 1, batch.mask.shape[1]
        self._forced = _drawn(batch, generator, explore).flatten()
        self._changed = None if batch.controls is None else changes(batch.controls).flatten()

    @torch.no_grad()
    def following(
        self,
        lines: Any,
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> tuple[Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
        """Look ahead until every row has to stop, or has come to its end."""
        start, last = self._clock[rows, knot], self._last[rows]
        stop, broken = torch.full_like(knot, NEVER), torch.full_like(knot, NEVER)
        reached, block = knot, length + 1
        going = torch.arange(len(rows), device=rows.device)
        while len(going):
            width = torch.zeros_like(block)
            width[going] = block[going].minimum(last[going] - reached[going])
            line = torch.arange(len(width), device=width.device).repeat_interleave(width)
            within = torch.arange(len(line), device=line.device) - (width.cumsum(0) - width)[line]
            index = reached[line] + 1 + within
            place = rows[line] * self._width + index
            offset = (self._clock.flatten()[place] - start[line]).to(self._values.dtype)
            predicted = self._model.predict(lines, line, offset)
            error = squared_error(predicted, select_rows(self._values, place))
            # A line is broken from the first observation at which it misses the tolerance.
            missed = torch.where(error < self._tolerance, NEVER, index)
            broken = broken.scatter_reduce(0, line, missed, "amin")
            stops = (index >= broken[line]) & ~self._forced[place - 1]
            if self._changed is not None:
                stops = stops | self._changed[place - 1]
            # It always takes its first step.
            stops = torch.where(stops & (index > knot[line] + 1), index - 1, NEVER)
            stop = stop.scatter_reduce(0, line, stops, "amin")
            reached, block = reached + width, 2 * block
            going = ((stop == NEVER) & (reached < last)).nonzero()[:, 0]
        cut = stop == NEVER
        if self._changed is not None:
            cut = cut | self._changed[(rows * self._width + stop.clamp(max=self._width - 1))]
        return stop, cut


class Planned:
    """Stops at knots that are known."""

    def __init__(self, knots: Knots):
        places = torch.arange(knots.at.shape[1], device=knots.at.device)
        later = torch.where(knots.at, places, NEVER).flip(1).cummin(dim=1).values.flip(1)
        never = torch.full_like(later[:, :1], NEVER)
        self._next, self._cut = torch.cat([later[:, 1:], never], dim=1), knots.cut

    def following(
        self,
        lines: Any,
        rows: Int[Tensor, " rows"],
        knot: Int[Tensor, " rows"],
        length: Int[Tensor, " rows"],
    ) -> tuple[Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
        """Look it up."""
        return self._next[rows, knot], self._cut[rows, knot]


def _drawn(
    batch: Sequences,
    generator: torch.Generator | None,
    explore: float | Bool[Tensor, "batch time"],
) -> Bool[Tensor, "batch time"]:
    """Where segments go on regardless: drawn for all observations at once, so that it does not
    depend on how the search goes about it."""
    if isinstance(explore, Tensor):
        return explore.to(batch.mask.device)
    if not 0 <= explore <= 1:
        raise InvalidInput(f"explore must be a probability between 0 and 1; got {explore}.")
    if explore == 0:
        return torch.zeros_like(batch.mask)
    device = "cpu" if generator is None else generator.device
    drawn = torch.rand(batch.mask.shape, generator=generator, device=device) < explore
    return drawn.to(batch.mask.device)


NEVER = torch.iinfo(torch.int64).max
"""The index of a knot that does not come."""
