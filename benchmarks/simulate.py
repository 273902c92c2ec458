"""How fast the tasks are made, beside a plain loop over trajectories.

    python benchmarks/simulate.py

Each line is the best of three, except the loop, which runs once. Nothing is cached.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

import skipstone
from skipstone.tasks import TASKS, simulate
from skipstone.tasks.balls import place_balls, random_directions
from skipstone.tasks.billiards import RADIUS
from skipstone.tasks.shots import play, pocket_distance, random_shots, random_tables

sys.path.append(str(Path(__file__).parents[1] / "tests" / "tasks"))
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
    rng = np.random.default_rng(0)
    tables, shots = random_tables(rng, 25_000), random_shots(rng, 25_000)
    report(
        "score 250,000 shots, 25,000 at a time",
        10 * seconds(lambda: pocket_distance(play(tables, shots))),
    )


def main() -> None:
    simulator_beside_loop()
    planning()
    for name in TASKS:
        repeats = 1 if "pixels" in name else 3
        report(
            f'load_task("{name}", cache=False)',
            seconds(lambda name=name: skipstone.load_task(name, cache=False), repeats),
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of all of the above: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
