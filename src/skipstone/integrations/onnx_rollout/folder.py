"""The folder of an exported model: read, checked, and opened by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import onnxruntime

FORMAT = 2
"""Number of the folder's format that these files read."""

GRAPHS = ("context", "step", "query")

_NUMBER, _NUMBERS = (int, float), list
_ENTRIES: dict[str, Any] = {
    "dim": int,
    "control": int,
    "num_context": int,
    "time_unit": _NUMBER,
    "missing": bool,
    "center": _NUMBERS,
    "scale": _NUMBERS,
    "control_center": _NUMBERS,
    "control_scale": _NUMBERS,
    "min_step": _NUMBER,
    "drives": bool,
    "same_time": _NUMBER,
    "graphs": dict,
}
"""What `rollout.json` has to have, and as what."""

_AGAIN = "Copy the folder again, or export the model again."


def read_description(folder: pathlib.Path) -> dict[str, Any]:
    """`rollout.json`, checked to have all that a rollout needs."""
    path = folder / "rollout.json"
    if not path.is_file():
        raise ValueError(f"{folder} must be what export_onnx wrote; it has no rollout.json.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path} must be JSON; it is not: {reason}. {_AGAIN}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        given = found.get("format") if isinstance(found, dict) else None
        raise ValueError(
            f"{folder} must have format {FORMAT}; it has {given!r:.60}. Export the model again, or "
            "use the files that belong to its version."
        )
    wrong = [name for name, kind in _ENTRIES.items() if not _is(found.get(name), kind)]
    if wrong:
        raise ValueError(
            f"{path} must have {', '.join(wrong)}, as export_onnx writes them; they are missing or "
            f"of another kind. {_AGAIN}"
        )
    return found


def _is(given: Any, kind: Any) -> bool:
    """Whether an entry is of a kind; a list is of numbers, and True is no number."""
    if kind is _NUMBERS:
        return isinstance(given, list) and all(_is(each, _NUMBER) for each in given)
    return isinstance(given, kind) and (kind is bool or not isinstance(given, bool))


def open_graphs(
    folder: pathlib.Path, checksums: dict[str, Any], threads: int, providers: Sequence[str]
) -> dict[str, onnxruntime.InferenceSession]:
    """The graphs of a folder, if they are those that were written with it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    sessions = {}
    for name in GRAPHS:
        path = folder / f"{name}.onnx"
        if not path.is_file():
            raise ValueError(f"{folder} must have {path.name}; it has not. {_AGAIN}")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != checksums.get(name):
            raise ValueError(
                f"{path} is not the file that was written with this folder (its checksum differs): "
                f"it was cut short, edited or replaced. {_AGAIN}"
            )
        # From the very bytes that were checked.
        sessions[name] = onnxruntime.InferenceSession(content, options, providers=list(providers))
    return sessions
