"""Rollouts: the loop of `loop.py`, fed with the model's own predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput, require_number
from skipstone.models import fast, limits
from skipstone.models.base import SteppingModel
from skipstone.models.controls import SAME_TIME, ControlSignal, Drive
from skipstone.models.loop import Arrival, Front, Stop, pick, read_context, walk
from skipstone.models.typing import Lengths
from skipstone.path import Path, Status
from skipstone.sequences import Sequences
from skipstone.tables.about import About


def roll_out(
    model: SteppingModel[Any],
    context: Sequences,
    until: Any,
    controls: Any,
    step: float | None,
    max_updates: int | None,
) -> Path:
    """Step from the end of a context until a time; rows that arrive leave the batch."""
    context = model.prepare_context(context)
    end = model.end_times(context, until)
    unit, scaler = model.config.time_unit, model.controls_scaler
    signal = ControlSignal.after(context, controls, end, unit, scaler)
    steps = Steps(model, context, end, signal, step, max_updates)
    bounds = steps.reached, steps.shortest, step, steps.most
    path = fast.try_rollout(model, context, signal, *bounds)
    if path is None:
        own = FreeRunning(model, signal, len(context))
        rows = torch.arange(len(context), device=context.times.device)
        front = Front(rows, context.ends, *read_context(model, context))
        for _ in walk(model, front, steps, own):
            pass
        path = own.path(steps, context.about)
    if max_updates is None:
        limits.warn_of_limit(path.status, context, end, unit, stacklevel=3)
    return path


class Steps:
    """Policy: segments last as long as the model predicts, or a constant time.

    Unless the model can, they never cross a change of control. Predicted steps take in a remainder
    before the end that is shorter than the model's shortest step.
    """

    def __init__(
        self,
        model: SteppingModel[Any],
        context: Sequences,
        end: Float[Tensor, " batch"],
        signal: ControlSignal | None,
        step: float | None,
        max_updates: int | None,
    ):
        self._unit, self._end, self._clock = model.config.time_unit, end, context.clock
        self._signal = None if model.crosses_controls else signal
        self._choose: Callable[[Tensor], Tensor] = model.next_steps
        shortest = model.min_step - SAME_TIME
        if step is not None:
            require_number("step", step, above=0)
            # As long as a float can be: longer ones end where the rollout does, too.
            largest = torch.finfo(next(model.parameters()).dtype).max
            length, shortest = min(step / self._unit, largest), 0.0
            self._choose = lambda state: state.new_full((len(state),), length)
        if max_updates is not None:
            require_number("max_updates", max_updates, 1, whole=True)
        self.shortest = max(shortest, SAME_TIME) * self._unit
        """Shortest time that may remain before a limit."""
        self._updates = 0
        self.most = limits.MOST_UPDATES if max_updates is None else int(max_updates)
        """Updates after which a row ends early."""
        self.reached = end.clone()
        """Where each row's path ends."""
        self.status = torch.full_like(end, Status.REACHED_END, dtype=torch.long)
        """How it ended."""

    def stop(self, front: Front) -> Stop:
        """After a step, or at the next limit if that is about as near."""
        limit = self._end[front.rows]
        if self._signal is not None:
            limit = limit.minimum(self._signal.next_change(front.rows, front.knot))
        wanted = front.knot + self._choose(front.state).to(limit.dtype) * self._unit
        following = torch.where(limit - wanted < self.shortest, limit, wanted)
        lengths = ((following - front.knot) / self._unit).to(front.values.dtype)
        ends = following.detach()
        if not bool((ends > front.knot).all()):
            raise InvalidInput(
                "a step must be a positive, finite length of time; this one, from "
                f"{_first_stuck(front, ends):.13g}, does not advance. Its unit of time is "
                f"{limits.describe_unit(self._unit, self._clock)}: are the data's times in that "
                "unit, and counted from a start that is near? Or its weights or its context hold "
                "numbers that are not finite or far too large."
            )
        self._updates += 1
        going = (ends < self._end[front.rows]).nonzero()[:, 0]
        if self._updates == self.most and len(going):
            rows = front.rows[going]
            self.status[rows], self.reached[rows] = int(Status.MAX_UPDATES), ends[going]
            going = going[:0]
        return Stop(following, lengths, going)


def _first_stuck(front: Front, ends: Lengths) -> float:
    """Where the first row is that does not move on."""
    return front.knot[~(ends > front.knot)][0].item()


class FreeRunning:
    """Source: rows see their own predictions. The segments are kept, and become a `Path`."""

    def __init__(self, model: SteppingModel[Any], signal: ControlSignal | None, batch: int):
        self._model, self._signal = model, signal
        device = next(model.parameters()).device
        self._evaluations = torch.zeros(batch, dtype=torch.long, device=device)
        self._fronts: list[Front] = []
        self._segments: list[Any] = []

    def arrive(self, front: Front, stop: Stop) -> Arrival:
        """Predict to the end of each segment, and encode that."""
        model, going, drive = self._model, stop.going, None
        if self._signal is not None and model.crosses_controls:
            drive = Drive(self._signal, front.rows, front.knot)
        segments, evaluations = model.segments(front.state, front.values, stop.lengths, drive)
        if evaluations:
            self._evaluations[front.rows] += evaluations
        self._fronts.append(front)
        self._segments.append(segments)
        if len(going) == 0:
            return Arrival(front.values[:0], front.state[:0], front.state[:0])
        segments = type(segments)(*(pick(part, going) for part in segments))
        lengths, state = pick(stop.lengths, going), pick(front.state, going)
        values, inputs = model.ends(segments, lengths)
        controls = None
        if self._signal is not None:
            controls = self._signal.at(pick(front.rows, going), pick(stop.knot, going))
        encoded = model.encode(inputs, controls, lengths)
        drive = None if drive is None else drive.pick(going)
        return Arrival(values, model.move(state, lengths, drive, segments), encoded)

    def path(self, steps: Steps, about: About) -> Path:
        """The whole rollout."""
        model, unit = self._model, self._model.config.time_unit
        dtype = self._fronts[0].values.dtype
        knots, table = self._tables(len(steps.reached))
        columns = zip(*self._segments, strict=True)
        segments = type(self._segments[0])(*(torch.cat(parts) for parts in columns))

        def predict(segment: Tensor, elapsed: Tensor) -> tuple[Tensor, int | Tensor]:
            index, offsets, drive = table.gather(1, segment), (elapsed / unit).to(dtype), None
            if self._signal is not None and model.crosses_controls:
                rows = torch.arange(len(knots), device=knots.device)
                drive = Drive(self._signal, rows, knots.gather(1, segment))
            values, evaluations = model.predict(segments, index, offsets, drive)
            return model.in_data_units(values), evaluations

        return Path(predict, knots, steps.reached, steps.status, self._evaluations, about)

    def _tables(
        self, batch: int
    ) -> tuple[Float[Tensor, "batch segments"], Int[Tensor, "batch segments"]]:
        """Knots of each row, and the numbers of its segments in the list of all."""
        knots, table, start = [], [], 0
        for front in self._fronts:
            numbers = torch.arange(start, start + len(front.rows), device=front.rows.device)
            table.append(numbers.new_zeros(batch).index_put((front.rows,), numbers))
            empty = front.knot.new_full((batch,), torch.inf)
            knots.append(empty.index_put((front.rows,), front.knot))
            start += len(front.rows)
        return torch.stack(knots, dim=1), torch.stack(table, dim=1)
