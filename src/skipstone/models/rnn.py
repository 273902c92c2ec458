"""The plain recurrent baseline: one cell update per observation interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.models.base import Losses, Model, ModelConfig, mean_error, squared_error, with_inputs
from skipstone.models.networks import ResidualMLP
from skipstone.models.stepping import one_unit, roll_out
from skipstone.path import Path
from skipstone.sequences import Sequences


@dataclass(frozen=True, kw_only=True)
class RNNConfig(ModelConfig):
    """Configuration of an `RNN`."""


class Strides(NamedTuple):
    """Segments of an `RNN`: each covers one interval, and its output moves evenly across it."""

    values: Float[Tensor, "strides dim"]
    displacement: Float[Tensor, "strides dim"]
    lengths: Float[Tensor, " strides"]


class RNN(Model[RNNConfig]):
    """A GRU that updates at every observation and predicts the next one.

    The encoder is told how long ago the last observation was and the decoder how far away the
    next one is, so that irregular times mean something; at a regular spacing both are constant.
    Between observations the hidden state stands still and the output moves evenly.
    """

    Config: ClassVar[type[RNNConfig]] = RNNConfig

    def __init__(self, config: RNNConfig):
        nn.Module.__init__(self)
        self.config = config
        hidden, layers = config.hidden, config.layers
        self.encoder = ResidualMLP(config.dim + config.control + 1, hidden, hidden, layers)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.decoder = ResidualMLP(hidden + 1, hidden, config.dim, layers)

    def initial_state(self, rows: int) -> Float[Tensor, "rows state"]:
        """Zero."""
        return self.encoder.first.weight.new_zeros(rows, self.config.hidden)

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
        """What the cell reads, with the time since the last observation."""
        return self.encoder(with_inputs(readings, controls, elapsed[..., None]))

    def update(
        self, state: Float[Tensor, "rows state"], encoded: Float[Tensor, "rows encoded"]
    ) -> Float[Tensor, "rows state"]:
        """One GRU update, with the weights of the layer that training runs over whole sequences."""
        return torch.gru_cell(encoded, state, *self.cell.all_weights[0])

    def move(
        self, state: Float[Tensor, "rows state"], lengths: Float[Tensor, " rows"]
    ) -> Float[Tensor, "rows state"]:
        """Nothing changes between updates."""
        return state

    def segments(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Strides:
        """One decoding per interval."""
        return Strides(values, self._displacement(state, values, lengths[:, None]), lengths)

    def _displacement(
        self,
        state: Float[Tensor, "*rows state"],
        values: Float[Tensor, "*rows dim"],
        gaps: Float[Tensor, "*rows 1"],
    ) -> Float[Tensor, "*rows dim"]:
        """How far observations are from the next ones, some time later."""
        decoded = self.decoder(with_inputs(state, gaps))
        return decoded if self.config.moves else decoded - values

    def advance(
        self,
        segments: Strides,
        state: Float[Tensor, "rows state"],
        lengths: Float[Tensor, " rows"],
    ) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows dim"], Float[Tensor, "rows state"]]:
        """Prediction, what is read of it, and state at the end of each interval."""
        predicted = segments.values + segments.displacement
        return predicted, predicted, state

    def read(
        self,
        segments: Strides,
        index: Int[Tensor, "batch time"],
        offsets: Float[Tensor, "batch time"],
    ) -> tuple[Float[Tensor, "batch time dim"], int]:
        """Predictions of a path; nothing is integrated."""
        fraction = offsets / segments.lengths[index]
        return segments.values[index] + fraction[..., None] * segments.displacement[index], 0

    def rollout(self, context: Sequences, until: float | Tensor, *, controls: Any = None) -> Path:
        """Predict from the last `num_context` observations, one typical spacing at a time."""
        context = self.prepare(context, self.config.num_context)
        return roll_out(self, context, until, controls, one_unit)

    def loss(
        self, batch: Sequences, *, seen: Float[Tensor, "batch time dim"] | None = None
    ) -> Losses:
        """Error of predicting each observation from those before it.

        `seen` is what the encoder reads instead of the values, for training with noise.
        """
        batch = self.prepare(batch, 2)
        gaps = batch.times.diff(dim=1).div(self.config.time_unit).to(batch.values.dtype)[..., None]
        elapsed = torch.cat([torch.zeros_like(gaps[:, :1]), gaps[:, :-1]], dim=1)
        values = batch.values[:, :-1]
        read = values if seen is None else seen[:, :-1]
        controls = None if batch.controls is None else batch.controls[:, :-1]
        states, _ = self.cell(self.encoder(with_inputs(read, controls, elapsed)))
        predicted = values + self._displacement(states, values, gaps)
        valid = batch.mask[:, 1:]
        wanted = torch.nn.functional.pad(valid, (1, 0))
        error = squared_error(predicted, batch.values[:, 1:])[valid]
        prediction, errors = mean_error(batch, error, wanted)
        return Losses(
            total=prediction,
            prediction=prediction,
            step=torch.zeros_like(prediction),
            errors=errors,
            num_steps=0,
            mean_step=float(gaps[valid].mean()),
            num_updates=int(valid.sum()),
        )
