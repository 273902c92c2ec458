"""What has to be trained for the paper's table and figures, and for the new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skipstone.errors import require_number
from skipstone.models.pcode import PCODE
from skipstone.models.pcode_config import PCODEConfig
from skipstone.paper.jobs import Job, make_grid
from skipstone.paper.presets import preset_for
from skipstone.paper.published import TABLE
from skipstone.paper.tasks.registry import find_task
from skipstone.paper.tasks.shots import SHOTS

MODELS = ("rnn", "pcode", "odernn", "latentode")
"""The models compared: the paper's, and the latent ODE."""

PLANNED = ("rnn", "pcode", "odernn")
"""Those that are trained on `shots`: a latent ODE cannot be told of a shot after its context."""

REPEATED, REPEATED_TASKS = (
    ("rnn", "pcode"),
    ("lines", "circles", "billiards1d", "billiards2d", SHOTS.name),
)
"""What is trained with several seeds: the two models that matter most, where that is affordable."""

SEEDS = 3
"""Seeds of those; everything else has one."""

SECOND_POINTS: Mapping[str, Mapping[str, Any]] = {"billiards1d": {"target_step": 5.4}}
"""A second PC-ODE of a task with the same budget, for steps as long as the paper's."""

STUDY_STEPS, STUDY_UNITS = {"cpu": 1_500, "smoke": 30}, {"cpu": 64}
"""Budget of the studies of sampling rates and of the frontier, where it is not the preset's: many
trainings, some on long sequences, that are compared with each other alone."""

CAPACITY_TASKS, CAPACITY_UNITS = ("circles", "billiards1d"), (8, 16, 32, 64)
"""The study of capacity: sizes, besides the preset's own."""

CAPACITY_TOLERANCE = 1e-4
"""Tolerance of that study, in scaled units, where the preset trains for a mean step: a target would
hide what units buy."""

SAMPLING_TASK, SAMPLING_FINER = "billiards1d", (1, 2, 4, 8)
"""The study of cost against sampling rate: how many times finer."""

FRONTIER: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "lines": ("target_step", (1.5, 5.0)),
    "circles": ("target_step", (1.5, 5.0)),
    "billiards1d": ("target_step", (1.5, 2.2, 3.0, 6.0)),
    "billiards2d": ("target_step", (1.5, 2.2, 5.0)),
    SHOTS.name: ("target_step", (2.0, 5.0)),
}
"""The study of error against mean step: by task, what is varied besides the preset's own value."""


def trainings(
    preset: str = "cpu",
    tasks: Sequence[str] = (),
    models: Sequence[str] = (),
    seeds: int | None = None,
) -> list[Job]:
    """All jobs, or those of some tasks and models, each once. `seeds` of each model are 0 to
    `seeds - 1`; by default `SEEDS` for those that are repeated, and one for the others."""
    if seeds is not None:
        require_number("seeds", seeds, 1, whole=True)
    for task in tasks:
        find_task(task)
    jobs = [
        *_compared(preset, tasks or [*TABLE, SHOTS.name], models, seeds),
        *_studies(preset, tasks or [*TABLE, SHOTS.name], models or MODELS),
    ]
    return list({job.name: job for job in jobs}.values())


def _compared(
    preset: str, tasks: Sequence[str], models: Sequence[str], seeds: int | None
) -> Iterator[Job]:
    """Every model on every task, with the preset's own settings."""
    for task in tasks:
        for model in models or (PLANNED if task == SHOTS.name else MODELS):
            count = seeds or _usual_seeds(preset, task, model)
            yield from make_grid([task], [model], seeds=range(count), preset=preset)
            if model == "pcode" and task in SECOND_POINTS and _differs(preset, task):
                for seed in range(count):
                    options = SECOND_POINTS[task]
                    yield Job(task=task, model=model, preset=preset, seed=seed, options=options)


def _usual_seeds(preset: str, task: str, model: str) -> int:
    repeated = preset != "smoke" and model in REPEATED and task in REPEATED_TASKS
    return SEEDS if repeated else 1


def _differs(preset: str, task: str) -> bool:
    """Whether a preset trains for a mean step, and for another than the second point."""
    own = _own(preset, task)
    return "target_step" in own and own["target_step"] != SECOND_POINTS[task]["target_step"]


def _own(preset: str, task: str) -> dict[str, Any]:
    """A preset's options for the PC-ODE on a task."""
    return preset_for(preset, task).options(PCODE)


def _studies(preset: str, tasks: Sequence[str], models: Sequence[str]) -> Iterator[Job]:
    for task in tasks:
        if task in CAPACITY_TASKS and "pcode" in models:
            yield from _capacity(preset, task)
        if task == SAMPLING_TASK:
            for finer in SAMPLING_FINER:
                for model in REPEATED:
                    if model in models:
                        yield _small(preset, task, model, finer)
        # The paper's preset has a tolerance of its own making, and so one point.
        if task in FRONTIER and preset in STUDY_STEPS and set(REPEATED) <= set(models):
            yield from _frontier(preset, task)


def _capacity(preset: str, task: str) -> Iterator[Job]:
    """PC-ODEs of different sizes."""
    own = _own(preset, task)
    usual = own.get("hidden", PCODEConfig.hidden)
    if "target_step" in own:
        steps, sizes = STUDY_STEPS.get(preset), [*CAPACITY_UNITS, usual]
        fixed = {"target_step": None, "tolerance": CAPACITY_TOLERANCE}
    else:
        steps, sizes, fixed = None, [units for units in CAPACITY_UNITS if units != usual], {}
    for units in sizes:
        options = {"hidden": units, **fixed}
        yield Job(task=task, model="pcode", preset=preset, steps=steps, options=options)


def _frontier(preset: str, task: str) -> Iterator[Job]:
    """An RNN, and PC-ODEs that are trained for different mean steps."""
    yield _small(preset, task, "rnn")
    yield _small(preset, task, "pcode")
    name, values = FRONTIER[task]
    for value in values:
        if _own(preset, task).get(name) != value:
            yield _small(preset, task, "pcode", options={name: value})


def _small(
    preset: str, task: str, model: str, finer: int = 1, options: Mapping[str, Any] | None = None
) -> Job:
    """A job with the budget of the studies."""
    sizes = {"hidden": STUDY_UNITS[preset]} if preset in STUDY_UNITS else {}
    return Job(
        task=task,
        model=model,
        preset=preset,
        steps=STUDY_STEPS.get(preset),
        finer=finer,
        options={**sizes, **(options or {})},
    )
