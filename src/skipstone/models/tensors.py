"""Tensors on disk: safetensors files that carry a checksum of themselves. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.files import read_bytes, write_bytes
from skipstone.records import SEAL, parse_json, require_schema

_NOTES = "skipstone"
"""Entry of a file's metadata that holds its notes, as JSON. One entry, because safetensors writes
several in any order, and the same tensors should be the same bytes."""

_UNSEALED = "0" * 64
"""What stands for the checksum in the bytes that it is of."""


class _Entry(TypedDict):
    shape: list[int]


@dataclass(frozen=True)
class TensorFile:
    """The content of a safetensors file, read once."""

    path: Path
    """Where it was read from, for errors."""

    content: bytes
    """All of it."""

    notes: dict[str, str]
    """What is noted in its header."""

    shapes: dict[str, tuple[int, ...]]
    """Shapes of its tensors, from its header: no tensor has been made."""

    sealed: bool
    """Whether it has a checksum of itself, which was right."""

    @property
    def sha256(self) -> str:
        """Checksum of the file."""
        return hashlib.sha256(self.content).hexdigest()

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors."""
        try:
            return safetensors.torch.load(self.content)
        except (SafetensorError, ValueError, KeyError) as error:
            raise _damaged(self.path, error) from None


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> str:
    """Write tensors and notes as safetensors, atomically; return the file's checksum."""
    # Copies: weights that are tied share memory, which the format does not know.
    copies = {name: each.detach().cpu().clone().contiguous() for name, each in tensors.items()}
    described = json.dumps({SEAL: _UNSEALED, **notes})
    content = safetensors.torch.save(copies, metadata={_NOTES: described})
    seal = hashlib.sha256(content).hexdigest().encode()
    content = content.replace(_UNSEALED.encode(), seal, 1)
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def open_tensors(path: Path) -> TensorFile:
    """Read a safetensors file; raise if it is damaged. One that was not written here may have no
    checksum."""
    content = read_bytes(path)
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise _damaged(path, "it is cut short")
    header = parse_json(content[8 : 8 + length], f"the header of {path}")
    require_schema(header, dict[str, dict[str, Any]], f"the header of {path}")
    metadata = header.pop("__metadata__", {})
    require_schema(metadata, dict[str, str], f"the metadata of {path}")
    require_schema(header, dict[str, _Entry], f"the header of {path}")
    notes, seal = metadata, None
    if _NOTES in metadata:
        notes = parse_json(metadata[_NOTES].encode(), f"the notes of {path}")
        require_schema(notes, dict[str, str], f"the notes of {path}")
        seal = notes.pop(SEAL, "")
        _require_seal(path, content, length, seal)
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    return TensorFile(path, content, notes, shapes, seal is not None)


def _require_seal(path: Path, content: bytes, length: int, seal: str) -> None:
    head = content[: 8 + length].replace(seal.encode(), _UNSEALED.encode(), 1)
    digest = hashlib.sha256(head)
    digest.update(memoryview(content)[8 + length :])
    if not seal or digest.hexdigest() != seal:
        raise _damaged(path, "its checksum differs")


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors of a file that was written here, and its notes."""
    file = open_tensors(path)
    if not file.sealed:
        raise _damaged(path, "it has no checksum")
    return file.tensors(), file.notes


def _damaged(path: Path, reason: object) -> InvalidInput:
    return InvalidInput(
        f"{path} must be a safetensors file as skipstone wrote it; it was cut short, edited or "
        f"replaced: {reason}. Copy it again; without a checkpoint a training starts over."
    )
