"""The policy of training: the longest segments within tolerance, by a forward line search.

Rows of a batch walk from knot to knot together. The search looks ahead along every row's line for
where it has to stop; a training step is the same walk with gradients.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.arithmetic import select_rows, squared_error
from skipstone.models.controls import Integrals, changes
from skipstone.models.loop import Front, Stop, next_true
from skipstone.models.typing import (
    BatchMask,
    BatchTimes,
    BatchValues,
    Lengths,
    Rows,
    State,
    Values,
)
from skipstone.sequences import Sequences

FIRST_BLOCK = 4
"""Observations decoded ahead after the context. Later blocks are one longer than the last segments
were on average; a block that holds is followed by one twice as long. Longer blocks mean fewer,
larger products, and more points decoded in vain."""

NEVER = torch.iinfo(torch.int64).max
"""Index of an observation that is never missed."""

_SAME_TIME = 1e-6
"""Relative difference below which two lengths of time differ by rounding."""


@runtime_checkable
class LineModel(Protocol):
    """What the search asks of a model: lines that can be decoded before their end is known."""

    min_step: float

    def lines(self, state: State, values: Values) -> Any:
        """The lines that begin with this state at these values."""
        ...

    def along(
        self,
        lines: Any,
        offsets: Float[Tensor, "rows points"],
        integrals: Float[Tensor, "rows points integrals"] | None,
    ) -> Float[Tensor, "rows points dim"]:
        """Predictions at several offsets from the start of each line."""
        ...

    def next_steps(self, state: State) -> Lengths:
        """How long the model would wait before its next update."""
        ...


class Search:
    """Policy: a segment ends where its line would leave the tolerance (equation 8).

    It always takes its first step, and lasts at least the model's shortest step. It goes on
    regardless where `explore` is True (appendix A.2). Every observation of the context is a knot,
    and without `integrals` of the controls every change of control. `observed` are the values that
    the tolerance is about, NaN where something was not observed. Segments that begin where `own` is True end where the model itself
    would have ended them, at the nearest observation; `reach` still says where the search would.
    """

    def __init__(
        self,
        model: LineModel,
        batch: Sequences,
        observed: BatchValues,
        clock: BatchTimes,
        integrals: Integrals | None,
        tolerance: float,
        num_context: int,
        explore: BatchMask,
        own: BatchMask,
    ):
        if not tolerance >= 0:
            raise InvalidInput(
                f"tolerance must be zero or more, the squared error a step may reach; got "
                f"{tolerance}."
            )
        self._model, self._tolerance, self._context = model, tolerance, num_context
        self._observed, self._width = observed.flatten(0, 1), batch.mask.shape[1]
        self._missing, self._integrals = bool(observed.isnan().any()), integrals
        self._clock, self._last = clock.flatten(), batch.lengths - 1
        # No step of a rollout is shorter, so no segment that it learns from need be.
        least = (clock + model.min_step * (1 - _SAME_TIME)).contiguous()
        self._least = torch.searchsorted(clock.contiguous(), least).flatten()
        # Exploration puts a stop off, to the next observation without it.
        self._allowed = next_true(~explore).flatten()
        self._own = own.flatten() if bool(own.any()) else None
        ends = torch.zeros_like(batch.mask).scatter_(1, self._last[:, None], True)
        self._changed = None
        if batch.controls is not None and integrals is None:
            changed = changes(batch.controls)
            self._changed, ends = changed.flatten(), ends | changed
        self._end = next_true(ends).flatten()
        self._length = torch.full_like(self._last, FIRST_BLOCK - 1)
        self.reach = torch.arange(1, self._width + 1, device=clock.device).repeat(len(batch), 1)
        """At a knot, the observation that the search found for the end of its segment."""
        self.cut = torch.zeros_like(batch.mask)
        """At a knot, whether its reach is only a lower bound: data or control did not go on."""

    @torch.no_grad()
    def stop(self, front: Front) -> Stop:
        """The next observation in the context, and the end of the line after it."""
        row = front.rows * self._width
        knot, last = row + front.knot, row + self._last[front.rows]
        # Rows are in step in the context.
        if int(front.knot[0]) < self._context - 1:
            stop = knot + 1
        else:
            stop = self._search(front, row, knot, last)
            self._length[front.rows] = stop - knot
        elapsed = (self._clock[stop] - self._clock[knot]).to(self._observed.dtype)
        return Stop(stop - row, elapsed, (stop < last).nonzero()[:, 0])

    def _search(self, front: Front, row: Rows, knot: Rows, last: Rows) -> Rows:
        """Where segments end: a line that first misses at observation b stops at the one before."""
        end, least = row + self._end[knot + 1], row + self._least[knot]
        block = 1 + int(self._length[front.rows].sum()) // len(front.rows)
        lines = self._model.lines(front.state, front.values)
        missed = self._first_misses(lines, knot, end, block)
        stop = torch.maximum(missed - 1, knot + 1).maximum(least).minimum(last)
        stop = (row + self._allowed[stop]).minimum(end)
        stop = torch.where(missed < NEVER, stop, end)
        cut = stop == last if self._changed is None else (stop == last) | self._changed[stop]
        self.reach[front.rows, front.knot], self.cut[front.rows, front.knot] = stop - row, cut
        if self._own is None:
            return stop
        nearest = self._nearest(front, knot, end).maximum(least)
        return torch.where(self._own[knot], nearest, stop).minimum(end)

    def _nearest(self, front: Front, knot: Rows, end: Rows) -> Rows:
        """The observation nearest to where a rollout would end its step; like there, a remainder
        shorter than the shortest step is taken in."""
        wanted = self._clock[knot] + self._model.next_steps(front.state)
        clock = self._clock.unflatten(0, (-1, self._width))[front.rows]
        after = torch.searchsorted(clock, wanted[:, None]).clamp(1, self._width - 1)
        middle = (clock.gather(1, after - 1) + clock.gather(1, after))[:, 0] / 2
        nearest = front.rows * self._width + after[:, 0] - (wanted < middle).long()
        remains = self._clock[end] - wanted
        return torch.where(remains < self._model.min_step * (1 - _SAME_TIME), end, nearest)

    def _first_misses(self, lines: Any, knot: Rows, end: Rows, block: int) -> Rows:
        """The first observation up to its end that each line misses, or `NEVER`."""
        missed = torch.full_like(knot, NEVER)
        going, reached = torch.arange(len(knot), device=knot.device), knot
        while True:
            ahead = torch.arange(1, block + 1, device=knot.device)
            place = (reached[:, None] + ahead).minimum(end[:, None])
            offsets = (self._clock[place] - self._clock[knot][:, None]).to(self._observed.dtype)
            integrals = None
            if self._integrals is not None:
                integrals = self._integrals.between(knot[:, None].expand_as(place), place)
            observed = select_rows(self._observed, place.flatten()).reshape(*place.shape, -1)
            predicted = self._model.along(lines, offsets, integrals)
            error = squared_error(predicted, observed, self._missing)
            here = torch.where(error < self._tolerance, NEVER, place).amin(1)
            missed[going] = here
            reached = place[:, -1]
            unknown = ((here == NEVER) & (reached < end)).nonzero()[:, 0]
            if len(unknown) == 0:
                return missed
            going, reached, knot, end = (part[unknown] for part in (going, reached, knot, end))
            lines = type(lines)(*(select_rows(part, unknown) for part in lines))
            block = 2 * block
