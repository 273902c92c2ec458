"""Recurrent models that update at every observation and decode how far away the next one is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from skipstone.models.arithmetic import (
    laid_out,
    prediction_inputs,
    scored_observations,
    select_rows,
    squared_error,
    with_inputs,
)
from skipstone.models.base import SteppingModel
from skipstone.models.config import ModelConfig
from skipstone.models.controls import Drive
from skipstone.models.learning import Draws, Losses
from skipstone.models.loop import every_interval
from skipstone.models.typing import (
    BatchIndex,
    BatchMask,
    BatchTimes,
    BatchValues,
    Inputs,
    Lengths,
    State,
    Values,
)
from skipstone.sequences import Sequences

_Config = TypeVar("_Config", bound=ModelConfig)


class IntervalModel(SteppingModel[_Config]):
    """A recurrent model that updates at every observation and predicts the next one.

    The decoder is told how far away that is; in between the state stands still. A subclass says
    what its cell is: one update (`update`), and a whole sequence of them at once (`all_features`).
    """

    takes_missing: ClassVar[bool] = True

    decoder: Any
    """Reads features and one length of time (`decoder_of(config, 1)`)."""

    @abstractmethod
    def __init__(self, config: Any):
        super().__init__(config)
        self.min_step = 0.0

    @abstractmethod
    def features(self, state: State) -> Float[Tensor, "rows hidden"]:
        """The part of a state that the decoder reads."""

    @abstractmethod
    def all_features(
        self, encoded: Float[Tensor, "batch time encoded"]
    ) -> Float[Tensor, "batch time hidden"]:
        """The same after each update of whole sequences, from the initial state on."""

    @abstractmethod
    def displacement(
        self,
        features: Float[Tensor, "rows hidden"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Float[Tensor, "rows dim"]:
        """How far observations have moved after some time."""

    @abstractmethod
    def kept(self, batch: Sequences, draws: Draws) -> BatchMask | None:
        """The observations that a training step is about; None for all."""

    def next_steps(self, state: State) -> Lengths:
        """One typical observation interval."""
        return torch.ones_like(state[:, 0])

    def move(
        self, state: State, lengths: Lengths, drive: Drive | None = None, segments: Any = None
    ) -> State:
        """Nothing changes between updates."""
        return state

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error of predicting each observation after the context from those before it."""
        draws = draws or Draws()
        batch = self.prepare(batch, self.config.num_context + 1)
        scored = scored_observations(batch, self.config.num_context)
        read, shown, keep = batch, draws.shown(batch.values), self.kept(batch, draws)
        if keep is not None:
            scored, read = scored & keep, batch.select(keep)
            shown = batch.replaced(shown, None).select(keep).values
        walk = self._in_one_pass if batch.complete else self._one_by_one
        predicted, gaps = walk(read, shown)
        error = squared_error(predicted, batch.values[scored], self.config.missing)
        prediction = error.sum() / max(1, len(error))
        return Losses(
            total=prediction,
            prediction=prediction,
            predicted=laid_out(batch, scored, predicted),
            num_points=len(error),
            mean_step=float(gaps.mean()),
            num_updates=int(read.mask[:, 1:].sum()),
        )

    def _in_one_pass(
        self, batch: Sequences, shown: BatchValues
    ) -> tuple[Float[Tensor, "points dim"], Float[Tensor, " intervals"]]:
        """Predictions of the scored observations, and all gaps."""
        gaps = self.clock(batch.times).diff(dim=1).to(batch.values.dtype)
        elapsed = F.pad(gaps[:, :-1], (1, 0))
        inputs = self.encoder_inputs(shown[:, :-1], elapsed)
        controls = None if batch.controls is None else batch.controls[:, :-1]
        features = self.all_features(self.encode(inputs, controls, elapsed))
        wanted = scored_observations(batch, self.config.num_context)[:, 1:]
        values = batch.values[:, :-1][wanted]
        moved = self.displacement(features[wanted], values, gaps[wanted])
        return values + moved, gaps[batch.mask[:, 1:]]

    def _one_by_one(
        self, batch: Sequences, shown: BatchValues
    ) -> tuple[Float[Tensor, "points dim"], Float[Tensor, " intervals"]]:
        """The same where values are missing, observation by observation: the model's own
        predictions take their place."""
        steps = every_interval(self, batch, shown)
        scored = scored_observations(batch, self.config.num_context)
        # From the order of the rounds to that of the batch.
        order = steps.place.argsort()
        order = order[scored.flatten()[steps.place[order]]]
        state, before = select_rows(steps.state, order), select_rows(steps.before, order)
        moved = self.displacement(self.features(state), before, steps.lengths[order])
        return before + moved, steps.lengths


class EvenSegments(NamedTuple):
    """Rollout segments: one interval each, across which the output moves evenly."""

    values: Float[Tensor, "segments dim"]
    displacement: Float[Tensor, "segments dim"]
    lengths: Float[Tensor, " segments"]


class EvenModel(IntervalModel[_Config]):
    """An interval model whose output moves evenly from one observation to the next."""

    def displacement(
        self,
        features: Float[Tensor, "rows hidden"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Float[Tensor, "rows dim"]:
        """How far observations are from the next ones, some time later."""
        decoded = self.decoder(with_inputs(features, lengths[:, None]))
        return decoded if self.config.moves else decoded - values

    def kept(self, batch: Sequences, draws: Draws) -> BatchMask | None:
        """All."""
        return None

    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None = None
    ) -> tuple[EvenSegments, int]:
        """One decoding per interval."""
        moved = self.displacement(self.features(state), values, lengths)
        return EvenSegments(values, moved, lengths), 0

    def ends(self, segments: EvenSegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        displacement = segments.displacement
        predicted = segments.values + displacement
        return predicted, prediction_inputs(predicted, displacement, lengths, self.config)

    def predict(
        self,
        segments: EvenSegments,
        index: BatchIndex,
        offsets: BatchTimes,
        drive: Drive | None = None,
    ) -> tuple[BatchValues, int]:
        """Predictions of a path; nothing is integrated."""
        fraction = offsets / segments.lengths[index]
        return segments.values[index] + fraction[..., None] * segments.displacement[index], 0


def updates_in_turn(
    update: Callable[[Tensor, Tensor], Tensor],
    state: Float[Tensor, "batch state"],
    encoded: Float[Tensor, "batch time encoded"],
) -> Float[Tensor, "batch time state"]:
    """States after each update, one after the other: for cells that have no faster way."""
    states = []
    for each in encoded.unbind(1):
        state = update(state, each)
        states.append(state)
    return torch.stack(states, dim=1)
