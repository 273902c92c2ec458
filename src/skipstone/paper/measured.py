"""`Measured`: a trained run with its numbers, which is all that tables and figures read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skipstone.console import Progress, silent
from skipstone.errors import InvalidInput
from skipstone.models.registry import find_kind, title_of
from skipstone.paper.jobs import measure_run, task_data, varied
from skipstone.paper.schemas import ReportedRecord, require_record
from skipstone.training.run import Run, list_runs


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
        return self.run.config["data"]["options"]["spacing"]

    @property
    def model(self) -> str:
        """The model, by the name that people read."""
        return title_of(find_kind(self.run.config["model"]["kind"]))

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
        """What differs from the preset: studies vary something on purpose."""
        return varied(self.run.config["data"]["job"])

    @property
    def options(self) -> dict[str, Any]:
        """Options of the model that differ from the preset's."""
        return self.run.config["data"]["job"]["options"]

    @property
    def variance(self) -> float:
        """Square of the model's scale: what turns a validation error into the data's units,
        exactly where features have the same scale."""
        scale = self.run.config["model"].get("scale", [1.0])
        return sum(each**2 for each in scale) / len(scale)

    @property
    def training(self) -> list[dict[str, float]]:
        """The validations of its training, in order."""
        return self.run.metrics


def measure_runs(
    runs: Sequence[Run], progress: Progress = silent, timing: bool = True
) -> list[Measured]:
    """Evaluate runs, one after the other, on their tasks' test data.

    Of runs that differ only in their seed the first is timed: the others take as long. A run whose
    weights are not kept is quoted: its numbers are those of the end of its training.
    """
    measured, data, timed = [], {}, set()
    for index, run in enumerate(runs):
        progress("evaluating", index / len(runs))
        if not run.has_weights:
            measured.append(Measured(run, run.evaluation))
            continue
        key = (run.config["data"]["task"], *run.config["data"]["options"].items())
        if key not in data:
            # One task at a time: all of them together would not fit in a small memory.
            data = {key: task_data(run)}
        kind = (key, json.dumps(run.config["model"], sort_keys=True))
        measured.append(Measured(run, measure_run(run, data[key], timing and kind not in timed)))
        timed.add(kind)
    progress("evaluating", 1.0)
    return measured


def finished_runs(folder: Path) -> list[Run]:
    """The finished runs on tasks in a folder, sorted so that those of a task are neighbours."""
    runs = [run for run in list_runs(folder) if run.finished and "task" in run.config["data"]]
    runs = [run for run in runs if run.has_weights or run.evaluation]
    if not runs:
        raise InvalidInput(
            f"there must be finished runs to report on; {folder.resolve()} holds none. Run this in "
            "a clone of the repository, which has weights, or train your own: skipstone reproduce "
            "--from-scratch"
        )
    for run in runs:
        require_record(run, ReportedRecord)
    return sorted(runs, key=lambda run: (str(run.config["data"]), run.folder.name))
