"""Errors per feature and horizon in the data's own units, beside naive forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from skipstone.calibration import Calibration
from skipstone.console import short_number
from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.evaluation.residuals import (
    Residuals,
    kept_forecast,
    model_forecast,
    naive_forecasts,
    residuals_of,
)
from skipstone.evaluation.rollouts import Rollouts
from skipstone.evaluation.scoring import interval_score
from skipstone.models.base import Model
from skipstone.sequences import Sequences
from skipstone.tables.clock import NANOSECONDS, Clock

HORIZONS = 4
"""Bins of elapsed time that errors are shown by."""

MODEL = "model"
"""The name of the model beside the naive forecasts."""

COVERAGE = 0.9
"""Of the intervals that are scored."""

_SHOWN = 8
"""Features that are shown."""


@dataclass(frozen=True)
class FeatureErrors:
    """Root mean squared errors of one feature in its own units, by forecast."""

    name: str
    """The feature."""

    rmse: dict[str, Estimate]
    """Over all observations after the context."""

    by_horizon: dict[str, tuple[float, ...]]
    """By elapsed time, for each of the `horizons`; NaN where nothing was observed."""

    coverage: Estimate | None
    """Share of observations inside the model's 90 % intervals; None if it was not calibrated."""

    interval_score: Estimate | None
    """Width of these intervals plus what misses cost; lower is better."""

    @property
    def better_naive(self) -> list[str]:
        """Naive forecasts that the model does not beat."""
        own = self.rmse[MODEL].value
        return [name for name, each in self.rmse.items() if name != MODEL and not own < each.value]


@dataclass(frozen=True)
class ForecastErrors:
    """Errors of rollouts from the context to the end, beside persistence and constant velocity."""

    horizons: tuple[float, ...]
    """Where bins of elapsed time end, in the data's unit of time."""

    labels: tuple[str, ...]
    """The same for people, with a unit."""

    features: tuple[FeatureErrors, ...]
    """Errors of each feature."""

    def rows(self) -> Iterator[list[str]]:
        """A table: each feature over all times, then by elapsed time."""
        for each in self.features[:_SHOWN]:
            yield [each.name, *(short_number(rmse.value) for rmse in each.rmse.values())]
            if len(self.labels) > 1:
                for at, label in enumerate(self.labels):
                    numbers = (values[at] for values in each.by_horizon.values())
                    yield [f"  to {label}", *(short_number(number) for number in numbers)]

    def columns(self) -> list[str]:
        """The heads of that table."""
        return ["RMSE", *self.features[0].rmse]

    def warnings(self) -> list[str]:
        """What a user must know: where naive forecasts are as good."""
        lines = []
        for naive in self.features[0].rmse:
            lost = [each.name for each in self.features if naive in each.better_naive]
            if lost:
                lines.append(f"The model does not beat {naive} in {', '.join(lost[:_SHOWN])}.")
        return lines

    def __repr__(self) -> str:
        rows = [self.columns(), *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self.notes()])

    def notes(self) -> list[str]:
        """What is below the table: features left out, coverage, and warnings."""
        hidden = len(self.features) - _SHOWN
        notes = [f"... and {hidden} more features"] if hidden > 0 else []
        for each in self.features[:_SHOWN]:
            if each.coverage is not None:
                notes.append(f"{each.name}: {100 * each.coverage.value:.0f} % in 90 % intervals")
        return [*notes, *self.warnings()]


def forecast_errors(
    model: Model[Any],
    sequences: Sequences,
    bootstrap: Bootstrap,
    rollouts: Rollouts | None = None,
) -> ForecastErrors:
    """Measure a model and the naive forecasts on the same observations. `rollouts` of the model
    whose predictions were kept spare another round of them."""
    count = model.config.num_context
    own = model_forecast(model) if rollouts is None else kept_forecast(rollouts)
    found = {MODEL: residuals_of(own, sequences, count)}
    for name, forecast in naive_forecasts(count).items():
        found[name] = residuals_of(forecast, sequences, count)
    measured = _Measured.of(found, model.calibration, bootstrap)
    names = sequences.features or [f"x{i}" for i in range(sequences.dim)]
    targets = model.config.targets or range(sequences.dim)
    return ForecastErrors(
        tuple(measured.edges.tolist()),
        tuple(_label(edge, sequences.clock) for edge in measured.edges),
        tuple(measured.feature(at, names[at]) for at in targets),
    )


@dataclass(frozen=True)
class _Measured:
    """Errors of several forecasts at the same observations."""

    errors: dict[str, Float[np.ndarray, "batch horizon dim"]]
    known: Bool[np.ndarray, "batch horizon dim"]
    edges: Float[np.ndarray, " bins"]
    bins: Int[np.ndarray, "batch horizon"]
    radius: Float[np.ndarray, "batch horizon dim"] | None
    bootstrap: Bootstrap

    @classmethod
    def of(
        cls, found: dict[str, Residuals], made: Calibration | None, bootstrap: Bootstrap
    ) -> _Measured:
        own = found[MODEL]
        # Where a naive forecast has nothing to go by, none of them is measured.
        known = ~np.isnan(own.errors)
        for name, each in found.items():
            known &= np.isfinite(each.errors) | (name == MODEL)
        errors = {
            name: np.where(known, each.errors, 0.0).astype(np.float64)
            for name, each in found.items()
        }
        elapsed = own.elapsed[known.any(axis=2)]
        shares = np.arange(1, HORIZONS + 1) / HORIZONS
        edges = np.unique(np.quantile(elapsed, shares, method="inverted_cdf"))
        bins = np.searchsorted(edges, own.elapsed)
        radius = None
        if made is not None and elapsed.max() <= made.longest:
            within = torch.as_tensor(own.elapsed).clamp(max=made.longest)
            radius = made.radius(within, COVERAGE).numpy()
        return cls(errors, known, edges, bins, radius, bootstrap)

    def feature(self, at: int, name: str) -> FeatureErrors:
        """The errors of one feature."""
        known = self.known[..., at]
        squares = {forecast: each[..., at] ** 2 for forecast, each in self.errors.items()}
        inside = [known & (self.bins == each) for each in range(len(self.edges))]
        by_horizon = {
            forecast: tuple(
                math.sqrt(squared[each].mean()) if each.any() else math.nan for each in inside
            )
            for forecast, squared in squares.items()
        }
        rmse = {forecast: _root(self._mean(each, known)) for forecast, each in squares.items()}
        if self.radius is None:
            return FeatureErrors(name, rmse, by_horizon, None, None)
        error, radius = self.errors[MODEL][..., at], self.radius[..., at]
        scores = np.where(known, interval_score(error, -radius, radius, COVERAGE), 0.0)
        hits = known & (np.abs(error) <= radius)
        coverage, score = (self._mean(each, known) for each in (hits, scores))
        return FeatureErrors(name, rmse, by_horizon, coverage, score)

    def _mean(self, values: np.ndarray, known: Bool[np.ndarray, "batch horizon"]) -> Estimate:
        return self.bootstrap.ratio(values.sum(axis=1), known.sum(axis=1))


def _root(mse: Estimate) -> Estimate:
    return Estimate(*(math.sqrt(each) for each in (mse.value, mse.low, mse.high)))


def _label(elapsed: float, clock: Clock) -> str:
    """A length of time in the largest unit of which it is at least one."""
    if not clock.unit:
        return f"{elapsed:.4g}"
    nanoseconds = elapsed * NANOSECONDS[clock.unit]
    fitting = [unit for unit, size in NANOSECONDS.items() if size <= nanoseconds * (1 + 1e-9)]
    unit = fitting[-1] if fitting else "ns"
    return f"{nanoseconds / NANOSECONDS[unit]:.3g} {unit}"
