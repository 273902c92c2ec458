"""Ways to damage a file: cut, flipped, edited, or something else in its place."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.seals import closed, opened

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2.5,
    10**30,
    1e308,
    1_000_000,
    "",
    "../x",
    "os:system",
    [],
    {},
    [[]],
    "NaN",
]
"""What is written in the place of what a JSON file holds."""


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __reduce__(self) -> Any:
        return os.system, ("touch exploded",)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _flip(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _noise(content: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 4096))


def _zeros(content: bytes, chance: random.Random) -> bytes:
    return bytes(len(content))


def _pickled(content: bytes, chance: random.Random) -> bytes:
    return pickle.dumps(Bomb())


def _header(content: bytes, chance: random.Random) -> bytes:
    """A header of safetensors that promises more than there is."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    return struct.pack("<Q", chance.choice([len(header), 2**62])) + header.encode() + content[8:]


def _deep(content: bytes, chance: random.Random) -> bytes:
    return b"[" * 100_000 + b"]" * 100_000


WAYS: list[Callable[[bytes, random.Random], bytes]] = [
    *(_cut, _flip, _noise, _zeros, _pickled, _header, _deep)
]


def damaged(path: Path, chance: random.Random) -> str:
    """Damage a file, or put something else in its place; say how."""
    content, way = path.read_bytes(), chance.randrange(len(WAYS) + 7)
    if way < len(WAYS):
        path.write_bytes(WAYS[way](content, chance))
        return WAYS[way].__name__.strip("_")
    if way < len(WAYS) + 3:
        return edited(path, chance)
    path.unlink()
    if way == len(WAYS) + 3:
        return "removed"
    if way == len(WAYS) + 4:
        path.symlink_to("nowhere")
        return "link to nowhere"
    if way == len(WAYS) + 5:
        path.mkdir()
        return "folder"
    os.mkfifo(path)
    return "pipe"


def edited(path: Path, chance: random.Random, sealed: bool = False) -> str:
    """Replace a value of a JSON file, or of the header of a safetensors file; a bit of others.

    `sealed` gives the header a right checksum; that of JSON files is for `seal_folder` to make.
    """
    content = path.read_bytes()
    if path.suffix == ".json":
        how, found = _replaced(json.loads(content), chance)
        path.write_text(json.dumps(found))
        return f"{'sealed, ' if sealed else ''}{how}"
    if path.suffix == ".safetensors":
        header, rest = opened(content)
        how, found = _replaced(header, chance)
        path.write_bytes(closed(found, rest, sealed))
        return f"{'sealed, ' if sealed else ''}{how}"
    path.write_bytes(_flip(content, chance))
    return "flip"


def _replaced(found: dict[str, Any], chance: random.Random) -> tuple[str, dict[str, Any]]:
    """JSON with one of its values replaced, removed or repeated, and what was done in words."""
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [found]
    while waiting:
        here = waiting.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here))
        places += [(here, key) for key in keys]
        waiting += [here[key] for key in keys if isinstance(here[key], dict | list)]
    # As often an entry of a small dictionary as of a large one.
    where = chance.choice([here for here, _ in places])
    key = chance.choice([key for here, key in places if here is where])
    if chance.random() < 0.2:
        del where[key]
        return f"without {key}", found
    where[key] = chance.choice(ODD)
    return f"{key} as {where[key]!r}", found
