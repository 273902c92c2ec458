"""Kills of a training, at random and at every write; then it is resumed, to the same weights."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from attack.subject import train, weights
from attack.trial import Child, Tally, fault, run_work

_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate", "shutil.rmtree")


def attack_with_kills(trials: int, seed: int) -> Tally:
    """Kill, resume, compare."""
    tally, chance, folder = Tally(), random.Random(seed), Path("run").absolute()
    began = time.monotonic()
    reference = run_work(lambda: train(folder))
    lasts = time.monotonic() - began
    if reference.code != 0:
        tally.count("a training that nobody disturbs", reference.said[-300:])
        return tally
    expected, largest = weights(folder), max(path.stat().st_size for path in folder.iterdir())
    writes = _count_writes(folder)
    for number in range(trials):
        shutil.rmtree(folder)
        way = ("write", "time", "terminate", "within a write")[(number + seed) % 4]
        if way == "write":
            at = (number // 4 + seed) % writes + 1
            ended = run_work(lambda at=at: _until_write(folder, at))
        elif way == "within a write":
            at = chance.randrange(1, largest)
            ended = run_work(lambda at=at: _until_size(folder, at))
        else:
            at = chance.uniform(0.0, lasts)
            child = Child(lambda: train(folder))
            time.sleep(at)
            child.kill(signal.SIGKILL if way == "time" else signal.SIGTERM)
            ended = child.end()
        allowed = (0, -signal.SIGKILL, -signal.SIGXFSZ, -signal.SIGTERM, 143)
        failure = fault(ended, allowed) or _resumed(folder, expected)
        tally.count(f"{way} {at}", failure, f"{way}: {'ok' if failure is None else 'failed'}")
    return tally


def _resumed(folder: Path, expected: str) -> str | None:
    """Why a training that is started again does not end as it should."""
    ended = run_work(lambda: train(folder))
    if ended.code != 0:
        return f"does not resume, {ended.said.strip().splitlines()[-1:]}"
    found = weights(folder)
    return None if found == expected else f"ends with other weights, {found[:8]}"


def _on_change(folder: Path, act: Callable[[], None]) -> None:
    """Call `act` before each change of a file in a folder, for the rest of this process."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and str(path).startswith(str(folder)):
                act()
        elif event in _CHANGES and any(str(a).startswith(str(folder)) for a in arguments):
            act()

    sys.addaudithook(hook)


def _until_write(folder: Path, at: int) -> None:
    """Train, and be killed before the n-th change of a file."""
    seen = 0

    def act() -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    _on_change(folder, act)
    train(folder)


def _until_size(folder: Path, most: int) -> None:
    """Train, and be killed in the middle of a write to a file, once it has so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    train(folder)


def _count_writes(folder: Path) -> int:
    """How many changes of files a training makes."""

    def work() -> None:
        seen: list[int] = []
        _on_change(folder, lambda: seen.append(1))
        train(folder)
        print(f"changes={len(seen)}")

    shutil.rmtree(folder)
    said = run_work(work).said
    return max(1, int(said.rpartition("changes=")[2] or 1))
