"""Files as whoever writes a hostile folder writes them: with checksums that are right."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from skipstone.paper.tasks.load import _checksum
from skipstone.records import SEAL, seal_of

NOTES, METADATA, PROGRESS = "skipstone", "__metadata__", "progress"
_UNSEALED = "0" * 64


def opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, its texts of JSON read, and the rest of the file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    notes = json.loads(header[METADATA][NOTES])
    if PROGRESS in notes:
        notes[PROGRESS] = json.loads(notes[PROGRESS])
    header[METADATA][NOTES] = notes
    return header, content[8 + length :]


def closed(header: dict[str, Any], rest: bytes, sealed: bool) -> bytes:
    """The file of a header and the rest; with the checksum that it should have, if `sealed`."""
    metadata = header.get(METADATA)
    notes = metadata.get(NOTES) if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(notes, dict):
        notes = dict(notes)
        if PROGRESS in notes:
            notes[PROGRESS] = json.dumps(notes[PROGRESS])
        if sealed:
            notes[SEAL] = _UNSEALED
        header = {**header, METADATA: {**metadata, NOTES: json.dumps(notes)}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # Tensors begin at whole words.
    content = len(text).to_bytes(8, "little") + text + rest
    if sealed:
        seal = hashlib.sha256(content).hexdigest().encode()
        content = content.replace(_UNSEALED.encode(), seal, 1)
    return content


def seal_folder(folder: Path) -> None:
    """Make all checksums of a run right again, as far as its files can be read at all."""
    config, result = folder / "config.json", folder / "result.json"
    weights, calibration = folder / "weights.safetensors", folder / "calibration.safetensors"
    identity = checksum = None
    with contextlib.suppress(Exception):
        identity = _seal(config, {})
    with contextlib.suppress(Exception):
        checksum = hashlib.sha256(weights.read_bytes()).hexdigest()
    about = {"config_sha256": identity, "weights_sha256": checksum}
    with contextlib.suppress(Exception):
        _seal(result, {name: value for name, value in about.items() if value is not None})
    with contextlib.suppress(Exception):
        header, rest = opened(calibration.read_bytes())
        header[METADATA][NOTES]["weights_sha256"] = checksum
        calibration.write_bytes(closed(header, rest, sealed=True))


def _seal(path: Path, about: dict[str, Any]) -> str:
    """Seal a JSON file, with some entries that say what it belongs to."""
    content = json.loads(path.read_bytes())
    # What was put in the place of a checksum on purpose stays.
    content |= {name: value for name, value in about.items() if isinstance(content.get(name), str)}
    content[SEAL] = seal_of(content)
    path.write_text(json.dumps(content))
    return content[SEAL]


def edited_archive(content: bytes, name: str, array: np.ndarray | None) -> bytes:
    """Cached data with an array replaced or left out, under a checksum that is right."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {each: file[each] for each in file.files}
    identity = arrays.pop("identity")
    del arrays["sha256"], arrays[name]
    if array is not None:
        arrays[name] = array
    written = io.BytesIO()
    np.savez_compressed(written, identity=identity, sha256=_checksum(arrays), **arrays)
    return written.getvalue()
