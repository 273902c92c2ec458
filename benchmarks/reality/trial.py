"""One trial: train one peer on one data set with one seed, and measure its forecasts.

    python -m benchmarks.reality.trial cube pcode 0 steps --cube cube_tosses.parquet

A trial is one process on one thread. A stopped one goes on from its last checkpoint, and what it
found is one JSON file.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from benchmarks.reality.peers import KEPT, LARGE_STEPS, NAIVE, build
from benchmarks.reality.problem import MissingData, Parts, Problem
from benchmarks.reality.problems import PROBLEMS, load_parts
from benchmarks.report import read_json
from skipstone import Recipe, Sequences, fit, load
from skipstone.console import short_number
from skipstone.evaluation.residuals import naive_forecasts, residuals_of
from skipstone.evaluation.rollouts import predict
from skipstone.models.base import Model
from skipstone.models.storage import CONFIG
from skipstone.models.time_aware import TimeAware
from skipstone.records import write_json
from skipstone.training.objective import Objective
from skipstone.training.recipe import OPTIMIZERS
from skipstone.training.run import provenance

BUDGETS = ("steps", "seconds")
"""What all peers of a table have the same of."""

BINS = 8
"""Of elapsed time, by which errors are kept for figures."""

PILOT, FEWEST_TIMED = 0.1, 8
"""Share of a budget of seconds, and steps at least, that a copy is trained for to see how many
steps fit. The later half counts: a PC-ODE's first steps take nearly twice as long as later ones,
since its segments are still short."""

VALIDATIONS = 8
"""In the course of a training."""

FEWEST_STEPS = 20
"""However slow a peer is."""

Forecast = Callable[[Sequences], torch.Tensor]


@dataclass(frozen=True)
class Trial:
    """Which peer, on what, with which seed and budget."""

    data: str
    peer: str
    seed: int
    budget: str

    @property
    def name(self) -> str:
        """Of its file and its folder."""
        return f"{self.data}-{self.peer}-{self.budget}-seed{self.seed}"

    @property
    def keeps_model(self) -> bool:
        """Whether its model is recorded, too."""
        return self.peer in KEPT and self.seed == 0 and self.budget == "steps"

    def model_folder(self, results: Path) -> Path:
        """Where its model is recorded."""
        return results / "models" / self.name

    @property
    def problem(self) -> Problem:
        """Its data set."""
        return PROBLEMS[self.data]

    def settings(self) -> dict[str, Any]:
        """What it is done with: if that has changed, it has to be done again."""
        problem = self.problem
        names = ("num_context", "horizon", "hidden", "batch_size", "noise", "scale_changes")
        found = {name: getattr(problem, name) for name in names}
        if self.peer == "pcode":
            found |= {"target_step": problem.target_step, "max_step": problem.max_step}
        return {**found, self.budget: getattr(problem, self.budget)}


def measure(trial: Trial, parts: Parts, run: Path) -> dict[str, Any]:
    """Train and measure; everything that is written down of a trial."""
    problem, began = trial.problem, time.perf_counter()
    about = {**vars(trial), "settings": trial.settings(), "test": len(parts.test), **provenance()}
    count = problem.num_context
    if trial.peer == NAIVE:
        scale = spread_of(parts.train)
        found = [
            {"name": name, **errors_of(forecast, parts.test, problem, scale), "updates": 0.0}
            for name, forecast in naive_forecasts(count).items()
        ]
        return {**about, "steps": 0, "training_seconds": 0.0, "forecasts": found}
    model, steps, seconds = train(trial, parts, run)
    scale, forecasts = spread_of(parts.train), []
    steps_taken: list[int | None] = [None]
    steps_taken += list(LARGE_STEPS) if isinstance(model, TimeAware) else []
    for step in steps_taken:
        length = None if step is None else step * model.config.time_unit
        forecast = Recording(model, length)
        errors = errors_of(forecast, parts.test, problem, scale)
        name = model.title + ("" if step is None else f", steps of {step}")
        forecasts.append({"name": name, **errors, "step": step, **forecast.cost()})
    return {
        **about,
        "steps": steps,
        "training_seconds": seconds,
        "weights": sum(weight.numel() for weight in model.parameters()),
        "forecasts": forecasts,
        "seconds": round(time.perf_counter() - began, 1),
    }


class Recording:
    """Forecasts of a model, with a record of what they cost."""

    def __init__(self, model: Model[Any], step: float | None):
        self._model, self._step = model, step
        self._updates: list[torch.Tensor] = []
        self._evaluations: list[torch.Tensor] = []

    def __call__(self, batch: Sequences) -> torch.Tensor:
        path, predicted = predict(self._model, batch, self._step)
        self._updates.append(path.num_updates)
        self._evaluations.append(path.num_evaluations)
        return predicted

    def cost(self) -> dict[str, float]:
        """Updates, and evaluations of an ODE's right-hand side, per forecast."""
        return {
            "updates": float(torch.cat(self._updates).double().mean()),
            "evaluations": float(torch.cat(self._evaluations).double().mean()),
        }


def train(trial: Trial, parts: Parts, run: Path) -> tuple[Model[Any], int, float]:
    """The trained model, the steps that its budget allowed, and the seconds that they took."""
    problem = trial.problem
    torch.manual_seed(trial.seed)
    model = build(problem, trial.peer, parts.train)
    plan, settings = run / "plan.json", trial.settings()
    known = read_json(plan) if plan.is_file() else {}
    changed = known.get("settings") != settings
    if changed:
        # Decided once, so that a stopped trial goes on as it began.
        known = {"settings": settings, "steps": allowed_steps(trial, model, parts)}
        write_json(plan, known)
    done = fit(
        model,
        parts.train,
        parts.validation,
        folder=run / "training",
        horizon=problem.horizon,
        recipe=recipe_of(problem, known["steps"]),
        seed=trial.seed,
        overwrite=changed,
        device="cpu",
        progress=False,
    )
    return model.eval(), known["steps"], float(done.result["wall_seconds"])


def recipe_of(problem: Problem, steps: int) -> Recipe:
    """The same for every peer."""
    return Recipe(
        steps=steps,
        batch_size=problem.batch_size,
        noise=problem.noise,
        validate_every=max(1, steps // VALIDATIONS),
        checkpoint_every=max(1, steps // VALIDATIONS),
    )


def allowed_steps(trial: Trial, model: Model[Any], parts: Parts) -> int:
    """Training steps of a budget; in seconds, as many as fit by the time of a copy's."""
    problem = trial.problem
    if trial.budget == "steps":
        return problem.steps
    window = None if problem.horizon is None else problem.num_context + problem.horizon
    objective = Objective(parts.train, recipe_of(problem, problem.steps), trial.seed, window)
    seconds = step_seconds(copy.deepcopy(model), objective, PILOT * problem.seconds)
    return max(FEWEST_STEPS, round(problem.seconds / seconds))


def step_seconds(model: Model[Any], objective: Objective, seconds: float) -> float:
    """Processor time of a training step, from training a model for so long: what else the machine
    does at that hour does not count."""
    recipe = objective.recipe
    optimizer = OPTIMIZERS[recipe.optimizer](model.parameters(), lr=recipe.learning_rate)
    took: list[float] = []
    while len(took) < FEWEST_TIMED or sum(took) < seconds:
        began = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate_at(len(took))
        losses = objective.losses(model, len(took))
        optimizer.zero_grad()
        losses.total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clip)
        optimizer.step()
        model.adapt(losses)
        took.append(time.process_time() - began)
    return float(np.median(took[len(took) // 2 :]))


def spread_of(train: Sequences) -> np.ndarray:
    """Standard deviation of each feature in the training data: what errors are in units of."""
    values = train.values[train.mask].double()
    known = ~values.isnan()
    mean = values.nan_to_num().sum(0) / known.sum(0)
    square = (values - mean).nan_to_num().square().sum(0) / known.sum(0)
    return square.sqrt().clamp(min=1e-12).numpy()


def errors_of(
    forecast: Forecast, test: Sequences, problem: Problem, scale: np.ndarray
) -> dict[str, Any]:
    """Errors over all observations after the context: in scaled units, in the problem's own, and
    by elapsed time. A forecast that is not finite somewhere has none: JSON has no infinity."""
    count = problem.num_context
    found = residuals_of(forecast, test, count)
    if np.isinf(found.errors).any():
        own = dict.fromkeys(problem.distances)
        return {"error": None, "own": own, "elapsed": [], "by_elapsed": []}
    known = np.isfinite(found.errors).all(axis=2)
    apart, elapsed = found.errors[known].astype(np.float64), found.elapsed[known]
    observed = test.values[:, count:].numpy()[known].astype(np.float64)
    squares = (apart / scale) ** 2
    own = {
        name: distance(observed + apart, observed) for name, distance in problem.distances.items()
    }
    main = next(iter(own.values()), np.sqrt(squares.mean(axis=1)))
    edges = np.unique(np.quantile(elapsed, np.arange(1, BINS + 1) / BINS, method="inverted_cdf"))
    bins = np.searchsorted(edges, elapsed)
    return {
        "error": float(np.sqrt(squares.mean())),
        "own": {name: float(values.mean()) for name, values in own.items()},
        "elapsed": edges.tolist(),
        "by_elapsed": [float(main[bins == each].mean()) for each in range(len(edges))],
    }


def run_trial(trial: Trial, results: Path, runs: Path, file: Path | None) -> dict[str, Any]:
    """Do a trial unless it is done, and write its file."""
    path = results / "trials" / f"{trial.name}.json"
    if is_done(trial, results):
        return read_json(path)
    parts = load_parts(trial.problem, file, runs / "data")
    content = measure(trial, parts, runs / trial.name)
    if trial.keeps_model:
        load(runs / trial.name / "training").save(trial.model_folder(results))
    write_json(path, content)
    return content


def is_done(trial: Trial, results: Path) -> bool:
    """Whether a trial's file is there, made with the settings of today, and its model if it is one
    to record."""
    path = results / "trials" / f"{trial.name}.json"
    if trial.keeps_model and not (trial.model_folder(results) / CONFIG).is_file():
        return False
    return path.is_file() and read_json(path)["settings"] == trial.settings()


def main(
    data: str,
    peer: str,
    seed: int,
    budget: str,
    results: Annotated[Path, typer.Option(help="Folder of JSON files.")] = Path("results/reality"),
    runs: Annotated[Path, typer.Option(help="Folder of trainings.")] = Path("runs/reality"),
    cube: Annotated[Path | None, typer.Option(help="Table of cube tosses.")] = None,
) -> None:
    """Do one trial on one thread."""
    torch.set_num_threads(1)
    try:
        content = run_trial(Trial(data, peer, seed, budget), results, runs, cube)
    except MissingData as error:
        print(error)
        raise typer.Exit(1) from None
    for each in content["forecasts"]:
        errors = {"error": each["error"], **each["own"]}
        told = ", ".join(f"{name} {short_number(value)}" for name, value in errors.items())
        print(
            f"{each['name']}: {told}; {each['updates']:.3g} updates; "
            f"{content['steps']} steps in {content['training_seconds']:.0f} s"
        )


if __name__ == "__main__":
    typer.run(main)
