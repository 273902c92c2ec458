"""The ODE-RNN baseline: an RNN whose state follows a neural ODE between observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.models.arithmetic import (
    laid_out,
    observation_inputs,
    prediction_inputs,
    scored_observations,
    select_rows,
    squared_error,
    start_error,
    with_inputs,
)
from skipstone.models.base import SteppingModel
from skipstone.models.controls import Drive
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.learning import Draws, Losses
from skipstone.models.loop import every_interval
from skipstone.models.ode import NEEDS, Dynamics, ODEConfig, integrate
from skipstone.models.typing import (
    BatchIndex,
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
    Inputs,
    Lengths,
    State,
    Values,
)
from skipstone.sequences import Sequences

# A query this close to one of its segment's ends, relative to its length, is there.
_AT_END = 1e-6


@dataclass(frozen=True, kw_only=True)
class ODERNNConfig(ODEConfig):
    """Configuration of an `ODERNN`."""


class ODERNNSegments(NamedTuple):
    """Rollout segments, with the integrated state at their end."""

    values: Float[Tensor, "segments dim"]
    state: Float[Tensor, "segments state"]
    end: Float[Tensor, "segments state"]
    lengths: Float[Tensor, " segments"]


class ODERNN(SteppingModel[ODERNNConfig]):
    """A GRU that updates at every observation, its state following a neural ODE in between."""

    Config: ClassVar[type[ODERNNConfig]] = ODERNNConfig
    title: ClassVar[str] = "ODE-RNN"
    takes_missing: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = NEEDS

    def __init__(self, config: ODERNNConfig):
        super().__init__(config)
        hidden = config.hidden
        self.min_step = 0.0
        self.encoder = encoder_of(config)
        self.cell = nn.GRUCell(hidden, hidden)
        self.dynamics = Dynamics(hidden)
        # A displacement is a difference of two decodings, from which a bias would cancel.
        self.decoder = decoder_of(config, output_bias=not config.moves)

    def initial_state(self, rows: int) -> State:
        """Zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it."""
        return observation_inputs(values, gaps, self.config)

    def encode(
        self, inputs: Float[Tensor, "*rows dim"], controls: Controls | None, elapsed: Elapsed
    ) -> Encoded:
        """The cell's input. The time elapsed is in the state already, which flowed for it."""
        return self.encoder(with_inputs(inputs, controls))

    def update(self, state: State, encoded: Encoded) -> State:
        """The cell update."""
        return self.cell(encoded, state)

    def next_steps(self, state: State) -> Lengths:
        """One typical observation interval."""
        return torch.ones_like(state[:, 0])

    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None = None
    ) -> tuple[ODERNNSegments, int]:
        """Integrate across each interval."""
        ends, calls = integrate(self.dynamics, state, lengths[:, None], self.config)
        return ODERNNSegments(values, state, ends[:, 0], lengths), calls

    def move(
        self,
        state: State,
        lengths: Lengths,
        drive: Drive | None = None,
        segments: ODERNNSegments | None = None,
    ) -> State:
        """Let the state flow, unless a segment has done so already."""
        if segments is not None:
            return segments.end
        return integrate(self.dynamics, state, lengths[:, None], self.config)[0][:, 0]

    def ends(self, segments: ODERNNSegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        predicted = self.displace(segments.values, segments.state, segments.end)
        displacement = predicted - segments.values
        return predicted, prediction_inputs(predicted, displacement, lengths, self.config)

    def displace(self, values: Values, state: State, later: State) -> Values:
        """Observations moved by the decoded difference of two states, or decoded themselves."""
        decoded = self.decoder(later)
        return values + decoded - self.decoder(state) if self.config.moves else decoded

    def predict(
        self,
        segments: ODERNNSegments,
        index: BatchIndex,
        offsets: BatchTimes,
        drive: Drive | None = None,
    ) -> tuple[BatchValues, Int[Tensor, " batch"]]:
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

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error of predicting each observation after the context from those before it; with the
        absolute readout also the error where each segment begins (`start_error`)."""
        batch = self.prepare(batch, self.config.num_context + 1)
        scored = scored_observations(batch, self.config.num_context)
        steps = every_interval(self, batch, (draws or Draws()).shown(batch.values))
        # From the order of the rounds to that of the batch.
        order = steps.place.argsort()
        order = order[scored.flatten()[steps.place[order]]]
        before, state, moved = (
            select_rows(part, order) for part in (steps.before, steps.state, steps.moved)
        )
        predicted = self.displace(before, state, moved)
        error = squared_error(predicted, batch.values[scored], self.config.missing)
        points = max(1, len(error))
        total = prediction = error.sum() / points
        if not self.config.moves:
            total = total + start_error(self.decoder(steps.state), steps.before, points)
        return Losses(
            total=total,
            prediction=prediction,
            predicted=laid_out(batch, scored, predicted),
            num_points=len(error),
            mean_step=float(steps.lengths.mean()),
            num_updates=len(steps.place),
        )
