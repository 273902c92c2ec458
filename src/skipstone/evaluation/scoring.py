"""Scores of forecasts that say how sure they are; lower is better, in the data's own units."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from skipstone.errors import require_number


def interval_score(
    observed: Float[np.ndarray, "*shape"],
    lower: Float[np.ndarray, "*shape"],
    upper: Float[np.ndarray, "*shape"],
    coverage: float,
) -> Float[np.ndarray, "*shape"]:
    """Width of an interval, and 2 / (1 - coverage) times how far an observation lies outside.

    A proper score (Gneiting and Raftery, 2007): neither narrow intervals that miss nor wide ones
    that say nothing score well.
    """
    require_number("coverage", coverage, above=0, below=1)
    outside = np.maximum(lower - observed, 0) + np.maximum(observed - upper, 0)
    return upper - lower + 2 / (1 - coverage) * outside


def crps_of_members(
    observed: Float[np.ndarray, "*shape"], members: Float[np.ndarray, "*members_shape"]
) -> Float[np.ndarray, "*shape"]:
    """Continuous ranked probability score of an ensemble: of one member the absolute error."""
    error = np.abs(members - observed).mean(axis=0)
    ordered = np.sort(members, axis=0)
    count = len(members)
    weight = (2 * np.arange(1, count + 1) - count - 1).reshape(-1, *[1] * observed.ndim)
    return error - (weight * ordered).sum(axis=0) / count**2
