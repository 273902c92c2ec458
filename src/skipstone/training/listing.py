"""Runs and evaluations as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone.console import short_number, text_table
from skipstone.errors import InvalidInput
from skipstone.tables.summary import listed
from skipstone.training.run import Run, list_runs

if TYPE_CHECKING:
    from rich.table import Table

HEADLINES = ("test_mse", "sample_mse", "mean_step", "updates", "function_evaluations")
"""The measures of an evaluation that everybody looks at first."""


def runs_table(root: Path) -> Table:
    """All runs below a folder, a line each. One that cannot be read says why."""
    refused: list[OSError] = []
    found = list_runs(root, refused)
    notes = [f"{each.filename} was not looked into: {each.strerror}" for each in refused]
    if not found:
        raise InvalidInput(
            f"there must be runs to list; {root} holds none. Train one: skipstone fit, or "
            "skipstone train circles rnn" + "".join(f"; {note}" for note in notes)
        )
    rows = [[str(run.folder.relative_to(root)), *_row(run, notes)] for run in found]
    columns = ["run", "data", "steps", "minutes", "validation", "test MSE", "sample MSE", "step"]
    if any(row[2].endswith("*") for row in rows):
        notes.append("* only its numbers are kept")
    used = [any(cells) for cells in zip(*rows, strict=True)]  # Own data have no test set.
    columns, *rows = ([*compress(cells, used)] for cells in (columns, *rows))
    return text_table(columns, rows, "\n".join(notes) or None, words=2)


def _row(run: Run, notes: list[str]) -> list[str]:
    """The cells of a run; why one cannot be read goes into the notes."""
    try:
        data = _data(run)
        if not run.finished:
            return [data, "unfinished", *[""] * 5]
        numbers = [_value(run.evaluation.get(name)) for name in HEADLINES[:3]]
        steps = f"{run.result['steps']}{'' if run.has_weights else '*'}"
        minutes, error = run.result["wall_seconds"] / 60, run.result["validation_error"]
        return [data, steps, f"{minutes:.1f}", short_number(error), *numbers]
    except (InvalidInput, OSError) as error:
        notes.append(str(error))
        return ["", "unreadable", *[""] * 5]


def _data(run: Run) -> str:
    """What a run was trained on: a task, the columns of a table, or sequences of one's own."""
    data = run.config["data"]
    columns = data.get("columns", {}).get("values", ())
    return data.get("task") or listed(columns) or "own"


def evaluation_table(content: dict[str, Any]) -> Table:
    """The numbers of an evaluation with their intervals."""
    return text_table(["measure", "value", "interval"], _measures(content))


def _measures(content: dict[str, Any]) -> Iterator[list[str]]:
    named = {name: content[name] for name in HEADLINES} | (content["alignment"] or {})
    named |= {f"seconds per rollout of {w['batch']}": w["seconds"] for w in content["wall_times"]}
    for valid in content.get("valid_times", ()):
        named[f"valid prediction time, {valid['share']:.0%}"] = valid["time"]
    for name, estimate in named.items():
        if isinstance(estimate, dict) and estimate.get("value") is not None:
            low, high = short_number(estimate["low"]), short_number(estimate["high"])
            yield [name.replace("_", " "), short_number(estimate["value"]), f"{low} to {high}"]


def summary(run: Run) -> str:
    """A line about a finished run."""
    numbers = {name: run.evaluation.get(name) for name in HEADLINES[:4]}
    measured = [f"{name.replace('_', ' ')} {_value(n)}" for name, n in numbers.items() if n]
    if not measured:
        measured = [f"validation error {short_number(run.result['validation_error'])}"]
    minutes = run.result["wall_seconds"] / 60
    return f"{run.folder}: {', '.join(measured)}, trained in {minutes:.1f} minutes"


def _value(estimate: Any) -> str:
    return short_number(estimate["value"] if estimate else None)
