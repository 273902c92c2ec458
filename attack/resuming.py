"""A training that is interrupted: what it does to the disk, and what resuming it must give."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack.subject import CHECKPOINT, RECIPE, RESULT, Steps, checkpoint_step, train, weights
from attack.trial import Ended, run_work

_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate", "shutil.rmtree")


@dataclass(frozen=True)
class Reference:
    """A training that nobody disturbs."""

    weights: str
    """Checksum of what it ends with."""
    seconds: float
    """How long it takes."""
    changes: int
    """How often it changes the disk."""
    sizes: list[int]
    """Bytes of its checkpoints, one after the other."""

    @property
    def fault(self) -> str | None:
        """Why it is not what trials need."""
        due = RECIPE.steps // RECIPE.checkpoint_every
        return None if len(self.sizes) == due else f"{len(self.sizes)} checkpoints, not {due}"


def undisturbed(folder: Path) -> Reference:
    """Train in a new folder, and watch."""

    def work() -> None:
        changes, sizes = [], []

        def act(event: str, paths: tuple[str, ...]) -> None:
            changes.append(event)
            if event == "os.rename" and paths[1].endswith(CHECKPOINT):
                sizes.append(Path(paths[0]).stat().st_size)

        on_change(folder, act)
        train(folder)
        print("seen", len(changes), *sizes)

    began = time.monotonic()
    ended = run_work(work)
    seconds, last = time.monotonic() - began, ended.last.split()
    if ended.code != 0 or last[:1] != ["seen"]:
        raise RuntimeError(f"a training that nobody disturbs ends with {ended.code}: {ended.said}")
    changes, *sizes = map(int, last[1:])
    return Reference(weights(folder), seconds, changes, sizes)


def on_change(folder: Path, act: Callable[[str, tuple[str, ...]], None]) -> None:
    """Call `act` before each change of a file in a folder, for the rest of this process."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and str(path).startswith(str(folder)):
                act(event, (str(path),))
        elif event in _CHANGES and any(str(a).startswith(str(folder)) for a in arguments):
            act(event, tuple(map(str, arguments)))

    sys.addaudithook(hook)


def limit_after(folder: Path, checkpoints: int, most: int) -> None:
    """Allow no file of more than so many bytes, once there are so many checkpoints."""
    seen = 0

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    def act(event: str, paths: tuple[str, ...]) -> None:
        nonlocal seen
        if event == "os.rename" and paths[1].endswith(CHECKPOINT):
            seen += 1
            if seen == checkpoints:
                limit()  # A file is moved whatever its size.

    if checkpoints:
        on_change(folder, act)
    else:
        limit()


def lost(folder: Path, expected: str, reached: int, saved: int | None = None) -> str | None:
    """Resume a training that had taken `reached` steps; why it does not end as it should.

    It may begin as many steps back as lie between two checkpoints; at `saved` exactly, if given.
    """
    stands, finished, steps = checkpoint_step(folder), (folder / RESULT).is_file(), Steps()
    ended = run_work(lambda: train(folder, steps))
    if ended.code != 0:
        return f"does not resume, {ended.last!r}"
    begins = RECIPE.steps - steps.taken
    if begins != (RECIPE.steps if finished else stands or 0):
        return f"resumes at step {begins}, its checkpoint is of step {stands}"
    if reached - begins > RECIPE.checkpoint_every:
        return f"loses work: stopped after step {reached}, resumes at step {begins}"
    if saved is not None and begins != saved:
        return f"loses work: saved step {saved}, resumes at step {begins}"
    found = weights(folder)
    return None if found == expected else f"ends with other weights, {found[:8]}"


def unheeded(folder: Path, ended: Ended, step: int) -> str | None:
    """Why the end after a SIGTERM within a step is not what it has to be."""
    if ended.code != 143:
        return f"ends with {ended.code} after SIGTERM in step {step}"
    if f"stopped after step {step}" not in ended.said:
        return f"does not say how far it came, {ended.last!r}"
    found = checkpoint_step(folder)
    return None if found == step else f"stopped after step {step}, checkpoint of step {found}"


def spread(count: int, total: int, first: int = 0) -> list[int]:
    """So many places among 1 to `total`, evenly; each of them if there are enough."""
    return [1 + (place * total // count + first) % total for place in range(count)]
