"""One process at a time in a folder: a lock that says who holds it, and ends with its process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from skipstone.errors import InvalidInput
from skipstone.files import clear_partials, make_folder, remove_file
from skipstone.records import read_record, write_json

LOCK, HOLDER = ".lock", ".lock.json"
"""The file that is locked, and the one that says who locked it."""


class _Holder(TypedDict):
    pid: int
    host: str
    since: str


@contextmanager
def locked(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder's lock in this block, or raise at once, naming who has it.

    The operating system ends a lock with its process, so that one is never left behind by a crash.
    The file stays: removing it would let two processes lock two files of that name. `doing` is what
    the lock is for, such as "train in".
    """
    import filelock

    make_folder(folder)
    lock = filelock.FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise InvalidInput(
            f"only one process at a time can {doing} {folder}; {_who(folder)} does. Wait for it, "
            "end it, or choose another folder."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{folder} must be a place that can be locked; {error.strerror or error}. Choose "
            "another folder."
        ) from None
    try:
        clear_partials(folder)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        holder = _Holder(pid=os.getpid(), host=socket.gethostname(), since=since)
        write_json(folder / HOLDER, holder)
        yield
    finally:
        with suppress(InvalidInput):
            remove_file(folder / HOLDER)
        lock.release()


def _who(folder: Path) -> str:
    """The holder of a lock, in words."""
    try:
        holder = read_record(folder / HOLDER, _Holder)
    except InvalidInput:  # It has the lock, and has not yet said so.
        return "another process"
    return f"process {holder['pid']} on {holder['host']}, since {holder['since']},"
