"""The plain recurrent baseline: one cell update per observation interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.models.arithmetic import mean_error, squared_error, with_inputs
from skipstone.models.base import ModelConfig, SteppingModel
from skipstone.models.learning import Draws, Losses
from skipstone.models.networks import ResidualMLP
from skipstone.models.typing import (
    BatchIndex,
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
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

    def __init__(self, config: RNNConfig):
        super().__init__(config)
        hidden, layers = config.hidden, config.layers
        self.min_step = 0.0
        self.encoder = ResidualMLP(config.dim + config.control + 1, hidden, hidden, layers)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.decoder = ResidualMLP(hidden + 1, hidden, config.dim, layers)

    def initial_state(self, rows: int) -> State:
        """Zero."""
        return self.encoder.first.weight.new_zeros(rows, self.config.hidden)

    def encoder_inputs(self, values: BatchValues, gaps: BatchTimes) -> BatchValues:
        """The observations themselves."""
        return values

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

    def segments(self, state: State, values: Values, lengths: Lengths) -> tuple[RNNSegments, int]:
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

    def move(self, state: State, lengths: Lengths, segments: RNNSegments | None = None) -> State:
        """Nothing changes between updates."""
        return state

    def ends(self, segments: RNNSegments, lengths: Lengths) -> tuple[Values, Values]:
        """Prediction at the end, which is also what the encoder is given."""
        predicted = segments.values + segments.displacement
        return predicted, predicted

    def predict(
        self, segments: RNNSegments, index: BatchIndex, offsets: BatchTimes
    ) -> tuple[BatchValues, int]:
        """Predictions of a path; nothing is integrated."""
        fraction = offsets / segments.lengths[index]
        return segments.values[index] + fraction[..., None] * segments.displacement[index], 0

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error of predicting each observation from those before it, by one fused pass."""
        batch = self.prepare(batch, 2)
        gaps = batch.times.diff(dim=1).div(self.config.time_unit).to(batch.values.dtype)[..., None]
        elapsed = torch.cat([torch.zeros_like(gaps[:, :1]), gaps[:, :-1]], dim=1)
        values = batch.values[:, :-1]
        shown = (draws or Draws()).shown(batch.values)[:, :-1]
        controls = None if batch.controls is None else batch.controls[:, :-1]
        states, _ = self.cell(self.encoder(with_inputs(shown, controls, elapsed)))
        predicted = values + self._displacement(states, values, gaps)
        valid = batch.mask[:, 1:]
        error = squared_error(predicted, batch.values[:, 1:])[valid]
        prediction, errors = mean_error(batch, error, torch.nn.functional.pad(valid, (1, 0)))
        return Losses(
            total=prediction,
            prediction=prediction,
            errors=errors,
            mean_step=float(gaps[valid].mean()),
            num_updates=int(valid.sum()),
        )
