"""The tasks of the paper by name, their options, and the list of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from skipstone.console import text_table
from skipstone.errors import InvalidInput, did_you_mean, require_number
from skipstone.paper.tasks.balls import BILLIARDS_1D, BILLIARDS_2D, PIXELS_1D, PIXELS_2D
from skipstone.paper.tasks.base import TASKS, Options, Task
from skipstone.paper.tasks.recording import record
from skipstone.paper.tasks.shapes import CIRCLES, LINES
from skipstone.paper.tasks.shots import SHOTS

if TYPE_CHECKING:
    from rich.table import Table

for _task in (LINES, CIRCLES, BILLIARDS_1D, BILLIARDS_2D, PIXELS_1D, PIXELS_2D, SHOTS):
    TASKS.add(_task, _task.name)


def find_task(name: str) -> Task:
    """The task of that name."""
    return TASKS.find(name)


def task_options(task: Task, /, **changes: Any) -> Options:
    """The task's options with some of them changed."""
    defaults = asdict(task.options)
    for name, value in changes.items():
        if name not in defaults:
            raise InvalidInput(
                f"{task.name} has no option {name!r}. {did_you_mean(name, defaults)}"
            )
        kind = type(defaults[name])
        if kind in (int, float):
            require_number(name, value, whole=kind is int)
            # As Python's own number, so that numpy's are the same option and the same cache key.
            changes[name] = kind(value)
    return replace(task.options, **changes)


def task_table() -> Table:
    """Every task with its default shape and one line about it."""
    return text_table(["task", "values", "controls", "what"], _rows(), words=4)


def _rows() -> Iterator[tuple[str, ...]]:
    for name, task in TASKS.items():
        yield name, *task_shapes(task), task.summary


def task_shapes(task: Task) -> tuple[str, str]:
    """Batch×time×dim of a task's values and width of its controls, by playing one trajectory."""
    sample = record(task, replace(task.options, trajectories=1))
    _, time, dim = sample.values.shape
    controls = "" if sample.controls is None else str(sample.controls.shape[-1])
    return f"{task.options.trajectories:,}×{time}×{dim}", controls
