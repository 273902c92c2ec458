"""Runs and examples that are written down, not trained: what figures have to show is known."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from skipstone.evaluation.validity import SHARES
from skipstone.models.registry import MODELS, title_of
from skipstone.models.storage import CONFIG, FORMAT, RESULT
from skipstone.paper.examples import FINE, Example, Prediction
from skipstone.paper.jobs import Job
from skipstone.paper.measured import Measured
from skipstone.paper.tasks import find_task, record, task_options
from skipstone.paper.tasks.base import CONTEXT
from skipstone.training.run import METRICS, Run

DONE = {"steps": 10, "wall_seconds": 90.0, "commit": "c0ffee", "weights_sha256": "00ff"}
"""The result of every run."""

KINDS = {title_of(model): name for name, model in MODELS.items()}


def about(value: float, width: float = 0.1) -> dict[str, float]:
    return {"value": value, "low": value * (1 - width), "high": value * (1 + width)}


def run_config(job: Job) -> dict[str, Any]:
    """What a run's configuration says, as far as figures and tables read it."""
    spacing = find_task(job.task).options.spacing / job.finer
    return {
        "format": FORMAT,
        "model": {"kind": job.model, "hidden": job.options.get("hidden", 128)},
        "recipe": asdict(job.recipe),
        "seed": job.seed,
        "data": {"task": job.task, "options": {"spacing": spacing}, "job": asdict(job)},
    }


def measured(
    folder: Path,
    model: str = "PC-ODE",
    task: str = "billiards1d",
    *,
    step: float = 4.0,
    mse: float = 1e-3,
    hidden: int = 128,
    seed: int = 0,
    finer: int = 1,
    steps: int | None = None,
    options: dict[str, Any] | None = None,
    scale: float = 1.0,
    training: tuple[tuple[int, float, float], ...] = ((100, 1.5, 1e-1), (200, 3.0, 1e-2)),
) -> Measured:
    """A run folder with the files that figures read, and its evaluation."""
    options = ({"hidden": hidden} if hidden != 128 else {}) | (options or {})
    kind = KINDS[model]
    job = Job(task=task, model=kind, seed=seed, finer=finer, steps=steps, options=options)
    folder = folder / job.name
    folder.mkdir(parents=True)
    config = run_config(job)
    config["model"]["scale"] = [scale]
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    (folder / RESULT).write_text(json.dumps(DONE), encoding="utf-8")
    with (folder / METRICS).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["step", "mean_step", "validation_error"])
        rows.writerows(training)
    return Measured(Run(folder), evaluation(model, step, mse, finer))


def evaluation(title: str, step: float, mse: float, finer: int) -> dict[str, Any]:
    constant = [(1.0, 1.0, 5 * mse), (8.0, 6.0, 50 * mse)]
    return {
        "num_trajectories": 10,
        "test_mse": about(mse / 10),
        "function_evaluations": about(0.0),
        "wall_times": [
            {"batch": 1, "seconds": about(0.004)},
            {"batch": 256, "seconds": about(0.256 / step)},
        ],
        "valid_times": [
            {"share": share, "time": about(100 * share), "lasting": about(share)}
            for share in SHARES
        ],
        "mean_step": about(step),
        "sample_mse": about(mse),
        "updates": about(40 * finer / step),
        "horizon_mse": [about(mse * ahead) for ahead in (0.5, 1.0, 1.5)],
        "constant_steps": [
            {"step": one, "mean_step": about(mean), "sample_mse": about(error)}
            for one, mean, error in constant
        ]
        if title == "PC-ODE"
        else [],
        "alignment": {
            "num_collisions": 80,
            "num_updates": 90,
            "recall": about(0.6),
            "precision": about(0.4),
            "random_recall": about(0.3),
            "random_precision": about(0.2),
        },
    }


def example(task: str, steps: dict[str, list[float]], observations: int = 12) -> Example:
    """A short trajectory whose predictions are the truth a little beside itself; `steps` are the
    times between a model's updates, in observations."""
    made = find_task(task)
    options = task_options(
        made,
        trajectories=1,
        spacing=made.options.spacing / FINE,
        observations=(observations - 1) * FINE + 1,
    )
    recording = record(made, options)
    moments = recording.times[0]
    track = recording.values[0].astype(np.float64)
    if made.scene(options).kind == "film":
        track = track / 255
    start = (CONTEXT - 1) * FINE
    predictions = {}
    for title, lengths in steps.items():
        after = made.options.spacing * np.cumsum([0.0, *lengths])
        values = track[start:] + 0.01
        predictions[title] = Prediction(moments[start:], values, moments[start] + after)
    return Example(
        task=task,
        scene=made.scene(options),
        times=moments[::FINE],
        values=track[::FINE],
        moments=moments,
        track=track,
        events=recording.events[0],
        predictions=predictions,
    )
