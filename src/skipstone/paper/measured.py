"""`Measured`: a trained run with its numbers, which is all that tables and figures read."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skipstone.console import Progress, silent
from skipstone.errors import InvalidInput
from skipstone.models.pcode import PCODEConfig
from skipstone.paper.jobs import measure_run
from skipstone.paper.tasks.load import load_task
from skipstone.paper.tasks.registry import find_task
from skipstone.training.recipe import PRESETS, STEPPING, Preset, preset_for
from skipstone.training.report import read_evaluation
from skipstone.training.run import METRICS, TITLES, Run, list_runs


@dataclass(frozen=True)
class Measured:
    """A run, and what an evaluation on its task's test data gave."""

    run: Run
    """Where it is."""

    evaluation: dict[str, Any]
    """As `Evaluation.to_dict`."""

    @property
    def task(self) -> str:
        """What it was trained on."""
        return self.run.config["data"]["task"]

    @property
    def spacing(self) -> float:
        """Time between two observations."""
        return self.run.config["data"]["spacing"]

    @property
    def model(self) -> str:
        """The model, by the name that people read."""
        return TITLES[self.run.config["model"]["kind"]]

    @property
    def hidden(self) -> int:
        """Units of the model."""
        return self.run.config["model"]["hidden"]

    @property
    def seed(self) -> int:
        """Of weights, data order and exploration."""
        return self.run.config["seed"]

    @property
    def budget(self) -> tuple[int, int]:
        """Units, and gradient steps: what has to be the same in a fair comparison."""
        return self.hidden, self.run.config["recipe"]["steps"]

    @property
    def varied(self) -> set[str]:
        """What differs from a preset for its task: `hidden`, `steps`, `tolerance`, `reads`,
        `step_layers`, `whole_steps` or `finer`, or the whole `recipe`, if it is no preset's.
        Studies vary something on purpose."""
        config, task = self.run.config, find_task(self.task)
        presets = (preset_for(name, self.task) for name in PRESETS)
        recipe = self._schedule(config["recipe"])
        same = (preset for preset in presets if self._schedule(asdict(preset.recipe)) == recipe)
        preset = next(same, None)
        if preset is None:
            return {"recipe"}
        tolerance = config["tolerance"]
        differs = {
            "hidden": self.hidden != preset.hidden,
            "steps": config["recipe"]["steps"] != preset.recipe.steps,
            "tolerance": tolerance is not None and preset.tolerance not in ("auto", tolerance),
            **self._other_model(preset),
            "finer": not math.isclose(self.spacing, task.options.spacing),
        }
        return {name for name, different in differs.items() if different}

    def _other_model(self, preset: Preset) -> dict[str, bool]:
        """Which options of a PC-ODE are not the preset's; without a word of them it is the
        paper's."""
        model, paper = self.run.config["model"], PCODEConfig(dim=1)
        if model["kind"] != "pcode":
            return {}
        names = ("reads", "step_layers", "whole_steps")
        return {
            name: model.get(name, getattr(paper, name)) != getattr(preset, name) for name in names
        }

    def _schedule(self, recipe: dict[str, Any]) -> dict[str, Any]:
        """What of a recipe matters to this model, but for the number of steps."""
        kind = self.run.config["model"]["kind"]
        without = {"steps", *(STEPPING if kind != "pcode" else ())}
        # Runs from before there were own steps have none.
        recipe = {"own_steps": 0.0, **recipe}
        return {name: value for name, value in recipe.items() if name not in without}

    @property
    def training(self) -> list[dict[str, float]]:
        """The validations of its training, in order: a dictionary for each row of metrics.csv, with
        step, training_loss, mean_step, validation_error, learning_rate and wall_seconds."""
        with (self.run.folder / METRICS).open(encoding="utf-8", newline="") as file:
            return [{name: float(x) for name, x in row.items()} for row in csv.DictReader(file)]


def measure_runs(
    runs: Sequence[Run], progress: Progress = silent, timing: bool = True
) -> list[Measured]:
    """Evaluate runs, one after the other, on data that are made for it.

    Of runs that differ only in their seed the first is timed: the others take as long. A run whose
    weights are not kept is quoted: its numbers are those of the end of its training.
    """
    measured, data, timed = [], {}, set()
    for index, run in enumerate(runs):
        progress("evaluating", index / len(runs))
        if not run.has_weights:
            measured.append(Measured(run, read_evaluation(run)))
            continue
        described = dict(run.config["data"])
        key = tuple(described.items())
        if key not in data:
            # One task at a time: all of them together would not fit in a small memory.
            data = {key: load_task(described.pop("task"), **described)}
        kind = (key, *run.config["model"].items())
        measured.append(Measured(run, measure_run(run, data[key], timing and kind not in timed)))
        timed.add(kind)
    progress("evaluating", 1.0)
    return measured


def finished_runs(folder: Path) -> list[Run]:
    """The finished runs on tasks in a folder, sorted so that those of a task are neighbours."""
    runs = [run for run in list_runs(folder) if run.finished and "task" in run.config["data"]]
    runs = [run for run in runs if run.has_weights or read_evaluation(run)]
    if not runs:
        raise InvalidInput(
            f"there must be finished runs to report on; {folder.resolve()} holds none. Run this in "
            "a clone of the repository, which has weights, or train your own: skipstone reproduce "
            "--from-scratch"
        )
    return sorted(runs, key=lambda run: (str(run.config["data"]), run.folder.name))
