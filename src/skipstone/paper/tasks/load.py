"""`load_task`: a task's data, ready to train on, made once and then read from the cache on disk.

A cached file is named by a hash of everything that decides its content.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from skipstone.console import Progress, show_progress
from skipstone.errors import InvalidInput, require_flag
from skipstone.files import read_bytes, replacing, user_cache
from skipstone.paper.tasks.base import Options, Task
from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.recording import Recording, check_arrays, record
from skipstone.paper.tasks.registry import find_task, task_options
from skipstone.sequences import Sequences

PATIENCE = 1.0
"""Seconds after which progress is shown."""

LAYOUT = 2
"""Number of the layout of cached files: those of another one are not looked at."""


@dataclass(frozen=True)
class TaskData:
    """The three parts of a task's trajectories, with their true collisions."""

    task: Task
    """Source of the trajectories."""
    options: Options
    """All options used, defaults included."""
    train: Sequences
    """To fit."""
    validation: Sequences
    """To decide when to stop."""
    test: Sequences
    """To report."""
    events: Mapping[str, Events]
    """True collisions by part: "train", "validation" and "test"."""


def load_task(name: str, *, cache: bool = True, **options: Any) -> TaskData:
    """Make a task's data, or read it from the cache on disk.

    `options` are fields of the task's options, for example `trajectories=1000` or `seed=3`;
    `skipstone tasks` lists the tasks. `cache=False` neither reads nor writes files.
    """
    require_flag("cache", cache)
    task = find_task(name)
    chosen = task_options(task, **options)
    sizes = _part_sizes(chosen)

    def make() -> Recording:
        with _patient_progress(f"making {name}", chosen.trajectories) as advance:
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
def _patient_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Progress that is shown only if the work takes longer than `PATIENCE`."""
    began, done = monotonic(), 0
    progress: Progress | None = None
    with ExitStack() as stack:

        def advance(count: int) -> None:
            nonlocal done, progress
            done += count
            if progress is None and monotonic() - began > PATIENCE:
                progress = stack.enter_context(show_progress())
            if progress is not None:
                progress(title, done / total)

        yield advance


def cache_path(task: Task, options: Options) -> Path:
    """File that keeps the recording of a task with these options."""
    key = hashlib.sha256(_identity(task, options).encode()).hexdigest()[:16]
    return user_cache() / "tasks" / f"{task.name}-{key}.npz"


def cached(task: Task, options: Options, make: Callable[[], Recording]) -> Recording:
    """The recording kept on disk, or a new one from `make`, which is then kept."""
    try:
        path, identity = cache_path(task, options), _identity(task, options)
    except InvalidInput as error:
        warnings.warn(f"cannot keep {task.name}: {error}", stacklevel=3)
        return make()
    if os.path.lexists(path):
        try:
            return _read(path, identity, options)
        except Exception as error:  # Of an archive, a compression, a header: nobody lists them.
            reason = str(error).partition("\n")[0]
            warnings.warn(f"{path} is damaged ({reason}); making it anew.", stacklevel=3)
    recording = make()
    try:
        _write(path, identity, recording)
    except InvalidInput as error:
        warnings.warn(f"cannot keep {task.name}: {error}", stacklevel=3)
    return recording


def _identity(task: Task, options: Options) -> str:
    content = {"task": task.name, "version": task.version, "options": asdict(options)}
    content["layout"] = LAYOUT
    return json.dumps(content, sort_keys=True)


def _write(path: Path, identity: str, recording: Recording) -> None:
    arrays = {field.name: getattr(recording, field.name) for field in fields(Recording)}
    events = arrays.pop("events")
    arrays |= {f"events.{field.name}": getattr(events, field.name) for field in fields(Events)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, identity=identity, sha256=_checksum(arrays), **arrays)


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Of names, types, shapes and content of arrays. The archive's own is 32 bits, and is not
    always looked at."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def _read(path: Path, identity: str, options: Options) -> Recording:
    with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if str(arrays.pop("identity")) != identity:
        raise ValueError("it holds another recording")
    if str(arrays.pop("sha256", "")) != _checksum(arrays):
        raise ValueError("its checksum differs")
    check_arrays(arrays, options)
    events = Events(*(arrays[f"events.{field.name}"] for field in fields(Events)))
    controls = arrays.get("controls")
    return Recording(arrays["times"], arrays["values"], controls, arrays["keep"], events)
