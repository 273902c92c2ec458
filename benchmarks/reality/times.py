"""How long a rollout takes, all peers of a data set in turns.

    python -m benchmarks.reality.times

A trial cannot measure this: what else the machine did at that hour would count. Here the trained
models of one data set take turns in one process, and whatever disturbs one disturbs all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.measure import Spread, interleave
from benchmarks.reality.peers import LARGE_STEPS, NAIVE, peers_of
from benchmarks.reality.problem import MissingData, Problem
from benchmarks.reality.problems import PROBLEMS, load_parts
from benchmarks.reality.run import DEFAULT_CUBE
from benchmarks.reality.trial import Trial
from skipstone import Sequences, load
from skipstone.evaluation.rollouts import predict
from skipstone.models.base import Model
from skipstone.models.time_aware import TimeAware
from skipstone.records import write_json
from skipstone.training.run import Run, provenance

ROUNDS, TURN_SECONDS = 9, 0.2
"""Turns of each contender, and how long one is."""

ROWS = (1, 64)
"""Trajectories that are rolled out together."""


def contenders(problem: Problem, runs: Path) -> dict[str, tuple[Model[Any], float | None]]:
    """Trained models by the name of their forecasts, with the step that they take."""
    found: dict[str, tuple[Model[Any], float | None]] = {}
    for peer in peers_of(problem):
        folder = runs / Trial(problem.name, peer, 0, "steps").name / "training"
        if peer == NAIVE or not Run(folder).finished:
            continue
        model = load(folder)
        found[model.title] = (model, None)
        if isinstance(model, TimeAware):
            unit = model.config.time_unit
            found |= {f"{model.title}, steps of {n}": (model, n * unit) for n in LARGE_STEPS}
    return found


def rollout_seconds(
    models: dict[str, tuple[Model[Any], float | None]], test: Sequences, rows: int
) -> dict[str, Spread]:
    """Seconds of a rollout of so many trajectories, read at all their observations."""
    batch = test[torch.arange(rows) % len(test)]

    def run(model: Model[Any], step: float | None) -> Callable[[], None]:
        @torch.inference_mode()
        def once() -> None:
            predict(model, batch, step)

        return once

    runs = {name: run(*each) for name, each in models.items()}
    return {name: Spread.of(each) for name, each in interleave(runs, ROUNDS, TURN_SECONDS).items()}


def main(
    data: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PROBLEMS)}.")] = None,
    cube: Annotated[Path, typer.Option(help="Table of cube tosses.")] = DEFAULT_CUBE,
    results: Annotated[Path, typer.Option(help="Folder of JSON.")] = Path("results/reality"),
    runs: Annotated[Path, typer.Option(help="Folder of trainings.")] = Path("runs/reality"),
) -> None:
    """Time the rollouts of all trained models on one thread."""
    torch.set_num_threads(1)
    for name in data or PROBLEMS:
        models = contenders(PROBLEMS[name], runs)
        if not models:
            continue
        try:
            test = load_parts(PROBLEMS[name], cube, runs / "data").test
        except MissingData as error:
            print(error)
            continue
        content: dict[str, Any] = {"data": name, **provenance(), "rows": {}}
        for rows in ROWS:
            spreads = rollout_seconds(models, test, rows)
            content["rows"][str(rows)] = {title: vars(each) for title, each in spreads.items()}
        write_json(results / "times" / f"{name}.json", content)
        alone = content["rows"][str(ROWS[0])]
        print(name, {title: f"{1e3 * each['median']:.1f} ms" for title, each in alone.items()})


if __name__ == "__main__":
    typer.run(main)
