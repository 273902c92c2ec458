"""The paper's table 1 from measured runs, with what the paper does not give: costs, and how long
rollouts stay close to the truth."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from skipstone.console import markdown_table, short_number
from skipstone.evaluation.estimate import Estimate
from skipstone.evaluation.validity import SHARES
from skipstone.paper.frontier import Frontier, frontiers
from skipstone.paper.groups import OURS, across_seeds, grouped, measure
from skipstone.paper.measured import Measured
from skipstone.paper.published import TABLE, Reported

NAMES = ["task", "model"]
"""What a row is about."""

ERRORS = ["seeds", "test MSE", "paper", "sample MSE", "paper", "mean step", "paper"]
"""Errors of several seeds are their mean, with the range in brackets."""

VALIDITY = [f"valid time, {100 * share:g} %" for share in SHARES]
"""Median time, in observations, until a rollout is off by more than so much of the data's spread,
with its interval, or the range over seeds, in brackets."""

COSTS = [
    "updates",
    "updates at the RNN's error",
    "evaluations",
    "ms per rollout",
    "ms per batch of 256",
]
"""What a rollout costs."""

BUDGET = ["units", "training steps", "training, minutes"]
"""What a training costs."""

COLUMNS = [*NAMES, *ERRORS, *VALIDITY, *COSTS, *BUDGET]
"""Columns of the table."""

_MEASURES = ("test_mse", "sample_mse", "mean_step")
_ORDER = ("latent ODE", "ODE-RNN", "RNN", OURS)
"""Models from top to bottom, before all others."""


def table_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """A row for each task and model that has runs with a preset's own settings, and one for a
    PC-ODE that differs in its target step alone."""
    known = frontiers(measured)
    return [_row(task, title, runs, known.get(task)) for task, title, runs in rows_of(measured)]


def table_markdown(measured: Sequence[Measured]) -> str:
    """The table in Markdown."""
    return markdown_table(COLUMNS, table_rows(measured))


def table_csv(measured: Sequence[Measured]) -> str:
    """Every run on a line, in full precision, with its intervals over trajectories."""
    lines = [_record(run) for _, _, runs in rows_of(measured) for run in runs]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else ["task"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def row_title(run: Measured) -> str:
    """What a run's row is called: its model, and the target step if that is not the preset's."""
    target = run.options.get("target_step")
    return run.model if target is None else f"{run.model}, target step {target:g}"


def rows_of(measured: Sequence[Measured]) -> Iterator[tuple[str, str, list[Measured]]]:
    """Runs by task and row: the paper's tasks in its order, then the others."""
    tasks = grouped(filter(_has_row, measured), lambda run: run.task)
    for task in [*TABLE, *(other for other in tasks if other not in TABLE)]:
        runs = sorted(tasks.get(task, ()), key=lambda run: (_place(run), row_title(run), run.seed))
        for title, same in grouped(runs, row_title).items():
            yield task, title, same


def _has_row(run: Measured) -> bool:
    """Whether a run is no part of a study: only its target step may not be its preset's."""
    return not run.varied or (run.varied == {"target_step"} and bool(run.options["target_step"]))


def _place(run: Measured) -> int:
    return _ORDER.index(run.model) if run.model in _ORDER else len(_ORDER)


def _row(task: str, title: str, runs: list[Measured], frontier: Frontier | None) -> list[str]:
    reported, errors = reported_for(runs[0]), []
    for name in _MEASURES:
        errors += [_spread(runs, name), short_number(getattr(reported, name, None))]
    valid = [valid_time(runs, share) for share in SHARES]
    # The frontier is of PC-ODEs of another budget, so that it has no row of its own.
    at_error = frontier.updates_at_baseline_error() if frontier and title == OURS else ""
    return [task, title, _seeds(runs), *errors, *valid, *_costs(runs, at_error), *_budget(runs)]


def reported_for(run: Measured) -> Reported | None:
    """The paper's numbers, if it has any."""
    return TABLE.get(run.task, {}).get(run.model)


def _seeds(runs: list[Measured]) -> str:
    """Number of seeds; if rollouts of some diverge, also how many the mean is of."""
    finite = sum(run.evaluation["sample_mse"]["value"] is not None for run in runs)
    return str(len(runs)) if finite == len(runs) else f"{finite} of {len(runs)}"


def valid_time(runs: Sequence[Measured], share: float) -> str:
    """How long rollouts stay within a share of the data's spread; `>` if most do until the end."""
    found = [valid for run in runs if (valid := _valid(run, share))]
    if not found:
        return ""
    time = across_seeds([valid["time"] for valid in found])
    if mean(valid["lasting"]["value"] for valid in found) > 0.5:
        return f">{short_number(time.value)}"
    return _with_range(time)


def _valid(run: Measured, share: float) -> dict[str, Any] | None:
    """A run's valid prediction time. Evaluations from before they were measured have none."""
    return next((x for x in run.evaluation.get("valid_times", ()) if x["share"] == share), None)


def _costs(runs: list[Measured], at_error: str) -> list[str]:
    evaluations = mean_text([run.evaluation["function_evaluations"]["value"] for run in runs])
    return [
        mean_text([run.evaluation["updates"]["value"] for run in runs]),
        at_error,
        "" if evaluations == "0" else evaluations,
        *(mean_text([milliseconds(run, batch) for run in runs]) for batch in (1, 256)),
    ]


def _budget(runs: list[Measured]) -> list[str]:
    units, steps = runs[0].budget
    return [
        str(units),
        str(steps),
        mean_text([run.run.result["wall_seconds"] / 60 for run in runs]),
    ]


def mean_text(values: Sequence[float | None]) -> str:
    """The mean of what is known; empty if nothing is."""
    known = [value for value in values if value is not None]
    return short_number(mean(known)) if known else ""


def milliseconds(run: Measured, batch: int) -> float | None:
    """The time of a rollout of so many trajectories together, if it was measured."""
    times = {wall["batch"]: wall["seconds"]["value"] for wall in run.evaluation["wall_times"]}
    return 1000 * times[batch] if batch in times else None


def _record(run: Measured) -> dict[str, Any]:
    record: dict[str, Any] = {"task": run.task, "model": row_title(run), "seed": run.seed}
    reported = reported_for(run)
    for name in _MEASURES:
        record |= _numbers(name, run.evaluation[name])
        record[f"{name}_paper"] = getattr(reported, name, None)
    for share in SHARES:
        valid, name = _valid(run, share) or {}, f"{100 * share:g}"
        record |= _numbers(f"valid_time_{name}", valid.get("time", {}))
        record[f"never_missed_{name}"] = valid.get("lasting", {}).get("value")
    for name in ("updates", "function_evaluations"):
        record[name] = run.evaluation[name]["value"]
    record |= {f"milliseconds_batch_{size}": milliseconds(run, size) for size in (1, 256)}
    result = run.run.result
    return record | {
        "units": run.hidden,
        "steps": result["steps"],
        "training_seconds": result["wall_seconds"],
        "commit": result["commit"],
        "weights_sha256": result["weights_sha256"],
        "weights_kept": run.run.has_weights,
    }


def _numbers(name: str, estimate: dict[str, Any]) -> dict[str, Any]:
    """An estimate as three columns."""
    parts = {name: "value", f"{name}_low": "low", f"{name}_high": "high"}
    return {column: estimate.get(part) for column, part in parts.items()}


def _spread(runs: list[Measured], name: str) -> str:
    """Mean and range over seeds; a dash if no rollout is finite."""
    estimate = measure(runs, name)
    if math.isnan(estimate.value):
        return "–"
    return short_number(estimate.value) if len(runs) == 1 else _with_range(estimate)


def _with_range(estimate: Estimate) -> str:
    low, high = short_number(estimate.low), short_number(estimate.high)
    return f"{short_number(estimate.value)} ({low}–{high})"
