"""The plain recurrent baseline: one cell update per observation interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.models.arithmetic import observation_inputs, with_inputs
from skipstone.models.config import ModelConfig
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.intervals import EvenModel
from skipstone.models.typing import (
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
    Inputs,
    State,
)


@dataclass(frozen=True, kw_only=True)
class RNNConfig(ModelConfig):
    """Configuration of an `RNN`."""


class RNN(EvenModel[RNNConfig]):
    """A GRU that updates at every observation and predicts the next one.

    The encoder is told how long ago the last observation was and the decoder how far away the
    next one is, so that irregular times mean something; at a regular spacing both are constant.
    Between observations the hidden state stands still and the output moves evenly.
    """

    Config: ClassVar[type[RNNConfig]] = RNNConfig
    title: ClassVar[str] = "RNN"

    def __init__(self, config: RNNConfig):
        super().__init__(config)
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

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input, with the time since the last observation."""
        return self.encoder(with_inputs(inputs, controls, elapsed[..., None]))

    def update(self, state: State, encoded: Encoded) -> State:
        """One GRU update, with the weights of the layer that training runs over whole sequences."""
        return torch.gru_cell(encoded, state, *self.cell.all_weights[0])

    def features(self, state: State) -> Float[Tensor, "rows hidden"]:
        """All of it."""
        return state

    def all_features(
        self, encoded: Float[Tensor, "batch time encoded"]
    ) -> Float[Tensor, "batch time hidden"]:
        """By the fused layer."""
        return self.cell(encoded)[0]
