"""Estimates from a sample of trajectories, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num, Shaped

RESAMPLES = 1000
"""Bootstrap samples behind an interval: enough for its ends to move by about 2 % of its width
from one seed to another."""

LEVEL = 0.95
"""Share of the bootstrap samples that an interval holds."""

# Resamples whose weights are in floating point at the same time; a bound on memory.
_BLOCK = 50


@dataclass(frozen=True)
class Estimate:
    """A number with an interval. NaN is what cannot be known: a value of nothing, an interval
    from a single trajectory."""

    value: float
    low: float
    high: float


class Bootstrap:
    """Confidence intervals by drawing whole trajectories again, with replacement.

    Observations of one trajectory are not independent of each other; trajectories are. All
    estimates of a `Bootstrap` come from the same draws, so their differences are paired.
    """

    def __init__(self, trajectories: int, rng: np.random.Generator):
        # How often each trajectory is in each resample: about once, so a byte is plenty.
        self._weights = np.empty((RESAMPLES, trajectories), dtype=np.uint8)
        for weights in self._weights:
            drawn = rng.integers(trajectories, size=trajectories)
            weights[:] = np.bincount(drawn, minlength=trajectories)

    def ratio(
        self, totals: Num[np.ndarray, " batch"], counts: Num[np.ndarray, " batch"]
    ) -> Estimate:
        """The sum of totals over the sum of counts: a mean over all that was counted."""
        return self.ratios(totals[:, None], counts[:, None])[0]

    def median(self, values: Num[np.ndarray, " batch"]) -> Estimate:
        """The median over trajectories."""
        order = np.argsort(values)
        ranked, weights = values[order], self._weights[:, order].cumsum(1, dtype=np.int64)
        # The middle of an odd number, the lower of the two of an even one.
        middle = (weights >= (len(values) + 1) // 2).argmax(1)
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        low, high = np.quantile(ranked[middle], tails) if len(values) > 1 else (np.nan, np.nan)
        return Estimate(float(np.median(values)), float(low), float(high))

    def ratios(
        self, totals: Num[np.ndarray, "batch columns"], counts: Shaped[np.ndarray, "batch columns"]
    ) -> list[Estimate]:
        """A ratio for each column. Resamples in which a column counts nothing are left out."""
        # 0/0 where nothing was counted, and NaN from a model that diverged, are answers.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = totals.sum(0) / counts.sum(0)
            drawn = self._sums(totals) / self._sums(counts)
        table = np.stack([values, np.full_like(values, np.nan), np.full_like(values, np.nan)])
        known = np.isfinite(values) & ((counts > 0).sum(0) > 1)
        if known.any():
            tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
            table[1:, known] = np.nanquantile(drawn[:, known], tails, axis=0)
        return [Estimate(*column) for column in table.T.tolist()]

    def _sums(
        self, columns: Shaped[np.ndarray, "batch columns"]
    ) -> Float[np.ndarray, "resamples columns"]:
        columns = columns.astype(np.float64)
        blocks = np.split(self._weights, range(_BLOCK, RESAMPLES, _BLOCK))
        return np.concatenate([block.astype(np.float64) @ columns for block in blocks])
