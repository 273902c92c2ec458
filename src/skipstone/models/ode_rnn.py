"""The ODE-RNN (Rubanova, Chen and Duvenaud 2019): a neural ODE between cell updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.models.base import (
    Losses,
    Model,
    mean_error,
    select_rows,
    squared_error,
    start_error,
    with_inputs,
)
from skipstone.models.networks import ResidualMLP
from skipstone.models.ode import Dynamics, ODEConfig, integrate
from skipstone.models.stepping import one_unit, roll_out
from skipstone.path import Path
from skipstone.sequences import Sequences

# A query this close to one of its segment's ends, relative to its length, is there.
_AT_END = 1e-6


@dataclass(frozen=True, kw_only=True)
class ODERNNConfig(ODEConfig):
    """Configuration of an `ODERNN`."""


class Flows(NamedTuple):
    """Segments of an `ODERNN`, with the integrated state at their end."""

    values: Float[Tensor, "flows dim"]
    state: Float[Tensor, "flows state"]
    end: Float[Tensor, "flows state"]
    lengths: Float[Tensor, " flows"]
    evaluations: Int[Tensor, " flows"]


class ODERNN(Model[ODERNNConfig]):
    """A GRU that updates at every observation, its state following a neural ODE in between."""

    Config: ClassVar[type[ODERNNConfig]] = ODERNNConfig

    def __init__(self, config: ODERNNConfig):
        nn.Module.__init__(self)
        self.config = config
        hidden, layers = config.hidden, config.layers
        self.encoder = ResidualMLP(config.dim + config.control, hidden, hidden, layers)
        self.cell = nn.GRUCell(hidden, hidden)
        self.dynamics = Dynamics(hidden)
        # A displacement is a difference of two readings, from which a bias would cancel.
        bias = not config.moves
        self.decoder = ResidualMLP(hidden, hidden, config.dim, layers, output_bias=bias)

    def initial_state(self, rows: int) -> Float[Tensor, "rows state"]:
        """Zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def readings(
        self, values: Float[Tensor, "batch time dim"], gaps: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time dim"]:
        """The encoder is shown every observation, as it is."""
        return values

    def encode(
        self,
        readings: Float[Tensor, "*rows dim"],
        controls: Float[Tensor, "*rows control"] | None,
        elapsed: Float[Tensor, "*rows"],
    ) -> Float[Tensor, "*rows encoded"]:
        """What the cell reads; the time elapsed is in the state already, which flowed for it."""
        return self.encoder(with_inputs(readings, controls))

    def update(
        self, state: Float[Tensor, "rows state"], encoded: Float[Tensor, "rows encoded"]
    ) -> Float[Tensor, "rows state"]:
        """The cell update."""
        return self.cell(encoded, state)

    def move(
        self, state: Float[Tensor, "rows state"], lengths: Float[Tensor, " rows"]
    ) -> Float[Tensor, "rows state"]:
        """Let the state flow."""
        return integrate(self.dynamics, state, lengths[:, None], self.config)[0][:, 0]

    def segments(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Flows:
        """Integrate across each interval."""
        ends, calls = integrate(self.dynamics, state, lengths[:, None], self.config)
        spent = torch.full((len(state),), calls, device=state.device)
        return Flows(values, state, ends[:, 0], lengths, spent)

    def advance(
        self,
        segments: Flows,
        state: Float[Tensor, "rows state"],
        lengths: Float[Tensor, " rows"],
    ) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows dim"], Float[Tensor, "rows state"]]:
        """Prediction, what is read of it, and state at the end of each interval."""
        predicted = self.displace(segments.values, segments.state, segments.end)
        return predicted, predicted, segments.end

    def displace(
        self,
        values: Float[Tensor, "rows dim"],
        state: Float[Tensor, "rows state"],
        later: Float[Tensor, "rows state"],
    ) -> Float[Tensor, "rows dim"]:
        """Observations moved by the decoded difference of two states, or decoded themselves."""
        decoded = self.decoder(later)
        return values + decoded - self.decoder(state) if self.config.moves else decoded

    def read(
        self,
        segments: Flows,
        index: Int[Tensor, "batch time"],
        offsets: Float[Tensor, "batch time"],
    ) -> tuple[Float[Tensor, "batch time dim"], Int[Tensor, " batch"]]:
        """Predictions of a path; times inside an interval take an integration of their own."""
        flat, offset = index.reshape(-1), offsets.reshape(-1)
        values, state, later = (
            select_rows(part, flat) for part in (segments.values, segments.state, segments.end)
        )
        share = offset / segments.lengths[flat]
        begins, inside = share <= _AT_END, (share > _AT_END) & (share < 1 - _AT_END)
        later = torch.where(begins[:, None], state, later)
        evaluations = inside.reshape(index.shape).sum(1)
        where = inside.nonzero()[:, 0]
        calls = 0
        if len(where):
            start, times = state.index_select(0, where), offset.index_select(0, where)
            flowed, calls = integrate(self.dynamics, start, times[:, None], self.config)
            later = later.index_copy(0, where, flowed[:, 0])
        predicted = self.displace(values, state, later)
        return predicted.reshape(*index.shape, self.config.dim), calls * evaluations

    def rollout(self, context: Sequences, until: float | Tensor, *, controls: Any = None) -> Path:
        """Predict from the last `num_context` observations, one typical spacing at a time."""
        context = self.prepare(context, self.config.num_context)
        return roll_out(
            self, context, until, controls, one_unit, evaluations=lambda flows: flows.evaluations
        )

    def loss(
        self, batch: Sequences, *, seen: Float[Tensor, "batch time dim"] | None = None
    ) -> Losses:
        """Error of predicting each observation from those before it; with the absolute readout
        also the error where each segment begins (`start_error`).

        `seen` is what the encoder reads instead of the values, for training with noise.
        """
        batch = self.prepare(batch, 2)
        # Longest first: the sequences that have a next observation are a prefix.
        order = batch.lengths.argsort(descending=True, stable=True)
        batch = batch[order]
        gaps = batch.times.diff(dim=1).div(self.config.time_unit).to(batch.values.dtype)
        read = batch.values if seen is None else seen[order]
        encoded = self.encoder(with_inputs(read, batch.controls))
        state = self.initial_state(len(batch))
        valid = batch.mask[:, 1:]
        starts, ends, evaluations = [], [], 0
        sizes = valid.sum(0).tolist()
        for i, size in enumerate(sizes):
            state = self.cell(encoded[:size, i], state[:size])
            starts.append(state)
            flowed, calls = integrate(self.dynamics, state, gaps[:size, i, None], self.config)
            state = flowed[:, 0]
            ends.append(state)
            evaluations += calls * size
        values = batch.values.transpose(0, 1)
        before, after = values[:-1][valid.T], values[1:][valid.T]
        begins = torch.cat(starts)
        predicted = self.displace(before, begins, torch.cat(ends))
        # Errors are in order of time; the batch is in order of sequences, once more shuffled.
        error = values.new_zeros(valid.T.shape).masked_scatter(
            valid.T, squared_error(predicted, after)
        )
        wanted = torch.nn.functional.pad(valid, (1, 0))
        prediction, errors = mean_error(batch, error.T[valid], wanted)
        total = prediction
        if not self.config.moves:
            total = total + start_error(self.decoder(begins), before, len(before))
        return Losses(
            total=total,
            prediction=prediction,
            step=torch.zeros_like(prediction),
            errors=errors[order.argsort()],
            num_steps=0,
            mean_step=float(gaps[valid].mean()),
            num_updates=sum(sizes),
            num_evaluations=evaluations,
        )
