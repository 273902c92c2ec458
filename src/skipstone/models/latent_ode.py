"""The latent ODE: read the context, then integrate one neural ODE with no further update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.errors import InvalidInput, require_number
from skipstone.models import limits
from skipstone.models.arithmetic import (
    filled,
    laid_out,
    last_observed,
    observation_inputs,
    scored_observations,
    squared_error,
    start_error,
    with_inputs,
)
from skipstone.models.base import Model
from skipstone.models.controls import ControlSignal
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.learning import Draws, Losses
from skipstone.models.ode import NEEDS, Dynamics, ODEConfig, integrate
from skipstone.models.typing import BatchTimes, BatchValues
from skipstone.path import Path, Status
from skipstone.sequences import Sequences


@dataclass(frozen=True, kw_only=True)
class LatentODEConfig(ODEConfig):
    """Configuration of a `LatentODE`."""


class LatentODE(Model[LatentODEConfig]):
    """A GRU reads the context; from its state one neural ODE is integrated to all times.

    Nothing is read after the context, so later controls cannot reach the prediction. Nothing is
    predicted inside the context either, so the last value stands for a missing one.
    """

    Config: ClassVar[type[LatentODEConfig]] = LatentODEConfig
    title: ClassVar[str] = "latent ODE"
    takes_missing: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = NEEDS

    def __init__(self, config: LatentODEConfig):
        super().__init__(config)
        hidden = config.hidden
        self.encoder = encoder_of(config, 1)
        self.cell = nn.GRU(hidden, hidden, batch_first=True)
        self.dynamics = Dynamics(hidden)
        # A displacement is a difference of two decodings, from which a bias would cancel.
        self.decoder = decoder_of(config, output_bias=not config.moves)

    def rollout(
        self,
        context: Sequences,
        until: Any,
        controls: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> Path:
        """Predict from the last `num_context` observations; the integration waits for queries. It
        covers at most 10,000 units of time, or `max_updates` if that is more."""
        if step is not None:
            raise InvalidInput(
                "a LatentODE reads nothing after its context, so it takes no steps; got a step of "
                f"{step}. Leave it out."
            )
        context = self.prepare_context(context)
        end, unit = self.end_times(context, until), self.config.time_unit
        # Checked like everywhere, although nothing after the context is read.
        ControlSignal.after(context, controls, end, unit, self.controls_scaler)
        if max_updates is not None:
            require_number("max_updates", max_updates, 1, whole=True)
        # It has no updates to count, but integrates every unit of time.
        reached = end.minimum(context.ends + max(limits.MOST_UPDATES, max_updates or 0) * unit)
        status = torch.where(reached < end, int(Status.MAX_UPDATES), int(Status.REACHED_END))
        limits.warn_of_limit(status, context, end, unit, stacklevel=2)
        state, values = self._state(context, context.values), _held(context.values)[:, -1]

        def predict(segment: Tensor, elapsed: Tensor) -> tuple[Tensor, int]:
            """One integration through all times asked for, in order."""
            ordered, order = (elapsed / unit).to(values.dtype).sort(dim=1)
            predicted, calls = self._predict(state, values, ordered)
            back = order.argsort(dim=1)[..., None].expand(predicted.shape)
            return self.in_data_units(predicted.gather(1, back)), calls

        return Path(
            predict,
            context.ends[:, None],
            reached,
            status,
            about=context.about,
            calibration=self.calibration,
        )

    def _state(self, context: Sequences, shown: BatchValues) -> Float[Tensor, "batch state"]:
        """The state after the context."""
        gaps = (context.times.diff(dim=1) / self.config.time_unit).to(shown.dtype)
        elapsed = torch.nn.functional.pad(gaps, (1, 0))
        inputs = observation_inputs(shown, elapsed, self.config)
        if not context.complete:
            # What is missing has not moved.
            inputs = filled(inputs, F.pad(_held(shown), (0, inputs.shape[2] - shown.shape[2])))
        inputs = with_inputs(inputs, context.controls, elapsed[..., None])
        states, _ = self.cell(self.encoder(inputs))
        return states[:, -1]

    def _predict(
        self,
        state: Float[Tensor, "batch state"],
        values: Float[Tensor, "batch dim"],
        offsets: BatchTimes,
    ) -> tuple[BatchValues, int]:
        states, calls = integrate(self.dynamics, state, offsets, self.config)
        decoded = self.decoder(states)
        if self.config.moves:
            decoded = values[:, None] + decoded - self.decoder(state)[:, None]
        return decoded, calls

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Error at every observation after the context; with the absolute readout also the error
        where the integration begins (`start_error`)."""
        count = self.config.num_context
        batch = self.prepare(batch, count + 1)
        shown = (draws or Draws()).shown(batch.values)[:, :count]
        state = self._state(batch.head(count), shown)
        values = _held(batch.values[:, :count])[:, -1]
        offsets = batch.times[:, count:] - batch.times[:, count - 1, None]
        offsets = (offsets / self.config.time_unit).to(batch.values.dtype)
        predicted, _ = self._predict(state, values, offsets)
        scored = scored_observations(batch, count)
        predicted = predicted[scored[:, count:]]
        error = squared_error(predicted, batch.values[scored], self.config.missing)
        points = max(1, len(error))
        total = prediction = error.sum() / points
        if not self.config.moves:
            total = total + start_error(self.decoder(state), values, points)
        return Losses(
            total=total,
            prediction=prediction,
            predicted=laid_out(batch, scored, predicted),
            num_points=len(error),
            mean_step=float(offsets[:, -1].mean()),
            num_updates=len(batch) * count,
        )


def _held(values: BatchValues) -> BatchValues:
    """Each missing value by the last one that was observed, before any by the center."""
    last, known = last_observed(values)
    return filled(values, torch.where(known, values.gather(1, last), 0.0))
