"""Recordings on disk, so that each is made once.

A file is named by a hash of everything that decides its content. It is written beside its place
and moved there when complete, so a reader never sees half a file.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import platformdirs

from skipstone.errors import InvalidInput
from skipstone.files import replacing
from skipstone.paper.tasks.base import Options, Task
from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.recording import Recording

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, ValueError)
"""What reading a truncated or altered file can raise."""


def cache_path(task: Task, options: Options) -> Path:
    """Where the recording of a task with these options is kept."""
    key = hashlib.sha256(_identity(task, options).encode()).hexdigest()[:16]
    return platformdirs.user_cache_path("skipstone") / "tasks" / f"{task.name}-{key}.npz"


def cached(task: Task, options: Options, make: Callable[[], Recording]) -> Recording:
    """The recording kept on disk, or a new one from `make`, which is then kept."""
    path = cache_path(task, options)
    if path.exists():
        try:
            return _read(path, _identity(task, options))
        except _DAMAGE as error:
            warnings.warn(f"{path} is damaged ({error}); making it anew.", stacklevel=3)
    recording = make()
    try:
        _write(path, _identity(task, options), recording)
    except InvalidInput as error:
        warnings.warn(f"cannot keep {task.name}: {error}", stacklevel=3)
    return recording


def _identity(task: Task, options: Options) -> str:
    content = {"task": task.name, "version": task.version, "options": asdict(options)}
    return json.dumps(content, sort_keys=True)


def _write(path: Path, identity: str, recording: Recording) -> None:
    arrays = {
        field.name: getattr(recording, field.name)
        for field in fields(Recording)
        if field.name != "events" and getattr(recording, field.name) is not None
    }
    for field in fields(Events):
        arrays[f"events.{field.name}"] = getattr(recording.events, field.name)
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, identity=identity, **arrays)


def _read(path: Path, identity: str) -> Recording:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        if str(file["identity"]) != identity:
            raise ValueError("it holds another recording")
        events = Events(*(file[f"events.{field.name}"] for field in fields(Events)))
        controls = file.get("controls")
        return Recording(file["times"], file["values"], controls, file["keep"], events)
