"""`find_knots`: the longest segments within tolerance, by a forward line search."""

from __future__ import annotations

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
    explore: float = 0.01,
) -> Knots:
    """Search the longest segments whose error stays below the tolerance (equation 8).

    A segment always takes its first step. It goes on to the next observation while the error at
    every observation it covers is below `tolerance`, and with probability `explore` regardless
    (appendix A.2), which is how a model that only ever took single steps gets to try longer ones.
    Every observation of the context, and every change of control, is a knot.
    """
    if not 0 <= explore <= 1:
        raise InvalidInput(f"explore must be a probability between 0 and 1; got {explore}.")
    forced = torch.zeros_like(batch.mask)
    if explore > 0:
        device = "cpu" if generator is None else generator.device
        forced = torch.rand(batch.mask.shape, generator=generator, device=device) < explore
    return search_knots(model, batch, tolerance, forced)


@torch.no_grad()
def search_knots(
    model: LineModel, batch: Sequences, tolerance: float, forced: Bool[Tensor, "batch time"]
) -> Knots:
    """The same search with the exploration drawn before: `forced` segments go on regardless."""
    if not (tolerance >= 0):
        raise InvalidInput(
            f"tolerance must be zero or more, the squared error a step may reach; got {tolerance}."
        )
    batch = model.prepare(batch, max(2, model.config.num_context))
    search = _Search(model, batch, tolerance, forced.to(batch.mask.device))
    search.read_context()
    while search.active.numel():
        search.look_ahead()
        search.update_stopped()
    return Knots(search.at, search.cut)


class _Search:
    """The state of a line search: rows stand at different observations and leave when done."""

    def __init__(
        self,
        model: LineModel,
        batch: Sequences,
        tolerance: float,
        forced: Bool[Tensor, "batch time"],
    ):
        self.model, self.batch, self.tolerance, self.forced = model, batch, tolerance, forced
        self.clock = model.clock(batch.times)
        self.at = torch.zeros_like(batch.mask)
        self.cut = torch.zeros_like(batch.mask)
        self.changed = (
            torch.zeros_like(batch.mask) if batch.controls is None else changes(batch.controls)
        )
        self.active = torch.arange(len(batch), device=batch.mask.device)
        self.last = batch.lengths - 1

    def read_context(self) -> None:
        """Update at every observation of the context, and begin a line at its last one."""
        count = self.model.config.num_context
        self.at[:, :count] = torch.arange(count, device=self.at.device) < self.last[:, None]
        self.active = (self.last >= count).nonzero()[:, 0]
        rows = self.active
        self.knot = torch.zeros_like(rows)
        self.state = self.model.initial_state(len(rows))
        everyone = torch.arange(len(rows), device=rows.device)
        for index in range(count):
            self._update(everyone, torch.full_like(rows, index))
        self.lines = self.model.lines(self.state, self.batch.values[rows, self.knot])
        self.reached = self.knot.clone()
        self.block = torch.full_like(rows, FIRST_BLOCK)
        self.broken = torch.full_like(rows, _NEVER)

    def look_ahead(self) -> None:
        """Decode each active row's line one block further and find where it has to stop."""
        last, knot = self.last[self.active], self.knot
        width = self.block.minimum(last - self.reached)
        line = torch.arange(len(width), device=width.device).repeat_interleave(width)
        within = torch.arange(len(line), device=line.device) - (width.cumsum(0) - width)[line]
        row, index = self.active[line], self.reached[line] + 1 + within
        error = self._errors(line, row, index)
        # A line is broken from the first observation at which it misses the tolerance.
        self.broken = self.broken.scatter_reduce(
            0, line, torch.where(error < self.tolerance, _NEVER, index), "amin"
        )
        stop = (index >= self.broken[line]) & ~self.forced[row, index - 1]
        stop = (stop | self.changed[row, index - 1]) & (index > knot[line] + 1)
        self.stop = torch.full_like(knot, _NEVER).scatter_reduce(
            0, line, torch.where(stop, index - 1, _NEVER), "amin"
        )
        self.reached = self.reached + width
        self.block = 2 * self.block

    def update_stopped(self) -> None:
        """Update the rows that have to stop, and let those leave that reached their end."""
        last = self.last[self.active]
        stopped = self.stop < _NEVER
        ended = ~stopped & (self.reached >= last)
        self.cut[self.active[ended], self.knot[ended]] = True
        where = stopped.nonzero()[:, 0]
        if len(where):
            rows, stops = self.active[where], self.stop[where]
            self.cut[rows, self.knot[where]] = self.changed[rows, stops]
            self.at[rows, stops] = True
            self.block[where] = stops - self.knot[where] + 1
            self._update(where, stops)
            self._begin_lines(where)
        if bool(ended.any()):
            self._keep((~ended).nonzero()[:, 0])

    def _errors(self, line: Tensor, row: Tensor, index: Tensor) -> Tensor:
        dtype = self.batch.values.dtype
        offset = (self.clock[row, index] - self.clock[self.active, self.knot][line]).to(dtype)
        predicted = self.model.predict(self.lines, line, offset)
        flat = self.batch.values.flatten(0, 1)
        return squared_error(predicted, select_rows(flat, row * self.clock.shape[1] + index))

    def _update(self, where: Tensor, index: Tensor) -> None:
        """Run the cell at observation `index` of the active rows at positions `where`."""
        rows = self.active[where]
        elapsed = self.clock[rows, index] - self.clock[rows, self.knot[where]]
        elapsed = elapsed.to(self.batch.values.dtype)
        controls = None if self.batch.controls is None else self.batch.controls[rows, index]
        moved = self.model.move(self.state[where], elapsed)
        values = self.batch.values[rows, index]
        self.state[where] = self.model.update(moved, values, controls, elapsed)
        self.knot[where] = index

    def _begin_lines(self, where: Tensor) -> None:
        """New lines for the active rows at positions `where`, which have just been updated."""
        values = self.batch.values[self.active[where], self.knot[where]]
        for part, new in zip(self.lines, self.model.lines(self.state[where], values), strict=True):
            part[where] = new
        self.reached[where] = self.knot[where]
        self.broken[where] = _NEVER

    def _keep(self, where: Tensor) -> None:
        self.active, self.knot, self.reached, self.block, self.broken, self.state = (
            part[where]
            for part in (self.active, self.knot, self.reached, self.block, self.broken, self.state)
        )
        self.lines = type(self.lines)(*(part[where] for part in self.lines))


_NEVER = torch.iinfo(torch.int64).max
