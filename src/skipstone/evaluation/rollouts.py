"""Predictions of a model beside what was observed, for any number of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from skipstone.models.arithmetic import scored_observations, squared_error
from skipstone.models.base import Model
from skipstone.models.scaling import Scaler
from skipstone.path import Path
from skipstone.sequences import Sequences

BATCH = 256
"""Sequences that are predicted together."""


@dataclass(frozen=True)
class Errors:
    """Squared errors at the observations after the context, a row per sequence."""

    values: Float[np.ndarray, "batch horizon"]
    """Mean squared error over the features observed, in the data's units; 0 where none was."""

    observed: Bool[np.ndarray, "batch horizon"]
    """Where anything was observed."""


@dataclass(frozen=True)
class Rollouts:
    """Errors, knots and cost of rollouts from each context to its sequence's end."""

    errors: Errors
    """Errors of the predictions, each at the time of its observation."""

    start: Float[np.ndarray, " batch"]
    """Last observation of each context."""

    end: Float[np.ndarray, " batch"]
    """Last observation of each sequence."""

    knots: Float[np.ndarray, "batch segments"]
    """Times of the cell updates, the first at `start`; filled up with infinity."""

    evaluations: Int[np.ndarray, " batch"]
    """Evaluations of an ODE's right-hand side."""

    predicted: tuple[Float[Tensor, "_ _ dim"], ...] = ()
    """Predictions at the observations after the context, in the data's units, a tensor for each
    batch of `BATCH` sequences; empty unless `roll_out_all` was asked to keep them."""

    @property
    def updates(self) -> Int[np.ndarray, " batch"]:
        """Number of cell updates of each trajectory."""
        return np.isfinite(self.knots).sum(1)


def predict(
    model: Model[Any], batch: Sequences, step: float | None = None
) -> tuple[Path, Float[Tensor, "batch horizon dim"]]:
    """Roll out from the context to the end, and evaluate the path at the observations after it.

    `step` is a constant time between updates, in the data's unit, instead of the model's choice.
    """
    count, unit = model.config.num_context, model.config.time_unit
    controls = _later_controls(batch, count, unit)
    path = model.rollout(batch.head(count), batch.ends, controls, step=step)
    # Padding repeats a sequence's last time, so it never asks for anything outside a path.
    return path, path.evaluate(batch.times[:, count:])


def roll_out_all(
    model: Model[Any],
    sequences: Sequences,
    step: float | None = None,
    *,
    scaler: Scaler | None = None,
    keep: bool = False,
) -> Rollouts:
    """Roll out every sequence, batch by batch. Errors are in the data's units, or in those of a
    `scaler`, where features of different sizes count the same. `keep` the predictions, too, where
    more than one thing is measured on them."""
    count = model.config.num_context
    errors, knots, evaluations, kept = [], [], [], []
    for batch in _batches(model, sequences):
        path, predicted = predict(model, batch, step)
        errors.append(_errors(model, batch, predicted, scaler))
        knots.append(path.knots)
        evaluations.append(path.num_evaluations)
        kept += [predicted] if keep else []
    return Rollouts(
        errors=_after_context(model, sequences, errors),
        start=_array(sequences.times[:, count - 1]),
        end=_array(sequences.ends),
        knots=_stack(knots, max(part.shape[1] for part in knots), fill=np.inf),
        evaluations=_array(torch.cat(evaluations)),
        predicted=tuple(kept),
    )


def rollout_errors(
    model: Model[Any], sequences: Sequences, rollouts: Rollouts, scaler: Scaler
) -> Errors:
    """Errors of rollouts whose predictions were kept, in the units of a `scaler`."""
    batches = zip(_batches(model, sequences), rollouts.predicted, strict=True)
    parts = [_errors(model, batch, predicted, scaler) for batch, predicted in batches]
    return _after_context(model, sequences, parts)


def teacher_forced_errors(model: Model[Any], sequences: Sequences) -> Errors:
    """Errors of predicting each observation from those before it, in one pass."""
    count = model.config.num_context
    errors = []
    for batch in _batches(model, sequences):
        predicted = model.in_data_units(model.loss(batch).predicted[:, count:])
        errors.append(_errors(model, batch, predicted))
    return _after_context(model, sequences, errors)


def _batches(model: Model[Any], sequences: Sequences) -> Iterator[Sequences]:
    device = next(model.parameters()).device
    for start in range(0, len(sequences), BATCH):
        yield sequences[start : start + BATCH].to(device)


def _errors(
    model: Model[Any], batch: Sequences, predicted: Tensor, scaler: Scaler | None = None
) -> Float[Tensor, "batch time"]:
    """Squared errors of predictions after the context, averaged over the target features."""
    observed = batch.to(dtype=predicted.dtype).values[:, model.config.num_context :]
    if scaler is not None:
        observed, predicted = scaler.into(observed), scaler.into(predicted)
    if model.config.targets:
        targets = list(model.config.targets)
        observed, predicted = observed[..., targets], predicted[..., targets]
    return squared_error(predicted, observed, not batch.complete)


def _later_controls(batch: Sequences, count: int, unit: float) -> tuple[Tensor, Tensor] | None:
    """Controls after the context. Past a sequence's end its last one holds, at times that go on
    to increase, because a signal's have to."""
    if batch.controls is None:
        return None
    index = torch.arange(count, batch.times.shape[1], device=batch.times.device)
    past_end = (index - batch.lengths[:, None] + 1).clamp(min=0)
    held = (index - past_end)[..., None].expand(-1, -1, batch.control_dim)
    return batch.times[:, count:] + unit * past_end, batch.controls.gather(1, held)


def _after_context(model: Model[Any], sequences: Sequences, parts: list[Tensor]) -> Errors:
    observed = _array(scored_observations(sequences, model.config.num_context))
    observed = observed[:, model.config.num_context :]
    values = _stack(parts, observed.shape[1], fill=0.0)
    # By the mask, not by NaN: a model that diverged must not pass for one without observations.
    return Errors(np.where(observed, values, 0.0), observed)


def _stack(parts: list[Tensor], width: int, fill: float) -> Float[np.ndarray, "batch width"]:
    """Batches of different widths as one array."""
    wide = [torch.nn.functional.pad(part, (0, width - part.shape[1]), value=fill) for part in parts]
    return _array(torch.cat(wide).cpu().double())


def _array(values: Tensor) -> Num[np.ndarray, ...]:
    return values.cpu().numpy()
