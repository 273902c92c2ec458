"""What is still to be trained, with the command for each and about how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from skipstone.errors import InvalidInput
from skipstone.models.config import ModelConfig
from skipstone.paper.grid import is_finished
from skipstone.paper.jobs import Job
from skipstone.paper.presets import AUTO
from skipstone.paper.trainings import trainings
from skipstone.training.recipe import Recipe
from skipstone.training.run import Run

_TASKS: tuple[str, ...] = (
    "lines",
    "circles",
    "billiards1d",
    "billiards2d",
    "pixels1d",
    "pixels2d",
    "shots",
)
_SECONDS = {
    "rnn": (56, 54, 71, 72, 168, 197, 112),
    "pcode": (25, 30, 42, 45, 130, 200, 70),
    "odernn": (119, 149, 326, 341, 284, 430, 345),
    "latentode": (119, 149, 326, 341, 284, 430, 345),
}
SECONDS: dict[str, dict[str, float]] = {
    model: dict[str, float](zip(_TASKS, each, strict=True)) for model, each in _SECONDS.items()
}
"""About how many seconds 1,000 training steps of 64 sequences take one core with 128 units: the
wall times of recorded runs. That of a PC-ODE is less since its fast path; the latent ODE is put
down as an ODE-RNN, since both spend their time in the solver."""

OTHERS = 100.0
"""The same for a task or model that is not listed."""


def list_missing(
    preset: str, tasks: Sequence[str], models: Sequence[str], seeds: int | None, folder: Path
) -> Iterator[str]:
    """Lines for a terminal: each training that is not finished in a folder, those that take longest
    first, and a line about all of them."""
    jobs = trainings(preset, tasks, models, seeds)
    waiting = [job for job in jobs if not is_finished(job, folder)]
    hours = {job.name: remaining_hours(job, folder) for job in waiting}
    for job in sorted(waiting, key=lambda job: -hours[job.name]):
        yield f"{hours[job.name]:6.2f} h  {_state(job, folder):<15}  {job.command} --runs {folder}"
    text = f"{len(jobs) - len(waiting)} of {len(jobs)} trainings are finished in {folder}"
    if waiting:
        text += f"; the others take about {sum(hours.values()):.2g} core-hours"
    yield f"{text}."


def training_hours(job: Job) -> float:
    """About how many hours a training takes one core: measured for each model and task, in
    proportion to steps, batch size and observations, and less than that to units."""
    options, recipe = job.model_options, job.recipe
    usual = SECONDS.get(job.model, {}).get(job.task, OTHERS)
    # At the usual sizes, about a third of a step does not depend on the number of units.
    size = (1 + 2 * options.get("hidden", ModelConfig.hidden) / ModelConfig.hidden) / 3
    batch = recipe.batch_size / Recipe.batch_size
    hours = usual / 3600 * recipe.steps / 1000 * batch * size * job.finer
    if options.get("tolerance") == AUTO:
        kept = {name: value for name, value in job.options.items() if name == "hidden"}
        hours += training_hours(replace(job, model="rnn", options=kept))
    return hours


def remaining_hours(job: Job, folder: Path) -> float:
    """The same for what is left of a training."""
    rows = Run(folder / job.name).metrics
    done = rows[-1]["step"] / job.recipe.steps if rows else 0.0
    # Steps of a finished run with other settings are no part of this one.
    return training_hours(job) * (1 - done if done < 1 else 1.0)


def _state(job: Job, folder: Path) -> str:
    """How far a training is that is not finished."""
    run = Run(folder / job.name)
    try:
        if not run.folder.is_dir():
            return "missing"
        if not job.describes(run.config):
            return "other settings"
        if run.finished:
            return "not evaluated"
        return f"at step {run.metrics[-1]['step']:.0f}" if run.metrics else "begun"
    except InvalidInput:
        return "unreadable"
