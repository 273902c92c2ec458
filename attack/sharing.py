"""Eight threads with one model, and two processes with one folder."""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from attack.subject import data, train, weights
from attack.trial import Child, Tally, fault, run_work
from skipstone import PCODE, RNN, load

THREADS = 8


def attack_with_threads(trials: int, seed: int) -> Tally:
    """Rollouts, losses, saving and loading in threads are what they are alone."""
    torch.manual_seed(seed)
    tally, sequences = Tally(), data()
    for number in range(trials):
        model = (PCODE, RNN)[number % 2].for_data(sequences, hidden=8)
        contexts = [sequences[row : row + 2].head(4) for row in range(THREADS)]

        def use(row: int, model=model, contexts=contexts, number=number) -> torch.Tensor:
            folder = Path(f"model-{number}-{row}")
            model.save(folder)
            with torch.inference_mode():
                loss = load(folder).loss(sequences).total
                path = model.rollout(contexts[row], 9.0)
                return torch.cat([path.evaluate([5.0, 7.5, 9.0]).flatten(), loss.reshape(1)])

        alone = [use(row) for row in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(use, range(THREADS)))
        same = all(map(torch.equal, alone, together))
        tally.count(type(model).__name__, None if same else "threads disturb each other")
    return tally


def attack_with_sharing(trials: int, seed: int) -> Tally:
    """Two processes train in one folder: each ends well or in one line, with the same weights."""
    tally, chance, folder = Tally(), random.Random(seed), Path("run").absolute()
    run_work(lambda: train(folder))
    expected = weights(folder)
    for _ in range(trials):
        shutil.rmtree(folder)
        first = Child(lambda: _explained(folder))
        delay = chance.choice([0.0, chance.uniform(0.0, 2.0)])
        time.sleep(delay)
        second = Child(lambda: _explained(folder))
        ends = [first.end(), second.end()]
        failure = next((found for each in ends if (found := fault(each))), None)
        if failure is None and all(each.code for each in ends):
            failure = "neither trains"
        if failure is None and weights(folder) != expected:
            failure = "ends with other weights"
        tally.count(f"second after {delay:.2f} s", failure)
    return tally


def _explained(folder: Path) -> None:
    from skipstone import InvalidInput

    try:
        train(folder)
    except InvalidInput as error:
        print(f"error: {error}")
        raise SystemExit(2) from None
