"""Damaged and hostile files: refused in one line, or used exactly as they were.

Half of the edits have right checksums, as a stranger's folder would: they get as far as schemas and
sizes. What is loaded of those must be what they say.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attack.edits import damaged, edited
from attack.seals import edited_archive, seal_folder
from attack.subject import CHECKPOINT, FIT, data, train, weights, write_log
from attack.trial import Ended, Tally, command, explained, fault, run_work
from attack.uses import load_as_it_says, load_as_it_was, make_lines, state_of

SECONDS = 60.0
"""After which a file makes something hang."""

TASK_RUN = Path("runs/lines-rnn-smoke-steps1-seed0")
TRAIN = ("train", "lines", "rnn", "--preset", "smoke", "--steps", "1", "--runs", "runs", "--quiet")
STOPPED = 6
"""The step at which a training is stopped whose checkpoint is damaged."""


class Files:
    """What is damaged: a finished training, a stopped one, one on a task, a table, and a cache."""

    def __init__(self) -> None:
        self.whole, self.half, self.log = Path("whole"), Path("half"), Path("log.csv")
        write_log(self.log)
        prepared = run_work(self._prepare)
        if prepared.code != 0 or not (self.half / CHECKPOINT).is_file():
            raise RuntimeError(f"cannot be prepared: {prepared.said}")
        self.weights, self.state = weights(self.whole), state_of(self.whole)
        self.cache = max(Path("cache").rglob("lines-*.npz"), key=lambda path: path.stat().st_mtime)
        self.lines = run_work(make_lines).last

    def _prepare(self) -> None:
        """In a process of its own, since some of it has threads."""
        from skipstone import calibrate, load

        train(self.whole)
        calibrate(load(self.whole), data()).save(self.whole)

        def stop(step: int) -> None:
            if step == STOPPED:
                os.kill(os.getpid(), 15)

        run_work(lambda: train(self.half, after=stop))
        for words in (("fit", "log.csv", *FIT, "--quiet", "--out", "table"), TRAIN):
            ended = run_work(command(*words))
            if ended.code != 0:
                raise RuntimeError(ended.said)
        make_lines()


def attack_with_damage(tally: Tally, trials: int, seed: int) -> None:
    """Damage a file, use it, and put it back."""
    chance, files = random.Random(seed), Files()
    acts: list[Callable[[Files, random.Random], tuple[str, Ended, str | None]]] = [
        *(_model, _model, _model, _model, _log, _checkpoint, _evaluation, _cache)
    ]
    for _ in range(trials):
        what, ended, failure = chance.choice(acts)(files, chance)
        if Path("exploded").exists():
            failure = "runs code of a file"
            Path("exploded").unlink()
        tally.count(what, failure, f"{what.partition(',')[0]}: exit code {ended.code}")


def _model(files: Files, chance: random.Random) -> tuple[str, Ended, str | None]:
    """A file of a finished training."""
    folder = Path("damaged")
    shutil.copytree(files.whole, folder)
    name = chance.choice(
        ["config.json", "weights.safetensors", "result.json", "calibration.safetensors"]
    )
    sealed = chance.random() < 0.5
    if sealed:
        how = edited(folder / name, chance, sealed=True)
        seal_folder(folder)
        ended = run_work(explained(lambda: load_as_it_says(folder)), SECONDS)
    else:
        how = damaged(folder / name, chance)
        ended = run_work(explained(lambda: load_as_it_was(folder, files.state)), SECONDS)
    failure = "loads another model" if ended.code == 3 else fault(ended)
    failure = failure or _unlisted(files)
    shutil.rmtree(folder)
    return f"{name}, {how}", ended, failure


def _unlisted(files: Files) -> str | None:
    """Why the list of runs does not survive one of them."""
    ended = run_work(command("runs", "."), SECONDS)
    failure = fault(ended, (0,))
    if failure is None and not any(
        line.split()[:1] == [str(files.whole)] and "12" in line.split()
        for line in ended.said.splitlines()
    ):
        failure = "the list of runs has lost another run"
    return failure


def _log(files: Files, chance: random.Random) -> tuple[str, Ended, str | None]:
    """A table to forecast from."""
    clean, out = files.log.read_bytes(), Path("next.csv")
    out.unlink(missing_ok=True)
    how = damaged(files.log, chance)
    words = ("--until", "+3", "--every", "1", "--out", str(out))
    ended = run_work(command("forecast", "table", "log.csv", *words), SECONDS)
    failure = fault(ended)
    if failure is None and ended.code == 0 and len(out.read_bytes().splitlines()) < 2:
        failure = "ends with 0 without a forecast"
    if failure is None and ended.code == 2 and out.exists():
        failure = "ends with 2 and a forecast"
    _put_back(files.log, clean)
    return f"log.csv, {how}", ended, failure


def _checkpoint(files: Files, chance: random.Random) -> tuple[str, Ended, str | None]:
    """The checkpoint of a stopped training, which is then resumed."""
    folder = Path("resumed")
    shutil.copytree(files.half, folder)
    sealed = chance.random() < 0.5
    path = folder / CHECKPOINT
    how = edited(path, chance, sealed=True) if sealed else damaged(path, chance)
    ended = run_work(explained(lambda: train(folder)), SECONDS)
    failure = fault(ended)
    if failure is None and ended.code == 0 and not sealed and weights(folder) != files.weights:
        failure = "ends with other weights"
    shutil.rmtree(folder)
    return f"{CHECKPOINT}, {how}", ended, failure


def _evaluation(files: Files, chance: random.Random) -> tuple[str, Ended, str | None]:
    """What was measured of a run."""
    path = TASK_RUN / "evaluation.json"
    clean = path.read_bytes()
    how = damaged(path, chance)
    ended = run_work(command(*TRAIN), SECONDS)
    failure = fault(ended) or _unlisted(files)
    _put_back(path, clean)
    return f"{path.name}, {how}", ended, failure


def _cache(files: Files, chance: random.Random) -> tuple[str, Ended, str | None]:
    """Kept data of a task: what is damaged is made anew."""
    clean = files.cache.read_bytes()
    sealed = chance.random() < 0.5
    if sealed:
        name = chance.choice(["times", "values", "keep", "events.times"])
        odd: list[Any] = [None, np.zeros(0), np.zeros((2, 2)), np.array("text"), np.ones(3, bool)]
        place = chance.randrange(len(odd))
        with np.load(files.cache) as file:
            name = name if name in file.files else "times"
        files.cache.write_bytes(edited_archive(clean, name, odd[place]))
        how = f"sealed, {name} as {odd[place]!r}"
    else:
        how = damaged(files.cache, chance)
    ended = run_work(explained(make_lines), SECONDS)
    failure = fault(ended)
    if failure is None and not sealed and (ended.code, ended.last) != (0, files.lines):
        failure = f"gives other data, {ended.last[:100]!r}"
    _put_back(files.cache, clean)
    return f"cache, {how}", ended, failure


def _put_back(path: Path, content: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)
