"""Several models and the naive forecasts on one table."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skipstone.console import short_number
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.own_units import MODEL, ForecastErrors, forecast_errors
from skipstone.evaluation.rollouts import Rollouts, roll_out_all
from skipstone.models.base import Model
from skipstone.models.registry import BASELINE, RECOMMENDED, title_of
from skipstone.own_data.tablefiles import TableColumns
from skipstone.own_data.trainings import TableTraining
from skipstone.sequences import Sequences
from skipstone.training.cuts import keep_apart

COMPARED = (RECOMMENDED, BASELINE)
"""Models that are trained unless others are asked for."""

TEST = 0.2
"""Share of the data that models are compared on."""

_SHOWN = 4
"""Features that have a column of their own."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A table of forecasts, a row each, and what must be said about it."""

    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


def plans_of(models: Sequence[str], plan: TableTraining) -> list[TableTraining]:
    """A checked training for each model, or for those that are compared by default."""
    plans = [_plan_of(name, plan) for name in models or COMPARED]
    for each in plans:
        each.check()
    return plans


def compare_models(
    data: Sequences,
    columns: TableColumns,
    models: Sequence[str],
    plan: TableTraining,
    root: Path,
    **settings: Any,
) -> Comparison:
    """Train each model in a folder below `root`, and measure all on the same unseen data."""
    plans = plans_of(models, plan.for_table(data))
    rest, test = keep_apart(data, plans[0].window, plan.seed, TEST)
    train, validation = keep_apart(rest, plans[0].window, plan.seed)
    test = plans[0].cut(test)
    rows: list[list[str]] = []
    naive: list[list[str]] = []
    shown: list[str] = []
    notes: list[str] = []
    for each in plans:
        run = each.train(train, validation, root / str(each.model), columns, **settings)
        model = run.load()
        rollouts, seconds = _timed_rollouts(model, test)
        bootstrap = Bootstrap(len(test), np.random.default_rng(0))
        errors = forecast_errors(model, test, bootstrap, rollouts)
        cost = [
            short_number(float(rollouts.updates.mean())),
            f"{run.result['wall_seconds']:.0f}",
            f"{seconds:.2f}",
        ]
        title = title_of(type(model))
        rows.append([title, *_errors(errors, MODEL), *cost])
        notes += [note.replace("The model", title) for note in errors.warnings()]
        shown = [feature.name for feature in errors.features[:_SHOWN]]
        others = [name for name in errors.features[0].rmse if name != MODEL]
        naive = [[name, *_errors(errors, name), "", "", ""] for name in others]
    heads = ["forecast", *shown, "relative", "updates", "training s", "forecast s"]
    measured = f"RMSE on {len(test)} sequences that no model has seen; relative to persistence."
    return Comparison(heads, [*rows, *naive], [measured, *notes])


def _plan_of(name: str, plan: TableTraining) -> TableTraining:
    """The plan for one model, with those of the options that it has."""
    kind: type[Model[Any]] = dataclasses.replace(plan, model=name).kind
    known = {field.name for field in dataclasses.fields(kind.Config)}
    own = {option: value for option, value in plan.options.items() if option in known}
    return dataclasses.replace(plan, model=name, options=own)


@torch.inference_mode()
def _timed_rollouts(model: Model[Any], test: Sequences) -> tuple[Rollouts, float]:
    """Forecasts of all sequences, and the seconds that they take together."""
    began = time.perf_counter()
    rollouts = roll_out_all(model, test, keep=True)
    return rollouts, time.perf_counter() - began


def _errors(errors: ForecastErrors, forecast: str) -> list[str]:
    """The error of each feature, and the mean ratio to persistence over all of them."""
    values = [each.rmse[forecast].value for each in errors.features]
    usual = [each.rmse["persistence"].value for each in errors.features]
    ratios = [own / other for own, other in zip(values, usual, strict=True) if own and other]
    relative = math.exp(np.mean(np.log(ratios))) if ratios else math.nan
    return [*(short_number(value) for value in values[:_SHOWN]), f"{relative:.2f}"]
