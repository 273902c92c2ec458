"""GRU-D (Che et al. 2018): a GRU for irregular data with missing values, whose memory decays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.models.arithmetic import (
    filled,
    last_observed,
    observation_inputs,
    with_inputs,
)
from skipstone.models.config import ModelConfig
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.intervals import EvenModel, EvenSegments, updates_in_turn
from skipstone.models.typing import (
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

FIRST_RATE = 0.1
"""Rate at which a missing value falls to the mean before training, per unit of time. At 0 it would
have no gradient."""


@dataclass(frozen=True, kw_only=True)
class GRUDConfig(ModelConfig):
    """Configuration of a `GRUD`."""


class GRUD(EvenModel[GRUDConfig]):
    """A GRU whose state decays with the time since each feature was last observed.

    A missing value is read as its last one, which falls to the mean of the feature. How fast both
    decay is learned. The encoder is told the times, and which values were observed.
    """

    Config: ClassVar[type[GRUDConfig]] = GRUDConfig
    title: ClassVar[str] = "GRU-D"

    def __init__(self, config: GRUDConfig):
        super().__init__(config)
        self.encoder = encoder_of(config, config.dim)
        self.cell = nn.GRUCell(config.hidden, config.hidden)
        self.decoder = decoder_of(config, 1)
        self.state_decay = nn.Linear(config.dim, config.hidden)
        if config.missing:
            self.value_decay = nn.Parameter(torch.full((2, config.dim), FIRST_RATE))

    def initial_state(self, rows: int) -> State:
        """Zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it, with decayed values in place of missing ones; then the time since
        each feature was last observed."""
        inputs = observation_inputs(values, gaps, self.config)
        if not self.config.missing:
            return torch.cat([inputs, gaps[..., None].expand_as(values)], dim=-1)
        last, known = last_observed(values)
        clock = gaps.cumsum(1)[..., None].expand_as(values)
        since = clock - clock.gather(1, last)
        rate, offset = self.value_decay
        held = torch.where(known, values.gather(1, last), 0.0) * _decay(rate * since + offset)
        # What is missing has not moved.
        instead = F.pad(held, (0, inputs.shape[-1] - held.shape[-1]))
        return torch.cat([filled(inputs, instead), since], dim=-1)

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input, and how much is left of the state."""
        decay = _decay(self.state_decay(inputs[..., -self.config.dim :]))
        return torch.cat([self.encoder(with_inputs(inputs, controls)), decay], dim=-1)

    def update(self, state: State, encoded: Encoded) -> State:
        """Decay, then the cell update."""
        inputs, decay = encoded.chunk(2, dim=1)
        return self.cell(inputs, state * decay)

    def features(self, state: State) -> Float[Tensor, "rows hidden"]:
        """All of it."""
        return state

    def all_features(
        self, encoded: Float[Tensor, "batch time encoded"]
    ) -> Float[Tensor, "batch time hidden"]:
        """Update by update."""
        return updates_in_turn(self.update, self.initial_state(len(encoded)), encoded)

    def ends(self, segments: EvenSegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        predicted, inputs = super().ends(segments, lengths)
        return predicted, torch.cat([inputs, lengths[:, None].expand_as(predicted)], dim=1)


def _decay(rate: Tensor) -> Tensor:
    """A factor in (0, 1]."""
    return torch.exp(-F.relu(rate))
