"""The folder of an exported model: read, checked, and opened by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import onnxruntime

FORMAT = 3
"""Number of the folder's format that these files read."""

GRAPHS = ("context", "step", "query")

_SEAL = "sha256"
"""Entry with the checksum of all others."""

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

_POSITIVE = ("dim", "num_context", "time_unit", "scale", "control_scale")
"""Entries whose numbers are above 0."""

_WIDTHS = {
    "center": "dim",
    "scale": "dim",
    "control_center": "control",
    "control_scale": "control",
}
"""Lists, and the entry that says how many numbers they have; one number counts for all."""

_LARGEST = 2.0**1000
"""Numbers beyond this are refused: a double may not hold them."""

_AGAIN = "Copy the folder again, or export the model again."


def read_description(folder: pathlib.Path) -> dict[str, Any]:
    """`rollout.json`, checked to be what was written, and to have all that a rollout needs."""
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
    wrong = [name for name, kind in _ENTRIES.items() if not _fits(name, found.get(name), kind)]
    wrong = wrong or [
        name for name, of in _WIDTHS.items() if len(found[name]) not in (1, found[of])
    ]
    if wrong:
        raise ValueError(
            f"{path} must have {', '.join(wrong)}, as export_onnx writes them; they are missing or "
            f"of another kind. {_AGAIN}"
        )
    if found.pop(_SEAL, None) != _seal_of(found):
        raise _replaced(path)
    return found


def _fits(name: str, given: Any, kind: Any) -> bool:
    """Whether an entry is of a kind, and its numbers are ones to compute with."""
    if kind not in (int, _NUMBER, _NUMBERS):
        return isinstance(given, kind)
    numbers = given if kind is _NUMBERS else [given]
    return isinstance(numbers, list) and all(
        isinstance(each, int if kind is int else _NUMBER)
        and not isinstance(each, bool)
        and abs(each) <= _LARGEST  # NaN is not.
        and (each > 0 or (each == 0 and name not in _POSITIVE) or "center" in name)
        for each in numbers
    )


def _seal_of(content: dict[str, Any]) -> str:
    """Checksum of a description, as export_onnx computes it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _replaced(path: pathlib.Path) -> ValueError:
    return ValueError(
        f"{path} is not the file that was written with this folder (its checksum differs): it was "
        f"cut short, edited or replaced. {_AGAIN}"
    )


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
            raise _replaced(path)
        # From the very bytes that were checked.
        sessions[name] = onnxruntime.InferenceSession(content, options, providers=list(providers))
    return sessions


def require_fitting(
    folder: pathlib.Path, context: onnxruntime.InferenceSession, description: dict[str, Any]
) -> None:
    """Raise unless the graph that reads a context takes what `rollout.json` says."""
    expected = {"values": [description["num_context"], description["dim"]]}
    if description["control"]:
        expected["controls"] = [description["num_context"], description["control"]]
    shapes = {each.name: each.shape[1:] for each in context.get_inputs()}
    for name, shape in expected.items():
        if shapes.get(name) != shape:
            raise ValueError(
                f"{folder} must hold graphs of what its rollout.json says, {name} of shape "
                f"{shape} for each row; its graphs take {shapes.get(name)}. {_AGAIN}"
            )
