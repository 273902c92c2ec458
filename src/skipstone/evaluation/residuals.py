"""Errors of forecasts after the context in the data's own units, of a model and of naive ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.evaluation.rollouts import BATCH, Rollouts, predict
from skipstone.models.base import Model
from skipstone.sequences import Sequences

Forecast = Callable[[Sequences], Float[Tensor, "batch horizon dim"]]
"""Predictions at the observations after the context of each sequence."""


@dataclass(frozen=True)
class Residuals:
    """Predictions minus observations after the context, a row per sequence."""

    elapsed: Float[np.ndarray, "batch horizon"]
    """Time since the last observation of the context, in the data's unit."""

    errors: Float[np.ndarray, "batch horizon dim"]
    """In the data's own units; NaN where nothing was observed, infinite where a forecast is NaN."""


@torch.inference_mode()
def residuals_of(forecast: Forecast, sequences: Sequences, num_context: int) -> Residuals:
    """Errors of a forecast, batch by batch."""
    parts = []
    for start in range(0, len(sequences), BATCH):
        batch = sequences[start : start + BATCH]
        predicted = forecast(batch)
        observed = batch.to(predicted.device, predicted.dtype).values[:, num_context:]
        known = batch.mask[:, num_context:, None].to(observed.device) & ~observed.isnan()
        error = (predicted - observed).nan_to_num(np.inf, np.inf, -np.inf)
        part = torch.where(known, error, torch.nan).cpu()
        missing = sequences.times.shape[1] - num_context - part.shape[1]
        parts.append(torch.nn.functional.pad(part, (0, 0, 0, missing), value=torch.nan))
    times = sequences.times.cpu()
    elapsed = times[:, num_context:] - times[:, num_context - 1, None]
    return Residuals(elapsed.numpy(), torch.cat(parts).numpy())


def model_forecast(model: Model[Any]) -> Forecast:
    """Rollouts of a model from its context."""
    device = next(model.parameters()).device
    return lambda batch: predict(model, batch.to(device))[1]


def kept_forecast(rollouts: Rollouts) -> Forecast:
    """The predictions that rollouts kept, batch after batch, to be asked for once."""
    following = iter(rollouts.predicted)
    return lambda batch: next(following)


def naive_forecasts(num_context: int) -> dict[str, Forecast]:
    """Forecasts that every model should beat, by name; both from the same context as a model's."""

    def line(batch: Sequences, velocity: bool) -> Tensor:
        batch = batch.to(dtype=_floating(batch))
        return follow_line(batch.head(num_context), batch.times[:, num_context:], velocity)

    return {
        "persistence": lambda batch: line(batch, velocity=False),
        "constant velocity": lambda batch: line(batch, velocity=True),
    }


def follow_line(
    context: Sequences, times: Float[Tensor, "batch horizon"], velocity: bool
) -> Float[Tensor, "batch horizon dim"]:
    """Each feature's last value, or with `velocity` the line through its last two.

    A feature that was observed once stands still. One that was never observed is unknown, NaN.
    """
    index = torch.arange(context.times.shape[1], device=times.device)[None, :, None]
    seen = context.mask[..., None] & ~context.values.isnan()
    last = torch.where(seen, index, -1).amax(dim=1, keepdim=True)
    before = torch.where(seen & (index < last), index, -1).amax(dim=1, keepdim=True)
    clock = context.times[..., None].expand(context.values.shape)

    def at(place: Tensor) -> tuple[Tensor, Tensor]:
        place = place.clamp(min=0)
        return clock.gather(1, place), context.values.gather(1, place)

    (when, value), (earlier, start) = at(last), at(before)
    value = torch.where(last >= 0, value, torch.nan)
    if not velocity:
        return value.expand(-1, times.shape[1], -1)
    moving = before >= 0
    gap = torch.where(moving, when - earlier, 1.0)
    rate = torch.where(moving, (value - start) / gap.to(value), 0.0)
    return value + rate * (times[..., None] - when).to(value)


def _floating(batch: Sequences) -> torch.dtype:
    dtype = batch.values.dtype
    return dtype if dtype.is_floating_point else torch.get_default_dtype()
