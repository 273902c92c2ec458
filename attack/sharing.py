"""Eight threads with one model, and two processes with one folder."""

from __future__ import annotations

import json
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from attack.subject import RECIPE, Steps, data, train, weights
from attack.trial import Child, Ended, Tally, explained, fault, run_work
from skipstone import PCODE, RNN, load

THREADS = 8
SEEDS = (0, 1)
"""Of the two trainings, which differ in data and weights."""

PATIENCE = 60.0
"""Seconds that the first training waits for the second."""


def attack_with_threads(tally: Tally, trials: int, seed: int) -> None:
    """Rollouts, losses, saving and loading in threads are what they are alone."""
    for number in range(trials):
        ended = run_work(lambda number=number: _together(seed + number, number))
        failure = fault(ended, (0, 3))
        if failure is None and ended.code == 3:
            failure = "threads disturb each other"
        tally.count(f"{THREADS} threads, {number}", failure)


def _together(seed: int, number: int) -> None:
    """End with 3 if eight threads find something else than one after the other."""
    torch.manual_seed(seed)
    sequences = data()
    model = (PCODE, RNN)[number % 2].for_data(sequences, hidden=8)
    contexts = [sequences[row : row + 2].head(4) for row in range(THREADS)]

    def use(row: int) -> torch.Tensor:
        folder = Path(f"model-{number}-{row}")
        model.save(folder)
        with torch.inference_mode():
            loss = load(folder).loss(sequences).total
            path = model.rollout(contexts[row], 9.0)
            return torch.cat([path.evaluate([5.0, 7.5, 9.0]).flatten(), loss.reshape(1)])

    alone = [use(row) for row in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(use, range(THREADS)))
    if not all(map(torch.equal, alone, together)):
        raise SystemExit(3)


def attack_with_sharing(tally: Tally, trials: int, seed: int) -> None:
    """Two processes train two things in one folder: one of them does, and all of it."""
    chance, folder = random.Random(seed), Path("run").absolute()
    expected = []
    for each in SEEDS:
        run_work(lambda each=each: train(folder, seed=each))
        expected.append(weights(folder))
        shutil.rmtree(folder, ignore_errors=True)
    if not all(expected) or expected[0] == expected[1]:
        raise RuntimeError("the two trainings must end, with different weights")
    for number in range(trials):
        overwrite = number // 2 % 2 == 1
        if number % 2 == 0:
            step = chance.randint(1, RECIPE.steps)
            trial, failure = f"second in step {step}", _overlap(folder, expected, step, overwrite)
        else:
            delay = chance.choice([0.0, chance.uniform(0.0, 1.0)])
            trial, failure = f"second after {delay:.2f} s", _race(folder, expected, delay)
        tally.count(f"{trial}{', to overwrite' if overwrite else ''}", failure)
        shutil.rmtree(folder, ignore_errors=True)


def _overlap(folder: Path, expected: list[str], step: int, overwrite: bool) -> str | None:
    """The second comes while the first is in a step, and is told who is there."""
    steps, go_on = Steps(), Steps()

    def wait(taken: int) -> None:
        until = time.monotonic() + PATIENCE
        while taken == step and not go_on.taken and time.monotonic() < until:
            time.sleep(0.005)

    first = Child(explained(lambda: train(folder, steps, seed=SEEDS[0], after=wait)))
    until = time.monotonic() + PATIENCE
    while steps.taken < step and time.monotonic() < until:
        time.sleep(0.005)
    second = run_work(explained(lambda: train(folder, seed=SEEDS[1], overwrite=overwrite)))
    go_on.take()
    ended = first.end()
    if failure := fault(ended, (0,)):
        return f"the first {failure}"
    if failure := fault(second, (2,)):
        return f"the second {failure}"
    if f"process {first.pid} " not in second.said:
        return f"the second is not told who is there, {second.last!r}"
    return _mixed(folder, expected, 0)


def _race(folder: Path, expected: list[str], delay: float) -> str | None:
    """They begin at about the same time: the folder is one's, and the other is refused."""
    works = [explained(lambda each=each: train(folder, seed=each)) for each in SEEDS]
    first = Child(works[0])
    time.sleep(delay)
    ends: list[Ended] = [Child(works[1]).end(), first.end()][::-1]
    for ended in ends:
        if failure := fault(ended):
            return failure
    codes = [ended.code for ended in ends]
    if sorted(codes) != [0, 2]:
        return "neither trains" if all(codes) else "both train in one folder"
    refused = ends[codes.index(2)]
    if not any(told in refused.said for told in ("only one process at a time", "holds a run with")):
        return f"is refused for another reason, {refused.last!r}"
    return _mixed(folder, expected, codes.index(0))


def _mixed(folder: Path, expected: list[str], winner: int) -> str | None:
    """Why a folder is not that of one training, whole."""
    if weights(folder) != expected[winner]:
        return f"the weights are not those of training {winner}"
    config = json.loads((folder / "config.json").read_bytes())
    if config["seed"] != SEEDS[winner]:
        return f"the config is not that of training {winner}"
    ended = run_work(explained(lambda: load(folder)))
    return fault(ended, (0,)) and f"the folder is mixed up: {ended.last}"
