"""The paper's table 1 from measured runs, with what the paper does not give."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from skipstone.paper.groups import comparable, measure
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
"""Of the table that people read. Errors of several seeds are their mean, with the range in
brackets."""

_MEASURES = ("test_mse", "sample_mse", "mean_step")


def table_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """A line for each task and model that has runs with the preset's own settings."""
    return [_row(task, model, runs) for task, model, runs in _groups(measured)]


def table_markdown(measured: Sequence[Measured]) -> str:
    """The table for a page."""
    rows = [COLUMNS, ["---"] * len(COLUMNS), *table_rows(measured)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def table_csv(measured: Sequence[Measured]) -> str:
    """Every run on a line, in full precision, with the ends of the intervals over trajectories."""
    lines = [_record(run) for _, _, runs in _groups(measured) for run in runs]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else ["task"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _groups(measured: Sequence[Measured]) -> Iterator[tuple[str, str, list[Measured]]]:
    for task, models in TABLE.items():
        for model in models:
            runs = [run for run in comparable(measured) if (run.task, run.model) == (task, model)]
            runs = sorted(runs, key=lambda run: run.seed)
            if runs:
                yield task, model, runs


def _row(task: str, model: str, runs: list[Measured]) -> list[str]:
    reported, cells = TABLE[task][model], []
    for name in _MEASURES:
        cells += [_spread(runs, name), _number(getattr(reported, name))]
    return [task, model, _seeds(runs), *cells, *_costs(runs)]


def _seeds(runs: list[Measured]) -> str:
    """How many there are, and how many of them the mean is of: rollouts of some may diverge."""
    finite = sum(run.evaluation["sample_mse"]["value"] is not None for run in runs)
    return str(len(runs)) if finite == len(runs) else f"{finite} of {len(runs)}"


def _costs(runs: list[Measured]) -> list[str]:
    def average(values: Iterator[Any]) -> str:
        known = [value for value in values if value is not None]
        return _number(mean(known)) if known else ""

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
    """One number for all seeds; a rollout that is not finite has none."""
    estimate = measure(runs, name)
    if math.isnan(estimate.value):
        return "–"
    if len(runs) == 1:
        return _number(estimate.value)
    low, high = _number(estimate.low), _number(estimate.high)
    return f"{_number(estimate.value)} ({low}–{high})"


def _number(value: float) -> str:
    """Three digits; small errors as a power of ten, without the zeros that pad it."""
    if value == 0 or abs(value) >= 0.01:
        return f"{value:.3g}"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"
