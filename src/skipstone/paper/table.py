"""The paper's table 1 from measured runs, with costs that the paper does not give."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from skipstone.console import markdown_table, short_number
from skipstone.paper.groups import comparable, grouped, measure
from skipstone.paper.measured import Measured
from skipstone.paper.published import TABLE, Reported

COLUMNS = [
    "task",
    "model",
    "seeds",
    "test MSE",
    "paper",
    "sample MSE",
    "paper",
    "mean step",
    "paper",
    "updates",
    "evaluations",
    "ms per rollout",
    "ms per batch of 256",
    "units",
    "training, minutes",
]
"""Columns of the table. Errors of several seeds are their mean, with the range in brackets."""

_MEASURES = ("test_mse", "sample_mse", "mean_step")


def table_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """A row for each task and model of the paper that has runs with a preset's own settings."""
    return [_row(task, model, runs) for task, model, runs in _groups(measured)]


def table_markdown(measured: Sequence[Measured]) -> str:
    """The table in Markdown."""
    return markdown_table(COLUMNS, table_rows(measured))


def table_csv(measured: Sequence[Measured]) -> str:
    """Every run on a line, in full precision, with its intervals over trajectories."""
    lines = [_record(run) for _, _, runs in _groups(measured) for run in runs]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else ["task"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _groups(measured: Sequence[Measured]) -> Iterator[tuple[str, str, list[Measured]]]:
    """Comparable runs by task and model, in the paper's order."""
    groups = grouped(comparable(measured), lambda run: (run.task, run.model))
    for task, models in TABLE.items():
        for model in models:
            if runs := groups.get((task, model)):
                yield task, model, sorted(runs, key=lambda run: run.seed)


def _row(task: str, model: str, runs: list[Measured]) -> list[str]:
    reported, cells = TABLE[task][model], []
    for name in _MEASURES:
        cells += [_spread(runs, name), short_number(getattr(reported, name))]
    return [task, model, _seeds(runs), *cells, *_costs(runs)]


def _seeds(runs: list[Measured]) -> str:
    """Number of seeds; if rollouts of some diverge, also how many the mean is of."""
    finite = sum(run.evaluation["sample_mse"]["value"] is not None for run in runs)
    return str(len(runs)) if finite == len(runs) else f"{finite} of {len(runs)}"


def _costs(runs: list[Measured]) -> list[str]:
    def average(values: Iterator[Any]) -> str:
        known = [value for value in values if value is not None]
        return short_number(mean(known)) if known else ""

    evaluations = average(run.evaluation["function_evaluations"]["value"] for run in runs)
    return [
        average(run.evaluation["updates"]["value"] for run in runs),
        "" if evaluations == "0" else evaluations,
        *(average(_milliseconds(run, batch) for run in runs) for batch in (1, 256)),
        str(runs[0].hidden),
        average(run.run.result["wall_seconds"] / 60 for run in runs),
    ]


def _milliseconds(run: Measured, batch: int) -> float | None:
    times = {wall["batch"]: wall["seconds"]["value"] for wall in run.evaluation["wall_times"]}
    return 1000 * times[batch] if batch in times else None


def _record(run: Measured) -> dict[str, Any]:
    record: dict[str, Any] = {"task": run.task, "model": run.model, "seed": run.seed}
    reported: Reported = TABLE[run.task][run.model]
    for name in _MEASURES:
        estimate = run.evaluation[name]
        record |= {name: estimate["value"], f"{name}_low": estimate["low"]}
        record |= {f"{name}_high": estimate["high"], f"{name}_paper": getattr(reported, name)}
    for name in ("updates", "function_evaluations"):
        record[name] = run.evaluation[name]["value"]
    record |= {f"milliseconds_batch_{size}": _milliseconds(run, size) for size in (1, 256)}
    result = run.run.result
    return record | {
        "units": run.hidden,
        "steps": result["steps"],
        "training_seconds": result["wall_seconds"],
        "commit": result["commit"],
        "weights_sha256": result["weights_sha256"],
        "weights_kept": run.run.has_weights,
    }


def _spread(runs: list[Measured], name: str) -> str:
    """Mean and range over seeds; a dash if no rollout is finite."""
    estimate = measure(runs, name)
    if math.isnan(estimate.value):
        return "–"
    if len(runs) == 1:
        return short_number(estimate.value)
    low, high = short_number(estimate.low), short_number(estimate.high)
    return f"{short_number(estimate.value)} ({low}–{high})"
