"""All tasks by name. A new task is registered here, in one line."""

from __future__ import annotations

from dataclasses import asdict, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.paper.tasks.balls import BILLIARDS_1D, BILLIARDS_2D, PIXELS_1D, PIXELS_2D
from skipstone.paper.tasks.base import Options, Task
from skipstone.paper.tasks.shapes import CIRCLES, LINES
from skipstone.paper.tasks.shots import SHOTS

TASKS: dict[str, Task] = {
    task.name: task
    for task in (LINES, CIRCLES, BILLIARDS_1D, BILLIARDS_2D, PIXELS_1D, PIXELS_2D, SHOTS)
}


def find_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise InvalidInput(f"there is no task {name!r}. {_nearest(name, list(TASKS))}")
    return TASKS[name]


def task_options(task: Task, **changes: Any) -> Options:
    """The task's options with some of them changed."""
    defaults = asdict(task.options)
    for name, value in changes.items():
        if name not in defaults:
            known = list(defaults)
            raise InvalidInput(f"{task.name} has no option {name!r}. {_nearest(name, known)}")
        changes[name] = _as_number(name, value, type(defaults[name]))
    return replace(task.options, **changes)


def _as_number(name: str, value: Any, kind: type) -> int | float:
    """An option as Python's own number, so that numpy's are the same option as Python's."""
    if kind is int and isinstance(value, Integral):
        return int(value)
    if kind is float and isinstance(value, Real):
        return float(value)
    raise InvalidInput(
        f"{name} must be {'an integer' if kind is int else 'a number'}; got {value!r}."
    )


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(str(name), known) or known
    return f"Did you mean {' or '.join(near)}?" if len(near) < 4 else f"Use {', '.join(near)}."
