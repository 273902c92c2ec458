"""The list of tasks as a table."""

from __future__ import annotations

from dataclasses import replace

from rich import box
from rich.table import Table

from skipstone.paper.tasks.base import Task
from skipstone.paper.tasks.recording import record
from skipstone.paper.tasks.registry import TASKS


def task_table() -> Table:
    """Every task with its default shape and one line about it."""
    table = Table("task", "values", "controls", "what", box=box.SIMPLE_HEAD)
    for task in TASKS.values():
        table.add_row(task.name, *task_shapes(task), task.summary)
    return table


def task_shapes(task: Task) -> tuple[str, str]:
    """Batch×time×dim of a task's values and width of its controls, by playing one trajectory."""
    sample = record(task, replace(task.options, trajectories=1))
    _, time, dim = sample.values.shape
    controls = "" if sample.controls is None else str(sample.controls.shape[-1])
    return f"{task.options.trajectories:,}×{time}×{dim}", controls
