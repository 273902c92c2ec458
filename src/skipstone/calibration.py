"""`Calibration`: how far observations lay from predictions, by elapsed time and feature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput, require_number

LEVELS = 100
"""Coverages are kept in steps of one in so many; others are rounded up to the next."""

_SLACK = 1e-6
"""Share of the longest time by which a query may exceed it: that is rounding."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Split-conformal quantiles of absolute errors, in the data's own units, by elapsed time.

    Bins of elapsed time are as long as a typical observation interval, or several of them where
    fewer than half of the trajectories have an observation.
    """

    quantiles: Float[Tensor, "levels bins dim"]
    """For coverages 0.01, 0.02, ... 0.99; infinite where there were too few trajectories."""

    edges: Float[Tensor, " bins"]
    """Where each bin ends, in the data's unit of time after the context."""

    @property
    def longest(self) -> float:
        """Elapsed time up to which there are quantiles."""
        return float(self.edges[-1])

    @classmethod
    def from_errors(
        cls,
        elapsed: Float[np.ndarray, "batch horizon"],
        errors: Float[np.ndarray, "batch horizon dim"],
        width: float,
    ) -> Calibration:
        """From the errors of trajectories, NaN where there was no observation.

        A trajectory counts once in a bin, with its largest error there: many observations of one
        are no evidence about others.
        """
        seen = ~np.isnan(errors)
        fine = np.rint(elapsed / width).astype(np.int64)
        rows, at = np.nonzero(seen.any(axis=2))
        lasts = _last_of_bins(rows, fine[rows, at], len(errors))
        place = np.searchsorted(lasts, fine[rows, at])
        worst = np.full((len(errors), len(lasts), errors.shape[2]), -np.inf)
        np.maximum.at(
            worst, (rows, place), np.where(seen[rows, at], np.abs(errors[rows, at]), -np.inf)
        )
        edges = (lasts + 0.5) * width
        return cls(torch.as_tensor(_quantiles(worst)), torch.as_tensor(edges))

    def radius(
        self, elapsed: Float[Tensor, "batch time"], coverage: float
    ) -> Float[Tensor, "batch time dim"]:
        """Half the width of intervals at these times after the context."""
        require_number("coverage", coverage, above=0, most=(LEVELS - 1) / LEVELS)
        level = math.ceil(round(LEVELS * coverage, 6))
        elapsed = elapsed.detach().cpu()
        late = float(elapsed.max()) if elapsed.numel() else 0.0
        if late > self.longest * (1 + _SLACK):
            raise InvalidInput(
                f"intervals reach as far as their calibration did, {self.longest:.6g} after the "
                f"context; asked for {late:.6g}. Calibrate with longer sequences."
            )
        bins = torch.searchsorted(self.edges, elapsed.to(self.edges).contiguous())
        return self.quantiles[level - 1][bins.clamp(max=len(self.edges) - 1)]


def _last_of_bins(
    rows: Int[np.ndarray, " points"], fine: Int[np.ndarray, " points"], batch: int
) -> Int[np.ndarray, " bins"]:
    """The last interval of each bin: bins grow until half of the trajectories are in them."""
    observed = np.zeros((batch, int(fine.max(initial=0)) + 1), dtype=bool)
    observed[rows, fine] = True
    enough = min(LEVELS - 1, math.ceil(batch / 2))
    lasts, inside = [], np.zeros(batch, dtype=bool)
    for at in range(observed.shape[1]):
        inside = inside | observed[:, at]
        if inside.sum() >= enough:
            lasts.append(at)
            inside = np.zeros(batch, dtype=bool)
    # What is left at the end belongs to the last bin.
    return np.array([*lasts[:-1], observed.shape[1] - 1])


def _quantiles(
    worst: Float[np.ndarray, "batch bins dim"],
) -> Float[np.ndarray, "levels bins dim"]:
    """The errors of conformal rank ⌈(n + 1)·coverage⌉ among n trajectories, for every coverage."""
    counts = (worst >= 0).sum(0)
    # Trajectories without an observation come first, so that errors are the last `counts`.
    ordered = np.sort(worst, axis=0)
    level = np.arange(1, LEVELS)[:, None, None]
    # In whole numbers, so that 0.9 of 10 is 9 and not a little more.
    rank = -(-level * (counts + 1) // LEVELS)
    place = len(worst) - counts + rank - 1
    found = np.take_along_axis(ordered, np.minimum(place, len(worst) - 1), axis=0)
    return np.where(rank <= counts, found, np.inf)
