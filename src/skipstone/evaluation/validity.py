"""Valid prediction time: how long a rollout can be trusted, the measure of chaotic forecasting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.evaluation.rollouts import Errors, Rollouts, rollout_errors
from skipstone.models.base import Model
from skipstone.models.scaling import SAMPLE, Scaler, measure_scale
from skipstone.sequences import Sequences

SHARES = (0.05, 0.2)
"""Errors beyond which a prediction no longer counts as valid, as shares of the data's spread."""


@dataclass(frozen=True)
class ValidTime:
    """How long predictions stay close to the truth."""

    share: float
    """The error that ends it, root mean square over features, as a share of their spread."""

    time: Estimate
    """Median over trajectories of the time until an observation is missed by more, in the model's
    unit. One that is never missed counts with its whole length."""

    lasting: Estimate
    """Share of the trajectories that are never missed."""


def valid_times(
    model: Model[Any], sequences: Sequences, rollouts: Rollouts, bootstrap: Bootstrap
) -> tuple[ValidTime, ...]:
    """The valid prediction times of rollouts from the context to the end, whose predictions were
    kept."""
    sample = sequences[:SAMPLE].to(dtype=torch.float64)
    joint = not sequences.values.is_floating_point()
    scaler = Scaler(*measure_scale(sample.values[sample.mask], "standard", joint=joint))
    errors = rollout_errors(model, sequences, rollouts, scaler)
    count, unit = model.config.num_context, model.config.time_unit
    elapsed = (sequences.times[:, count:] - sequences.times[:, count - 1, None]) / unit
    ends, one_each = elapsed.cpu().numpy(), np.ones(len(sequences))
    found = []
    for share in SHARES:
        times, lasting = _until_missed(errors, share, ends)
        median = bootstrap.median(times)
        found.append(ValidTime(share, median, bootstrap.ratio(lasting, one_each)))
    return tuple(found)


def _until_missed(
    errors: Errors, share: float, elapsed: Float[np.ndarray, "batch horizon"]
) -> tuple[Float[np.ndarray, " batch"], Float[np.ndarray, " batch"]]:
    """When each trajectory is first missed by more than a share, and whether it never is."""
    # A prediction that is not a number is a miss.
    missed = errors.observed & ~(errors.values <= share**2)
    never = np.asarray(~missed.any(1))
    first = np.where(never, missed.shape[1] - 1, missed.argmax(1))
    times = np.take_along_axis(elapsed, first[:, None], axis=1)[:, 0]
    return times, never.astype(np.float64)
