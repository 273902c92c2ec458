"""How fast the tasks are made, beside a plain loop over trajectories.

    python benchmarks/simulate.py

The simulator's time is the best of three runs, everything else runs once.
"""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from skipstone import load_task
from skipstone.paper.tasks import TASKS, simulate
from skipstone.paper.tasks.balls import place_balls, random_directions
from skipstone.paper.tasks.billiards import RADIUS
from skipstone.paper.tasks.shots import (
    POCKET_RADIUS,
    play,
    pocket_distance,
    random_shots,
    random_tables,
)

sys.path.append(str(Path(__file__).parents[1] / "tests" / "paper" / "tasks"))
from plain_loop import simulate_one

TRAJECTORIES = 10_000
TIMES = 0.05 * np.arange(45)


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    def once() -> float:
        start = perf_counter()
        run()
        return perf_counter() - start

    return min(once() for _ in range(repeats))


def report(what: str, duration: float, note: str = "") -> None:
    print(f"{what:<58} {duration:8.2f} s  {note}", flush=True)


def simulator_beside_loop() -> None:
    rng = np.random.default_rng(0)
    positions = place_balls(rng, TRAJECTORIES, 2, 2)
    velocities = random_directions(rng, (TRAJECTORIES, 2), 2)

    def vectorised() -> None:
        simulate(positions, velocities, TIMES[-1]).state_at(TIMES)

    def loop() -> None:
        for start in zip(positions, velocities, strict=True):
            simulate_one(*start, TIMES, RADIUS)

    fast, slow = seconds(vectorised), seconds(loop, repeats=1)
    report("simulate and observe 10,000 × 45, two balls in 2-D", fast)
    report("the same by a plain loop over trajectories", slow, f"{slow / fast:.0f} times longer")


def planning() -> None:
    """Rank 1,000 random shots at each of 250 tables by what truly happens."""
    rng = np.random.default_rng(0)
    tables, shots = random_tables(rng, 250), random_shots(rng, 250_000).reshape(250, 1000, 2)

    def distances(some: slice) -> np.ndarray:
        motion = play(np.repeat(tables[some], 1000, axis=0), shots[some].reshape(-1, 2))
        return pocket_distance(motion).reshape(-1, 1000)

    start = perf_counter()
    # 25,000 shots at a time: memory stays small however many there are.
    found = np.concatenate([distances(slice(i, i + 25)) for i in range(0, 250, 25)])
    won = found < POCKET_RADIUS
    best = ", ".join(
        f"{count}: {won[:, :count].any(axis=1).mean():.1%}" for count in (10, 100, 1000)
    )
    report("play and score 250,000 shots", perf_counter() - start)
    print(f"    a random shot wins {won.mean():.1%}; the best of {best}")


def loading() -> None:
    for name in TASKS:
        making = seconds(lambda name=name: load_task(name, cache=False), repeats=1)
        report(f'load_task("{name}", cache=False)', making)
    with TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        for what in ("made and kept", "read from the cache"):
            report('load_task("pixels2d")', seconds(lambda: load_task("pixels2d"), 1), what)


def main() -> None:
    simulator_beside_loop()
    planning()
    loading()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of all of the above: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
