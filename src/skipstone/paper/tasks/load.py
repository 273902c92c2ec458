"""`load_task`: a task's data, ready to train on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from skipstone.errors import InvalidInput
from skipstone.paper.tasks.base import Options, Task
from skipstone.paper.tasks.cache import cached
from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.recording import Recording, record
from skipstone.paper.tasks.registry import find_task, task_options
from skipstone.sequences import Sequences

_PATIENCE = 1.0
"""Seconds after which a progress bar appears."""


@dataclass(frozen=True)
class TaskData:
    """The three parts of a task's trajectories, with the truth behind them."""

    task: Task
    """Where they come from."""
    options: Options
    """All options used, defaults included."""
    train: Sequences
    """To fit."""
    validation: Sequences
    """To decide when to stop."""
    test: Sequences
    """To report."""
    events: Mapping[str, Events]
    """What truly happened, by part: "train", "validation" and "test"."""


def load_task(name: str, *, cache: bool = True, **options: Any) -> TaskData:
    """Make a task's data, or read it from the cache on disk.

    `options` are fields of the task's options, for example `trajectories=1000` or `seed=3`;
    `skipstone tasks` lists the tasks. `cache=False` neither reads nor writes files.
    """
    task = find_task(name)
    chosen = task_options(task, **options)
    sizes = _part_sizes(chosen)

    def make() -> Recording:
        with _progress(f"making {name}", chosen.trajectories) as advance:
            return record(task, chosen, advance)

    recording = cached(task, chosen, make) if cache else make()
    sequences = Sequences(recording.times, recording.values, recording.controls)
    keep = torch.as_tensor(recording.keep)
    parts, events, start = {}, {}, 0
    for part, size in sizes.items():
        # Trajectories are independent of their order: ranges split without a copy.
        rows = slice(start, start + size)
        kept = bool(keep[rows].all())
        parts[part] = sequences[rows] if kept else sequences[rows].select(keep[rows])
        events[part] = recording.events[rows]
        start += size
    return TaskData(task, chosen, **parts, events=events)


def _part_sizes(options: Options) -> dict[str, int]:
    test = max(1, round(options.test * options.trajectories))
    validation = max(1, round(options.validation * (options.trajectories - test)))
    train = options.trajectories - test - validation
    if train < 1:
        raise InvalidInput(
            "each of train, validation and test must get a trajectory; "
            f"{options.trajectories} leave {max(train, 0)} to train on. Ask for more trajectories, "
            "or a smaller share for test and validation."
        )
    return {"train": train, "validation": validation, "test": test}


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that appears only when the work takes longer than a moment, and leaves no trace."""
    began, done = monotonic(), 0
    with Progress(console=Console(stderr=True), transient=True, disable=True) as bar:
        task = bar.add_task(title, total=total)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if bar.disable and monotonic() - began > _PATIENCE:
                bar.disable = False
                bar.start()
            bar.update(task, completed=done)

        yield advance
