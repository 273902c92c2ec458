"""The plain recurrent baseline: one cell update per observation interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.models.arithmetic import (
    laid_out,
    observation_inputs,
    prediction_inputs,
    scored_observations,
    select_rows,
    squared_error,
    with_inputs,
)
from skipstone.models.base import SteppingModel
from skipstone.models.config import ModelConfig
from skipstone.models.controls import Drive
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.learning import Draws, Losses
from skipstone.models.loop import every_interval
from skipstone.models.typing import (
    BatchIndex,
    BatchMask,
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


@dataclass(frozen=True, kw_only=True)
class RNNConfig(ModelConfig):
    """Configuration of an `RNN`."""


class RNNSegments(NamedTuple):
    """Rollout segments: one interval each, across which the output moves evenly."""

    values: Float[Tensor, "segments dim"]
    displacement: Float[Tensor, "segments dim"]
    lengths: Float[Tensor, " segments"]


class RNN(SteppingModel[RNNConfig]):
    """A GRU that updates at every observation and predicts the next one.

    The encoder is told how long ago the last observation was and the decoder how far away the
    next one is, so that irregular times mean something; at a regular spacing both are constant.
    Between observations the hidden state stands still and the output moves evenly.
    """

    Config: ClassVar[type[RNNConfig]] = RNNConfig
    title: ClassVar[str] = "RNN"
    takes_missing: ClassVar[bool] = True

    def __init__(self, config: RNNConfig):
        super().__init__(config)
        self.min_step = 0.0
        self.encoder = encoder_of(config, 1)
        self.cell = nn.GRU(config.hidden, config.hidden, batch_first=True)
        self.decoder = decoder_of(config, 1)

    def initial_state(self, rows: int) -> State:
        """Zero."""
        return self.cell.all_weights[0][0].new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it."""
        return observation_inputs(values, gaps, self.config)

    def encode(
        self, inputs: Float[Tensor, "*rows dim"], controls: Controls | None, elapsed: Elapsed
    ) -> Encoded:
        """The cell's input, with the time since the last observation."""
        return self.encoder(with_inputs(inputs, controls, elapsed[..., None]))

    def update(self, state: State, encoded: Encoded) -> State:
        """One GRU update, with the weights of the layer that training runs over whole sequences."""
        return torch.gru_cell(encoded, state, *self.cell.all_weights[0])

    def next_steps(self, state: State) -> Lengths:
        """One typical observation interval."""
        return torch.ones_like(state[:, 0])

    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None = None
    ) -> tuple[RNNSegments, int]:
        """One decoding per interval."""
        displacement = self._displacement(state, values, lengths[:, None])
        return RNNSegments(values, displacement, lengths), 0

    def _displacement(
        self,
        state: Float[Tensor, "*rows state"],
        values: Float[Tensor, "*rows dim"],
        gaps: Float[Tensor, "*rows 1"],
    ) -> Float[Tensor, "*rows dim"]:
        """How far observations are from the next ones, some time later."""
        decoded = self.decoder(with_inputs(state, gaps))
        return decoded if self.config.moves else decoded - values

    def move(
        self,
        state: State,
        lengths: Lengths,
        drive: Drive | None = None,
        segments: RNNSegments | None = None,
    ) -> State:
        """Nothing changes between updates."""
        return state

    def ends(self, segments: RNNSegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        displacement = segments.displacement
        predicted = segments.values + displacement
        return predicted, prediction_inputs(predicted, displacement, lengths, self.config)

    def predict(
        self,
        segments: RNNSegments,
        index: BatchIndex,
        offsets: BatchTimes,
        drive: Drive | None = None,
    ) -> tuple[BatchValues, int]:
        """Predictions of a path; nothing is integrated."""
        fraction = offsets / segments.lengths[index]
        return segments.values[index] + fraction[..., None] * segments.displacement[index], 0

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error of predicting each observation after the context from those before it."""
        batch = self.prepare(batch, self.config.num_context + 1)
        scored = scored_observations(batch, self.config.num_context)
        walk = self._walk_missing if not batch.complete else self._walk_fused
        predicted, gaps = walk(batch, (draws or Draws()).shown(batch.values), scored)
        error = squared_error(predicted, batch.values[scored], self.config.missing)
        prediction = error.sum() / max(1, len(error))
        return Losses(
            total=prediction,
            prediction=prediction,
            predicted=laid_out(batch, scored, predicted),
            num_points=len(error),
            mean_step=float(gaps.mean()),
            num_updates=int(batch.mask[:, 1:].sum()),
        )

    def _walk_fused(
        self, batch: Sequences, shown: BatchValues, scored: BatchMask
    ) -> tuple[Float[Tensor, "points dim"], Float[Tensor, " intervals"]]:
        """Predictions of the scored observations and all gaps, by one pass over whole sequences."""
        gaps = self.clock(batch.times).diff(dim=1).to(batch.values.dtype)[..., None]
        elapsed = torch.cat([torch.zeros_like(gaps[:, :1]), gaps[:, :-1]], dim=1)
        inputs = self.encoder_inputs(shown[:, :-1], elapsed[..., 0])
        values = batch.values[:, :-1]
        controls = None if batch.controls is None else batch.controls[:, :-1]
        states, _ = self.cell(self.encoder(with_inputs(inputs, controls, elapsed)))
        wanted = scored[:, 1:]
        values = values[wanted]
        predicted = values + self._displacement(states[wanted], values, gaps[wanted])
        return predicted, gaps[batch.mask[:, 1:]][:, 0]

    def _walk_missing(
        self, batch: Sequences, shown: BatchValues, scored: BatchMask
    ) -> tuple[Float[Tensor, "points dim"], Float[Tensor, " intervals"]]:
        """The same where values are missing, observation by observation: the model's own
        predictions take their place."""
        steps = every_interval(self, batch, shown)
        # From the order of the rounds to that of the batch.
        order = steps.place.argsort()
        order = order[scored.flatten()[steps.place[order]]]
        state, before = select_rows(steps.state, order), select_rows(steps.before, order)
        gaps = steps.lengths[order][:, None]
        return before + self._displacement(state, before, gaps), steps.lengths
