"""The frontier: the error that PC-ODEs of one budget reach with so many updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skipstone.console import short_number
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.groups import OURS, by_task, grouped, measure
from skipstone.paper.measured import Measured

_KNOBS = {"target_step", "tolerance"}
"""What trades error for longer steps; a run of the frontier differs from its preset in one."""


@dataclass(frozen=True)
class Frontier:
    """The PC-ODEs of a task that differ in what they trade, and the RNN of the same budget."""

    baseline: Sequence[Measured]
    """The RNN, a run for each seed."""

    points: Sequence[Sequence[Measured]]
    """The PC-ODEs, from short steps to long ones, a run for each seed."""

    @property
    def budget(self) -> tuple[int, int]:
        """Units and gradient steps of all of them."""
        return self.baseline[0].budget

    @property
    def baseline_error(self) -> Estimate:
        """The RNN's error."""
        return measure(self.baseline, "sample_mse")

    def column(self, name: str) -> list[Estimate]:
        """One number of an evaluation for each point."""
        return [measure(runs, name) for runs in self.points]

    def updates_at_baseline_error(self) -> str:
        """The fewest updates with which a PC-ODE has the RNN's error, between two points by a
        straight line of logarithms. `<` if no point has a larger error, `–` if none has a smaller.
        """
        target = math.log(self.baseline_error.value)
        updates = np.log([one.value for one in self.column("updates")])
        errors = np.log([one.value for one in self.column("sample_mse")])
        # From few updates to many: where the error first falls to the RNN's.
        order = np.argsort(updates)
        updates, errors = updates[order], errors[order]
        reached = np.flatnonzero(errors <= target)
        if len(reached) == 0:
            return "–"
        first = reached[0]
        if first == 0:
            return f"<{short_number(math.exp(updates[0]))}"
        before = first - 1
        share = (errors[before] - target) / (errors[before] - errors[first])
        between = updates[before] + share * (updates[first] - updates[before])
        return short_number(math.exp(between))


def frontiers(measured: Sequence[Measured]) -> dict[str, Frontier]:
    """The frontier of each task that has an RNN and PC-ODEs with two settings or more; where
    several budgets have one, that with the most points."""
    found = {}
    for task, runs in by_task([run for run in measured if _belongs(run)]).items():
        of_budgets = [_frontier(same) for same in grouped(runs, lambda run: run.budget).values()]
        known = [one for one in of_budgets if one is not None]
        if known:
            found[task] = max(known, key=lambda one: len(one.points))
    return found


def _belongs(run: Measured) -> bool:
    allowed = {"steps", "hidden", *_KNOBS}
    finite = run.evaluation["sample_mse"]["value"]
    return bool(finite) and run.varied <= allowed and len(run.varied & _KNOBS) <= 1


def _frontier(runs: Sequence[Measured]) -> Frontier | None:
    """The frontier of runs of one task and one budget, if they make one."""
    baseline = [run for run in runs if run.model == "RNN"]
    ours = [run for run in runs if run.model == OURS]
    points = list(grouped(ours, lambda run: tuple(sorted(_setting(run).items()))).values())
    if not baseline or len(points) < 2:
        return None
    return Frontier(baseline, sorted(points, key=lambda same: measure(same, "mean_step").value))


def _setting(run: Measured) -> dict[str, Any]:
    return {name: value for name, value in run.options.items() if name in _KNOBS}
