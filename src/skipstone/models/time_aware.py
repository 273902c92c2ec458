"""A GRU that is trained on several intervals, so that it can take large steps as well as small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.errors import require_number
from skipstone.models.arithmetic import (
    observation_inputs,
    prediction_inputs,
    select_rows,
    with_inputs,
)
from skipstone.models.config import ModelConfig
from skipstone.models.controls import Drive, changes
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.intervals import IntervalModel
from skipstone.models.learning import Draws
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
class TimeAwareConfig(ModelConfig):
    """Configuration of a `TimeAware`."""

    longest: int = 8
    """Longest training interval, in observations. Intervals from 1 to this are drawn for each
    sequence, short ones more often: as many between 1 and 2 as between 4 and 8."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("longest", self.longest, 1, whole=True)


class TimeAwareSegments(NamedTuple):
    """Rollout segments: what the decoder needs besides an offset, and how far they went."""

    values: Float[Tensor, "segments dim"]
    state: Float[Tensor, "segments state"]
    moved: Float[Tensor, "segments dim"]


class TimeAware(IntervalModel[TimeAwareConfig]):
    """A GRU that predicts x(t + Δt) = x(t) + Δt·f(state, Δt) and is trained on many Δt.

    The idea of time-aware world models. It updates at every observation, or with a larger `step` of
    its rollout less often: what it has learned holds for both.
    """

    Config: ClassVar[type[TimeAwareConfig]] = TimeAwareConfig
    title: ClassVar[str] = "time-aware GRU"

    def __init__(self, config: TimeAwareConfig):
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
        """The cell's input, with the time since the last update."""
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

    def displacement(
        self,
        features: Float[Tensor, "rows hidden"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Float[Tensor, "rows dim"]:
        """How far observations have moved after some time: from nothing on, unless the readout is
        absolute."""
        lengths = lengths[:, None]
        decoded = self.decoder(with_inputs(features, lengths))
        return lengths * decoded if self.config.moves else decoded - values

    def kept(self, batch: Sequences, draws: Draws) -> BatchMask | None:
        """The context, then one observation in so many, drawn for each row. The last one stays, and
        so do changes of controls, which no step crosses."""
        if draws.uniform is None:
            return None
        chance = draws.uniform("interval")[:, :1].to(batch.times.device)
        interval = ((self.config.longest + 1) ** chance).long().clamp(max=self.config.longest)
        index = torch.arange(batch.times.shape[1], device=batch.times.device)
        after = index - (self.config.num_context - 1)
        keep = (after <= 0) | (after % interval == 0) | (index == batch.lengths[:, None] - 1)
        if batch.controls is not None:
            keep = keep | changes(batch.controls)
        return keep & batch.mask

    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None = None
    ) -> tuple[TimeAwareSegments, int]:
        """Decoded at their ends; the rest waits for queries."""
        return TimeAwareSegments(values, state, self.displacement(state, values, lengths)), 0

    def ends(self, segments: TimeAwareSegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        predicted = segments.values + segments.moved
        return predicted, prediction_inputs(predicted, segments.moved, lengths, self.config)

    def predict(
        self,
        segments: TimeAwareSegments,
        index: BatchIndex,
        offsets: BatchTimes,
        drive: Drive | None = None,
    ) -> tuple[BatchValues, int]:
        """Predictions of a path, each decoded for its own offset."""
        flat = index.reshape(-1)
        values, state = select_rows(segments.values, flat), select_rows(segments.state, flat)
        predicted = values + self.displacement(state, values, offsets.reshape(-1))
        return predicted.reshape(*index.shape, self.config.dim), 0
