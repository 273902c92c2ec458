"""Damaged and hostile files: a folder is refused in one line, or loads exactly as it was."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attack.subject import FIT, train, write_log
from attack.trial import Tally, command, fault, run_work

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2.5,
    10**30,
    1e308,
    "",
    "../x",
    "os:system",
    [],
    {},
    [[]],
    "NaN",
]
"""What is written in the place of what a JSON file holds."""

NAMES = ("config.json", "weights.safetensors", "result.json", "metrics.csv")


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


def _edited(content: bytes, chance: random.Random) -> bytes:
    """JSON with one of its values replaced."""
    try:
        found = json.loads(content)
    except ValueError:
        return _flip(content, chance)
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [found]
    while waiting:
        here = waiting.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here))
        places += [(here, key) for key in keys]
        waiting += [here[key] for key in keys if isinstance(here[key], dict | list)]
    where, key = chance.choice(places)
    where[key] = chance.choice(ODD)
    return json.dumps(found).encode()


WAYS: list[Callable[[bytes, random.Random], bytes]] = [
    *(_cut, _flip, _noise, _zeros, _pickled, _header, _deep, _edited, _edited, _edited)
]


def _damaged(path: Path, chance: random.Random) -> str:
    """Damage a file, or put something else in its place."""
    content, way = path.read_bytes(), chance.randrange(len(WAYS) + 4)
    if way < len(WAYS):
        path.write_bytes(WAYS[way](content, chance))
        return WAYS[way].__name__.strip("_")
    path.unlink()
    if way == len(WAYS):
        return "removed"
    if way == len(WAYS) + 1:
        path.symlink_to("nowhere")
        return "link to nowhere"
    if way == len(WAYS) + 2:
        path.mkdir()
        return "folder"
    os.mkfifo(path)
    return "pipe"


def _load(folder: Path, expected: Any) -> None:
    """Load a model, and end with 3 if it is another than it was."""
    from skipstone import InvalidInput, load

    try:
        model = load(folder)
    except InvalidInput as error:
        print(f"error: {error}")
        raise SystemExit(2) from None
    state, config = expected
    found = model.state_dict()
    same = found.keys() == state.keys() and all(torch.equal(found[k], state[k]) for k in state)
    if not same or dataclasses.asdict(model.config) != config:
        raise SystemExit(3)


def attack_with_damage(trials: int, seed: int) -> Tally:
    """Damage a file of a finished training, or a table, then use it."""
    from skipstone import load

    tally, chance = Tally(), random.Random(seed)
    whole, folder, log = Path("whole"), Path("damaged"), Path("log.csv")
    run_work(lambda: train(whole))
    write_log(log)
    table = run_work(command("fit", "log.csv", *FIT, "--quiet", "--out", "table"))
    tally.count("fit", fault(table, (0,)))
    model = load(whole)
    expected = model.state_dict(), dataclasses.asdict(model.config)
    clean = log.read_bytes()
    for number in range(trials - 1):
        if number % 4 == 3:
            how = _damaged(log, chance)
            forecast = ("--until", "+3", "--every", "1", "--out", "next.csv")
            ended = run_work(command("forecast", "table", "log.csv", *forecast))
            failure, what = fault(ended), f"log.csv, {how}"
            _remove(log)
            log.write_bytes(clean)
        else:
            shutil.copytree(whole, folder)
            name = chance.choice([name for name in NAMES if (whole / name).is_file()])
            how = _damaged(folder / name, chance)
            ended = run_work(lambda: _load(folder, expected))
            failure, what = _judged(ended), f"{name}, {how}"
            failure = failure or fault(run_work(command("runs", ".")))
            shutil.rmtree(folder)
        if Path("exploded").exists():
            failure = "runs code of a file"
        tally.count(what, failure, f"exit code {ended.code}")
    return tally


def _judged(ended: Any) -> str | None:
    return "loads another model" if ended.code == 3 else fault(ended)


def _remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
