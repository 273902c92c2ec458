"""Runs and evaluations as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.table import Column, Table

from skipstone.errors import InvalidInput
from skipstone.files import read_json
from skipstone.training.run import Run, list_runs

EVALUATION = "evaluation.json"
"""Where a run keeps its measurements on test data."""

_HEADLINES = ("test_mse", "sample_mse", "mean_step", "updates", "function_evaluations")


def runs_table(root: Path) -> Table:
    """All runs below a folder, a line each."""
    found = list_runs(root)
    if not found:
        raise InvalidInput(
            f"there must be runs to list; {root} holds none. Train one: skipstone train circles rnn"
        )
    table = Table(
        Column("run", overflow="fold"),
        *(Column(title, justify="right", no_wrap=True) for title in _COLUMNS),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption="* only its numbers are kept" if any(map(_only_numbers, found)) else None,
    )
    for run in found:
        mark = "*" if _only_numbers(run) else ""
        table.add_row(f"{run.folder.relative_to(root)}{mark}", *_row(run))
    return table


_COLUMNS = ("steps", "minutes", "test MSE", "sample MSE", "step")


def _only_numbers(run: Run) -> bool:
    return run.finished and not run.has_weights


def _row(run: Run) -> list[str]:
    if not run.finished:
        return ["unfinished", "", "", "", ""]
    result, evaluation = run.result, read_evaluation(run)
    numbers = [_number(evaluation.get(name)) for name in ("test_mse", "sample_mse", "mean_step")]
    return [str(result["steps"]), f"{result['wall_seconds'] / 60:.1f}", *numbers]


def evaluation_table(content: dict[str, Any]) -> Table:
    """The numbers of an evaluation with their intervals."""
    table = Table("measure", "value", "interval", box=box.SIMPLE_HEAD)
    for name in _HEADLINES:
        _add(table, name.replace("_", " "), content[name])
    alignment = content["alignment"] or {}
    for name, value in alignment.items():
        _add(table, name.replace("_", " "), value)
    for wall in content["wall_times"]:
        _add(table, f"seconds per rollout of {wall['batch']}", wall["seconds"])
    return table


def summary(folder: Path) -> str:
    """A line about a finished run."""
    run = Run(folder)
    evaluation = read_evaluation(run)
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {_number(evaluation.get(name))}" for name in _HEADLINES[:4]
    )
    return f"{folder}: {numbers}, trained in {run.result['wall_seconds'] / 60:.1f} minutes"


def read_evaluation(run: Run) -> dict[str, Any]:
    """What an evaluation of a run gave; nothing if there was none."""
    path = run.folder / EVALUATION
    return read_json(path) if path.is_file() else {}


def _add(table: Table, name: str, estimate: Any) -> None:
    if isinstance(estimate, dict) and estimate.get("value") is not None:
        low, high = _number({"value": estimate["low"]}), _number({"value": estimate["high"]})
        table.add_row(name, _number(estimate), f"{low} to {high}")


def _number(estimate: Any) -> str:
    if estimate is None or estimate["value"] is None:
        return ""
    return f"{estimate['value']:.3g}"
