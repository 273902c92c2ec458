"""All trials, one process each: `make reality`, or some of them.

    python -m benchmarks.reality.run --cube cube_tosses.parquet
    python -m benchmarks.reality.run --data storms --data pool --peer pcode --peer rnn --seeds 1

What is finished is kept and never done again; a stopped trial goes on from its last checkpoint. So
it can be stopped at any time, and the same command continues.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.reality.peers import NAIVE, PEERS, peers_of
from benchmarks.reality.problems import PROBLEMS
from benchmarks.reality.trial import BUDGETS, PILOT, Trial, is_done
from benchmarks.report import read_json
from skipstone.signals import terminable

STEP_SECONDS, OBSERVATION_SECONDS = 0.008, 0.0009
"""A training step of the RNN on one thread takes about this, and this for each observation of a
window: to tell the hours before anything is known."""

START_SECONDS = 15.0
"""To start a process, load data and measure."""

DEFAULT_CUBE = Path("data/cube_tosses.parquet")
"""Where the table of cube tosses is looked for."""


def plan(
    data: Sequence[str] = (),
    peers: Sequence[str] = (),
    budgets: Sequence[str] = (),
    seeds: int = 3,
) -> list[Trial]:
    """The trials in their order: everything with the first seed comes first. Seconds are measured
    with one seed, since they vary more with the machine."""
    trials = []
    for seed in range(seeds):
        for budget in budgets or BUDGETS:
            for name in data or PROBLEMS:
                for peer in peers_of(PROBLEMS[name]):
                    wanted = not peers or peer in peers
                    if not wanted or seed >= _times(peer, name, budget):
                        continue
                    if peer == NAIVE and budget == "seconds":
                        continue
                    trials.append(Trial(name, peer, seed, budget))
    return trials


def _times(peer: str, name: str, budget: str) -> int:
    """How many seeds a peer is trained with."""
    if peer == NAIVE or budget == "seconds":
        return 1
    return min(PROBLEMS[name].seeds, PEERS[peer].seeds)


def expected_seconds(trial: Trial) -> float:
    """How long a trial will take, about."""
    if trial.peer == NAIVE:
        return START_SECONDS
    problem = trial.problem
    if trial.budget == "seconds":
        return START_SECONDS + (1 + PILOT) * problem.seconds
    window = problem.watched
    if problem.horizon is not None:
        window = problem.num_context + problem.horizon
    step = STEP_SECONDS + OBSERVATION_SECONDS * window
    return START_SECONDS + problem.steps * step * PEERS[trial.peer].cost


def remaining_hours(trials: Sequence[Trial], results: Path) -> float:
    """For what is left to do, at the pace of what is done."""
    done = [trial for trial in trials if is_done(trial, results) and trial.peer != NAIVE]
    found = [read_json(results / "trials" / f"{trial.name}.json") for trial in done]
    # Of a trial that was stopped, `seconds` are those of its last process.
    took = sum(max(each["seconds"], each["training_seconds"]) for each in found)
    pace = took / sum(map(expected_seconds, done)) if done else 1.0
    left = [trial for trial in trials if not is_done(trial, results)]
    return pace * sum(map(expected_seconds, left)) / 3600


def start(trial: Trial, results: Path, runs: Path, cube: Path) -> subprocess.Popen[bytes]:
    """A process for a trial, on one thread."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.reality.trial", trial.data]
    command += [trial.peer, str(trial.seed), trial.budget]
    command += ["--results", str(results), "--runs", str(runs), "--cube", str(cube)]
    return subprocess.Popen(command, env={**os.environ, **dict.fromkeys(names, "1")})


def work_through(
    trials: Sequence[Trial], results: Path, runs: Path, cube: Path, jobs: int
) -> list[Trial]:
    """Do all trials, `jobs` at a time; return those that failed."""
    waiting = [trial for trial in trials if not is_done(trial, results)]
    going: list[tuple[Trial, subprocess.Popen[bytes]]] = []
    failed: list[Trial] = []
    try:
        while waiting or going:
            while waiting and len(going) < jobs:
                trial = waiting.pop(0)
                print(f"{trial.name} ({remaining_hours(trials, results):.1f} h left)", flush=True)
                going.append((trial, start(trial, results, runs, cube)))
            time.sleep(0.2)
            for trial, process in [each for each in going if each[1].poll() is not None]:
                going.remove((trial, process))
                if process.returncode:
                    failed.append(trial)
    finally:
        for _, process in going:
            process.terminate()
        for _, process in going:
            process.wait()  # For its checkpoint.
    return failed


def main(
    data: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PROBLEMS)}.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help=f"{NAIVE}, {', '.join(PEERS)}.")] = None,
    budget: Annotated[list[str] | None, typer.Option(help=f"{', '.join(BUDGETS)}.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Of each trial with a budget of steps.")] = 3,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time, one thread each.")] = 1,
    cube: Annotated[Path, typer.Option(help="Table of cube tosses.")] = DEFAULT_CUBE,
    results: Annotated[Path, typer.Option(help="Folder of JSON.")] = Path("results/reality"),
    runs: Annotated[Path, typer.Option(help="Folder of trainings.")] = Path("runs/reality"),
    dry: Annotated[bool, typer.Option("--dry", help="Only say what there is to do.")] = False,
) -> None:
    """Do what is left of the comparison on real data."""
    for given, known in ((data, PROBLEMS), (peer, (NAIVE, *PEERS)), (budget, BUDGETS)):
        unknown = sorted(set(given or ()) - set(known))
        if unknown:
            raise typer.BadParameter(f"no {unknown[0]!r}; there are {', '.join(known)}.")
    trials = plan(data or (), peer or (), budget or (), seeds)
    if not cube.is_file() and any(trial.data == "cube" for trial in trials):
        print(
            f"{cube} is not here, so that cube tosses are left out; see benchmarks/reality/cube.py"
        )
        trials = [trial for trial in trials if trial.data != "cube"]
    left = [trial for trial in trials if not is_done(trial, results)]
    hours = remaining_hours(trials, results) / jobs
    print(f"{len(trials)} trials, {len(left)} to do, about {hours:.1f} hours", flush=True)
    if dry:
        return
    with terminable():  # Ended like by Ctrl-C: no trial goes on alone.
        failed = work_through(trials, results, runs, cube, jobs)
    if failed:
        print("failed: " + ", ".join(trial.name for trial in failed))
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
