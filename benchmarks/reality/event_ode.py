"""A neural event ODE (Chen, Amos and Nickel 2021): smooth motion, and learned jumps where a learned
function of the state crosses zero, found by torchdiffeq's `odeint_event`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torchdiffeq import odeint, odeint_event

from skipstone.errors import InvalidInput, require_number
from skipstone.models.base import Model
from skipstone.models.config import ModelConfig
from skipstone.models.learning import Draws, Losses
from skipstone.path import Path, Status
from skipstone.sequences import Sequences

AHEAD = 10
"""Observations after the context that a training step looks at: gradients through more jumps
explode."""

ROWS = 8
"""Sequences of a batch that a training step takes: there is one integration for each."""

DEAF = 0.2
"""Time after a jump, in the model's unit, in which no other can happen: the state is still where it
has just crossed."""

PRECISION = 1e-5
"""Of a jump's time."""


@dataclass(frozen=True, kw_only=True)
class EventODEConfig(ModelConfig):
    """Configuration of an `EventODE`."""

    surfaces: int = 8
    """Linear functions of the state whose product is the event function."""

    most_jumps: int = 30
    """Jumps of a rollout, at most."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("surfaces", self.surfaces, 1, whole=True)
        require_number("most_jumps", self.most_jumps, 1, whole=True)


class EventODE(Model[EventODEConfig]):
    """Positions and velocities on a second-order ODE, with jumps of the velocities.

    The state begins at the context's last observation, with the velocity since the one before. It
    takes no controls and no missing values, and a row of a batch at a time: each has events of its
    own.
    """

    Config: ClassVar[type[EventODEConfig]] = EventODEConfig
    title: ClassVar[str] = "event ODE"

    def __init__(self, config: EventODEConfig):
        super().__init__(config)
        state, hidden = 2 * config.dim, config.hidden
        # It begins as free motion.
        self.force = _network(state, hidden, config.dim, size=0.01)
        self.jump = _network(state, hidden, config.dim)
        self.surface = nn.Linear(state, config.surfaces)

    def flow(self, time: Tensor, state: Float[Tensor, " state"]) -> Float[Tensor, " state"]:
        """Change of the state per unit of time."""
        return torch.cat([state[self.config.dim :], self.force(state)])

    def crossing(
        self, state: Float[Tensor, " state"], surfaces: Float[Tensor, " weights"]
    ) -> Float[Tensor, ""]:
        """The function whose zeros are events."""
        count = self.config.surfaces
        weight, bias = surfaces[:-count].reshape(count, -1), surfaces[-count:]
        return torch.tanh(weight @ state + bias).prod()

    def jumped(self, state: Float[Tensor, " state"]) -> Float[Tensor, " state"]:
        """The state after an event: the same place, other velocities."""
        place, velocity = state.chunk(2)
        return torch.cat([place, velocity + self.jump(state)])

    def track(
        self, state: Float[Tensor, " state"], times: Float[Tensor, " queries"]
    ) -> tuple[Float[Tensor, "queries dim"], list[Tensor]]:
        """Positions at increasing times after the start, and when jumps happened."""
        now, end = times.new_zeros(()), times[-1]
        jumps: list[Tensor] = []
        parts: list[Tensor] = []
        while True:
            # With all jumps used up it moves on without.
            most = len(jumps) == self.config.most_jumps
            then, arrived = (end, state) if most else self._next_event(state, now, end)
            inside = times[(times > now.detach()) & (times <= then.detach())]
            if len(inside):
                clock = torch.cat([now.reshape(1), inside])
                # A time that falls on the segment's own start has no interval.
                parts.append(self._integrate(state, clock)[1:, : self.config.dim])
            if bool(then.detach() >= end):
                break
            state, now = self.jumped(arrived), then
            jumps.append(then)
        found = torch.cat(parts) if parts else times.new_zeros(0, self.config.dim)
        missing = len(times) - len(found)
        return torch.cat([found, found[-1:].expand(missing, -1)]), jumps

    def _next_event(self, state: Tensor, now: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        """When the next event happens, at the latest at the end, and the state there."""
        deaf = torch.minimum(now.detach() + DEAF, end)
        if float(deaf) >= float(end):
            return end, state
        begun = self._integrate(state, torch.stack([now, deaf]))[-1]

        # Gradients reach an event through the state alone, so that the weights are part of it.
        surfaces = torch.cat([self.surface.weight.flatten(), self.surface.bias])
        size = len(state)

        def flow(time: Tensor, both: Tensor) -> Tensor:
            return torch.cat([self.flow(time, both[:size]), torch.zeros_like(both[size:])])

        def event(time: Tensor, both: Tensor) -> Tensor:
            return torch.stack([self.crossing(both[:size], both[size:]), end - time])

        options = {"step_size": 0.5, "interp": "cubic"}
        then, states = odeint_event(
            flow,
            torch.cat([begun, surfaces]),
            deaf,
            event_fn=event,
            method="rk4",
            atol=PRECISION,
            options=options,
        )
        # The end is an event, too, and found as exactly as any.
        late = bool(then.detach() > end - 2 * PRECISION)
        return end if late else then, states[-1][:size]

    def _integrate(self, state: Tensor, clock: Float[Tensor, " times"]) -> Tensor:
        found = odeint(self.flow, state, clock, method="rk4")
        assert isinstance(found, Tensor)
        return found

    def _start(self, context: Sequences) -> Float[Tensor, "batch state"]:
        """Positions and velocities at the end of a prepared context."""
        gap = self.clock(context.times).diff(dim=1)[:, -1:].to(context.values.dtype)
        last, before = context.values[:, -1], context.values[:, -2]
        return torch.cat([last, (last - before) / gap], dim=1)

    def rollout(
        self,
        context: Sequences,
        until: Any,
        controls: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> Path:
        """Integrate from event to event; knots are the events."""
        if step is not None or controls is not None or max_updates is not None:
            raise InvalidInput("an event ODE takes no steps, updates or controls. Leave them out.")
        context = self.prepare_context(context)
        end, unit = self.end_times(context, until), self.config.time_unit
        start, dtype = self._start(context), context.values.dtype
        last = ((end - context.ends) / unit).to(dtype)
        with torch.inference_mode(False), torch.no_grad():
            start, last = start.clone(), last.clone()
            jumps = [self.track(one, now[None])[1] for one, now in zip(start, last, strict=True)]
        knots = torch.full((len(start), 1 + max(map(len, jumps))), torch.inf, dtype=end.dtype)
        knots[:, 0] = context.ends
        for row, found in enumerate(jumps):
            for at, moment in enumerate(found, 1):
                knots[row, at] = context.ends[row] + unit * float(moment)

        def predict(segment: Tensor, elapsed: Tensor) -> tuple[Tensor, int]:
            times = knots.gather(1, segment) + elapsed - context.ends[:, None]
            ordered, order = (times / unit).to(dtype).sort(dim=1)
            rows = [self._read(*each) for each in zip(start, ordered.clone(), strict=True)]
            back = order.argsort(dim=1)[..., None].expand(-1, -1, self.config.dim)
            return self.in_data_units(torch.stack(rows).gather(1, back)), 0

        status = torch.full_like(end, Status.REACHED_END, dtype=torch.long)
        return Path(predict, knots, end, status, about=context.about, calibration=self.calibration)

    def _read(self, start: Tensor, times: Tensor) -> Float[Tensor, "queries dim"]:
        """Positions at sorted times, some of which may be equal, or the start itself."""
        with torch.inference_mode(False), torch.no_grad():
            moments, place = times.clone().clamp(min=1e-6).unique(return_inverse=True)
            return self.track(start.clone(), moments)[0][place]

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error of the first observations after the context, of a few sequences."""
        count = self.config.num_context
        batch = batch[: min(ROWS, len(batch))]
        batch = self.prepare(batch.head(min(count + AHEAD, int(batch.lengths.min()))), count + 1)
        clock = self.clock(batch.times)
        offsets = (clock[:, count:] - clock[:, [count - 1]]).to(batch.values.dtype)
        tracks = [
            self.track(*each)[0]
            for each in zip(self._start(batch.head(count)), offsets, strict=True)
        ]
        predicted = torch.cat([batch.values[:, :count], torch.stack(tracks)], dim=1)
        return Losses.of(batch, predicted, count)


def _network(inputs: int, hidden: int, outputs: int, size: float = 1.0) -> nn.Sequential:
    """Two layers, whose output is `size` times the usual before training."""
    last = nn.Linear(hidden, outputs)
    with torch.no_grad():
        last.weight.mul_(size)
        last.bias.mul_(size)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), last)
