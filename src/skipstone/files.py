"""Files that are whole or not there: written beside their place, synced, then moved."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput, require_kind, shortened

_PARTIAL = re.compile(r"\..*\.(?P<pid>\d+)@(?P<host>[^@]*)\.[0-9a-f]{8}\.partial")
"""Names of temporary files: `.NAME.PID@HOST.RANDOM.partial`."""

_LONGEST_PID = 7
"""Digits of the number of a process, at most, on Linux."""

_ABANDONED = 24 * 3600.0
"""Seconds after which the temporary file of another machine counts as left behind."""


def as_path(name: str, given: Any) -> Path:
    """A path of what is given as one; `name` is what an error calls it."""
    require_kind(f"{name} must be a path, a text or a Path", given, (str, os.PathLike))
    path = os.fspath(given)
    require_kind(f"{name} must be a path, a text or a Path", path, str)
    if not path:
        raise InvalidInput(f'{name} must be a path; got an empty text. Write "." for this folder.')
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # It is too long, say, or has null characters.
        reason = error.strerror if isinstance(error, OSError) else error
        shown = shortened(path)
        raise InvalidInput(f"{name} must be a path that can be used; {reason}: {shown}.") from None
    return Path(path)


def user_cache() -> Path:
    """The folder of what can be made again, safe to delete; raise where the user has no home."""
    import platformdirs

    with suppress(RuntimeError):  # What it raises, or else it gives a path that begins with ~.
        path = platformdirs.user_cache_path("skipstone")
        if path.is_absolute():
            return path
    raise InvalidInput(
        "a user must have a home to keep files in; this one has none. Set HOME, or XDG_CACHE_HOME "
        "to a folder that can be written to."
    )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to; the file replaces `path` when the block succeeds.

    Its content is on the disk before its name is: after a power loss `path` is the old file or the
    new one. What dead processes left in the folder is removed.
    """
    make_folder(path.parent)
    try:
        clear_partials(path.parent)
        beside = partial_path(path)
        try:
            yield beside
            _sync_file(beside)
            os.replace(beside, path)
            _sync_folder(path.parent)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def partial_path(path: Path) -> Path:
    """A temporary name beside a file's own. Who writes next removes it if its process is gone."""
    # As long in every process: one that tries names may not be the one that writes.
    owner = f"{os.getpid():0{_LONGEST_PID}}@{_host()}"
    return path.with_name(f".{path.name}.{owner}.{uuid.uuid4().hex[:8]}.partial")


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they exist; their names are on the disk then."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _sync_folder(folder.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def clear_partials(folder: Path) -> None:
    """Remove temporary files whose processes are gone: nobody will move them to their places."""
    with suppress(OSError):  # A folder that cannot be tidied up can still be written to.
        for path in folder.iterdir():
            found = _PARTIAL.fullmatch(path.name)
            if found and _is_left_behind(path, int(found["pid"]), found["host"]):
                path.unlink(missing_ok=True)


def _is_left_behind(path: Path, pid: int, host: str) -> bool:
    if host == _host() and os.name == "posix":
        return not is_alive(pid)
    return time.time() - path.stat().st_mtime > _ABANDONED


def is_alive(pid: int) -> bool:
    """Whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # It is somebody else's.
        return True
    return True


def _host() -> str:
    return re.sub(r"[^\w.-]", "_", socket.gethostname())


def _sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk. Not every system can be asked."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{path} must be a place that can be written to; {error.strerror or error}. Choose another "
        "folder, or make room."
    )


def remove_file(path: Path) -> None:
    """Remove a file if it is there; its name is gone from the disk then."""
    try:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            _sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def move_file(path: Path, to: Path) -> None:
    """Give a file that is on the disk another name in its folder, in place of what has that."""
    try:
        os.replace(path, to)
        _sync_folder(to.parent)
    except OSError as error:
        raise _unwritable(to, error) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, atomically."""
    with replacing(path) as beside:
        beside.write_bytes(content)


def read_bytes(path: Path) -> bytes:
    """All of a file at once. Whatever is said about a file has to be said about these bytes: the
    next reading may be of another file. What is no file, such as a pipe, is not waited for."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(0, "it is a pipe or a device")
            return file.read()
    except OSError as error:
        raise InvalidInput(
            f"{path} must be a file that can be read; {error.strerror or error}."
        ) from None


def _open_at_once(path: str, flags: int) -> int:
    """Open what is there without waiting for whoever is to write into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
