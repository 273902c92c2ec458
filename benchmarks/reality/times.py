"""How long a rollout takes, all peers of a data set in turns.

    python -m benchmarks.reality.times

A trial cannot measure this: what else the machine did at that hour would count. Here the models of
one data set take turns in one process, and whatever disturbs one disturbs all. It needs the
recorded trials and nothing of `runs/` but its data, which are made again if they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.measure import Spread, interleave
from benchmarks.reality.peers import IN_TORCH, LARGE_STEPS, NAIVE, OURS, build, peers_of
from benchmarks.reality.problem import MissingData, Problem
from benchmarks.reality.problems import PROBLEMS, load_parts
from benchmarks.reality.run import DEFAULT_CUBE
from benchmarks.reality.trial import Trial, is_done
from benchmarks.report import read_json
from skipstone import Sequences, load
from skipstone.evaluation.rollouts import predict
from skipstone.models import fast
from skipstone.models.base import Model
from skipstone.models.time_aware import TimeAware
from skipstone.records import write_json
from skipstone.training.run import provenance

ROUNDS, TURN_SECONDS = 9, 0.2
"""Turns of each contender, and how long one is."""

ROWS = (1, 64)
"""Trajectories that are rolled out together."""


def recorded(problem: Problem, results: Path) -> list[Trial]:
    """The trials whose forecasts are timed."""
    trials = [Trial(problem.name, peer, 0, "steps") for peer in peers_of(problem) if peer != NAIVE]
    return [trial for trial in trials if is_done(trial, results)]


def contenders(
    trials: Sequence[Trial], train: Sequences, results: Path
) -> dict[str, tuple[Model[Any], float | None]]:
    """Models by the name of their forecasts, with the step that they take. Untrained ones stand in
    for those whose weights change no operation."""
    found: dict[str, tuple[Model[Any], float | None]] = {}
    for trial in trials:
        if trial.keeps_model:
            model = load(trial.model_folder(results))
        else:
            model = build(trial.problem, trial.peer, train).eval()
        found[model.title] = (model, None)
        if isinstance(model, TimeAware):
            unit = model.config.time_unit
            found |= {f"{model.title}, steps of {n}": (model, n * unit) for n in LARGE_STEPS}
    return found


def lost_names(path: Path, models: Mapping[str, Any]) -> list[str]:
    """Forecasts that a file has the times of, and that cannot be timed again."""
    known = read_json(path)["rows"][str(ROWS[0])] if path.is_file() else {}
    return sorted(set(known) - {*models, IN_TORCH})


def rollout_seconds(
    models: dict[str, tuple[Model[Any], float | None]], test: Sequences, rows: int
) -> dict[str, Spread]:
    """Seconds of a rollout of so many trajectories, read at all their observations; of the PC-ODE
    with and without its C++."""
    batch = test[torch.arange(rows) % len(test)]

    def run(model: Model[Any], step: float | None) -> Callable[[], None]:
        @torch.inference_mode()
        def once() -> None:
            predict(model, batch, step)

        return once

    def in_torch() -> None:
        with fast.readable_path():
            runs[OURS]()

    runs = {name: run(*each) for name, each in models.items()}
    if OURS in runs:
        runs[IN_TORCH] = in_torch
    return {name: Spread.of(each) for name, each in interleave(runs, ROUNDS, TURN_SECONDS).items()}


def main(
    data: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PROBLEMS)}.")] = None,
    cube: Annotated[Path, typer.Option(help="Table of cube tosses.")] = DEFAULT_CUBE,
    results: Annotated[Path, typer.Option(help="Folder of JSON.")] = Path("results/reality"),
    runs: Annotated[Path, typer.Option(help="Folder of trainings.")] = Path("runs/reality"),
) -> None:
    """Time the rollouts of all recorded models on one thread."""
    torch.set_num_threads(1)
    for name in data or PROBLEMS:
        trials = recorded(PROBLEMS[name], results)
        if not trials:
            continue
        try:
            train, _, test = load_parts(PROBLEMS[name], cube, runs / "data")
        except MissingData as error:
            print(error)
            continue
        models = contenders(trials, train, results)
        path = results / "times" / f"{name}.json"
        if lost := lost_names(path, models):
            print(f"{name}: the times stay; first do again the trial of {', '.join(lost)}.")
            continue
        content: dict[str, Any] = {"data": name, **provenance(), "rows": {}}
        for rows in ROWS:
            spreads = rollout_seconds(models, test, rows)
            content["rows"][str(rows)] = {title: vars(each) for title, each in spreads.items()}
        write_json(path, content)
        alone = content["rows"][str(ROWS[0])]
        print(name, {title: f"{1e3 * each['median']:.1f} ms" for title, each in alone.items()})


if __name__ == "__main__":
    typer.run(main)
