"""Checks that results can be written, before the work that makes them begins."""

from __future__ import annotations

import os
from pathlib import Path

from skipstone.errors import InvalidInput
from skipstone.files import partial_path

_PROBE = b"\0" * 4096


def require_writable(folder: Path) -> None:
    """Raise unless files can be made in a folder. One that does not exist is not made yet."""
    try:
        nearest = _nearest(folder)
        if not nearest.is_dir():
            raise NotADirectoryError(0, f"{nearest} is a file")
        probe = partial_path(nearest / "skipstone")
        try:
            probe.write_bytes(_PROBE)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise _refused(folder, error) from None


def require_writable_file(path: Path) -> None:
    """Raise unless a file of this name can be made, or replaced."""
    require_writable(path.parent)
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        # Files are written beside their place, under a longer name. The folder may come later.
        os.stat(_nearest(path.parent) / partial_path(path).name)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    for place in (folder.absolute(), *folder.absolute().parents):
        try:
            os.stat(place)
            return place
        except (FileNotFoundError, NotADirectoryError):
            if place.is_symlink():
                raise FileNotFoundError(0, f"{place} is a link to nowhere") from None
    return folder


def _refused(path: Path, error: Exception) -> InvalidInput:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InvalidInput(
        f"{path} must be a place that can be written to; {reason}. Choose another folder, or make "
        "room."
    )
