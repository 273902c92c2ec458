"""Measured runs by task, model and seed, and one number for all seeds of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from skipstone.evaluation.estimate import Estimate
from skipstone.models.registry import MODELS, title_of
from skipstone.paper.measured import Measured
from skipstone.paper.tasks.registry import TASKS

Key = TypeVar("Key")

OURS = "PC-ODE"
"""The model that chooses its steps."""


def grouped(measured: Iterable[Measured], key: Callable[[Measured], Key]) -> dict[Key, list]:
    """Runs that have the same key together, in the order in which keys come up."""
    groups: dict[Key, list[Measured]] = {}
    for run in measured:
        groups.setdefault(key(run), []).append(run)
    return groups


def by_task(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The runs of each task, in the order of the tasks."""
    return grouped(_ordered(measured, list(TASKS), lambda run: run.task), lambda run: run.task)


def by_model(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The runs of each model, in the order of the models."""
    order = [title_of(model) for model in MODELS.values()]
    return grouped(_ordered(measured, order, lambda run: run.model), lambda run: run.model)


def _ordered(
    measured: Iterable[Measured], order: list[str], name: Callable[[Measured], str]
) -> list[Measured]:
    """Runs in the order of known names, the others last."""
    places = {known: place for place, known in enumerate(order)}
    return sorted(measured, key=lambda run: places.get(name(run), len(places)))


def comparable(measured: Iterable[Measured]) -> list[Measured]:
    """The runs that have nothing but their preset: those of studies stay out of comparisons."""
    return [run for run in measured if not run.varied]


def across_seeds(estimates: Sequence[dict[str, Any] | Estimate]) -> Estimate:
    """Several seeds as their mean and range; one as it is, with its interval."""
    known = [_estimate(one) for one in estimates]
    known = [one for one in known if math.isfinite(one.value)]
    if not known:
        return Estimate(math.nan, math.nan, math.nan)
    if len(known) == 1:
        return known[0]
    values = [one.value for one in known]
    return Estimate(sum(values) / len(values), min(values), max(values))


def measure(runs: Sequence[Measured], name: str) -> Estimate:
    """One number of an evaluation for all seeds of a model."""
    return across_seeds([run.evaluation[name] for run in runs])


def columns(estimates: Sequence[Estimate]) -> tuple[list[float], list[float], list[float]]:
    """Lower ends, values and upper ends of many estimates."""
    return (
        [one.low for one in estimates],
        [one.value for one in estimates],
        [one.high for one in estimates],
    )


def bars(estimates: Sequence[Estimate]) -> list[list[float]]:
    """How far intervals reach below and above: by rounding one can miss its own value."""
    return [
        [max(0.0, one.value - one.low) for one in estimates],
        [max(0.0, one.high - one.value) for one in estimates],
    ]


def _estimate(one: dict[str, Any] | Estimate) -> Estimate:
    """What an evaluation says in plain dictionaries, with NaN for what it does not know."""
    if isinstance(one, Estimate):
        return one
    return Estimate(
        **{name: math.nan if one[name] is None else one[name] for name in ("value", "low", "high")}
    )
