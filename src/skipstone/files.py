"""Atomic files: written beside their place, then moved."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to; the file replaces `path` when the block succeeds."""
    make_folder(path.parent)
    try:
        beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
        try:
            yield beside
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{path} must be a place that can be written to; {error.strerror or error}. Choose another "
        "folder, or make room."
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file, atomically."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, atomically, in a form that diffs well."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; raise if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} must be JSON; it is damaged or was edited: {error}.") from None
