"""Kills of a training, at random and at every write; then it is resumed, where it was, to the same
weights."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

from attack.resuming import Reference, limit_after, lost, on_change, spread, undisturbed, unheeded
from attack.subject import RECIPE, Steps, train
from attack.trial import Child, Ended, Tally, fault, run_work

WAYS = ("write", "time", "write", "terminate", "within a write")
"""Ways to be killed, in turn; of 200 trials, 80 are at writes, as many as there are."""


def attack_with_kills(tally: Tally, trials: int, seed: int) -> None:
    """Kill, resume, compare."""
    chance, folder = random.Random(seed), Path("run").absolute()
    reference = undisturbed(folder)
    ways = [WAYS[(number + seed) % len(WAYS)] for number in range(trials)]
    if reference.fault:
        tally.count("a training that nobody disturbs", reference.fault)
        ways = [way for way in ways if way != "within a write"]
    first = chance.randrange(reference.changes)
    places = spread(max(1, ways.count("write")), reference.changes, first)
    for way in ways:
        shutil.rmtree(folder, ignore_errors=True)
        if way == "write":
            at = places.pop()
            failure = _killed_at(folder, reference, at)
        elif way == "within a write":
            checkpoints = chance.randrange(len(reference.sizes))
            most = chance.randrange(1, reference.sizes[checkpoints])
            at = f"of more than {most} bytes after {checkpoints} checkpoints"
            failure = _killed_within(folder, reference, checkpoints, most)
        elif way == "terminate" and chance.random() < 0.5:
            at = f"in step {(step := chance.randint(1, RECIPE.steps))}"
            failure = _terminated(folder, reference, step)
        else:
            at = f"after {(seconds := chance.uniform(0.0, reference.seconds)):.3f} s"
            number = signal.SIGKILL if way == "time" else signal.SIGTERM
            failure = _signalled(folder, reference, seconds, number)
        tally.count(f"{way} {at}", failure, f"{way}: {'ok' if failure is None else 'failed'}")


def _killed_at(folder: Path, reference: Reference, at: int) -> str | None:
    """Kill before the n-th change of a file."""
    steps, seen = Steps(), 0

    def work() -> None:
        def act(*_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)

        on_change(folder, act)
        train(folder, steps)

    ended = run_work(work)
    return fault(ended, (-signal.SIGKILL,)) or lost(folder, reference.weights, steps.taken)


def _killed_within(folder: Path, reference: Reference, checkpoints: int, most: int) -> str | None:
    """Kill in the middle of a write, once a file has so many bytes; an older checkpoint stays."""
    steps = Steps()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        limit_after(folder, checkpoints, most)
        train(folder, steps)

    ended, saved = run_work(work), checkpoints * RECIPE.checkpoint_every
    failure = fault(ended, (-signal.SIGXFSZ,))
    return failure or lost(folder, reference.weights, steps.taken, saved)


def _terminated(folder: Path, reference: Reference, step: int) -> str | None:
    """SIGTERM within a step of the loop: everything up to that step is saved."""
    steps = Steps()

    def after(taken: int) -> None:
        if taken == step:
            os.kill(os.getpid(), signal.SIGTERM)

    ended = run_work(lambda: train(folder, steps, after=after))
    failure = fault(ended, (ended.code,)) or unheeded(folder, ended, step)
    return failure or lost(folder, reference.weights, steps.taken, step)


def _signalled(folder: Path, reference: Reference, seconds: float, number: int) -> str | None:
    """A signal at any time, also before and after the loop."""
    steps = Steps()
    child = Child(lambda: train(folder, steps))
    time.sleep(seconds)
    child.kill(number)
    ended = child.end()
    failure = _out_of_place(folder, ended, steps) if number == signal.SIGTERM else None
    allowed = (0, 143, -number) if number == signal.SIGTERM else (0, -number)
    return fault(ended, allowed) or failure or lost(folder, reference.weights, steps.taken)


def _out_of_place(folder: Path, ended: Ended, steps: Steps) -> str | None:
    """Why an end by SIGTERM is not acceptable, given how many steps were taken."""
    if ended.code == 143 and steps.taken:
        return unheeded(folder, ended, steps.taken)
    if ended.code == -signal.SIGTERM and 0 < steps.taken < RECIPE.steps:
        return f"dies of SIGTERM in step {steps.taken}"
    if ended.code == 0 and steps.taken < RECIPE.steps:
        return f"ends with 0 after SIGTERM in step {steps.taken}"
    return None
