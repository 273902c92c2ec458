"""What has to be trained for the paper's table and figures, and for the new ones."""

from __future__ import annotations

from collections.abc import Sequence

from skipstone.errors import require_number
from skipstone.models.pcode import PCODE
from skipstone.models.pcode_config import PCODEConfig
from skipstone.paper.jobs import Job, make_grid
from skipstone.paper.presets import preset_for
from skipstone.paper.published import TABLE
from skipstone.paper.tasks.registry import find_task
from skipstone.paper.tasks.shots import SHOTS

MODELS = ("rnn", "pcode", "odernn")
"""The paper's models."""

CAPACITY_TASK, CAPACITY_UNITS = "circles", (8, 16, 32, 64)
"""Sizes of the capacity study, besides the preset's own."""

SAMPLING_TASK, SAMPLING_FINER = "billiards1d", (1, 2, 4, 8)
"""The study of cost against sampling rate: how many times finer."""

SAMPLING_UNITS, SAMPLING_STEPS = 64, 1_500
"""What the longest sequences of that study can afford, and so what all of them get."""


def trainings(
    preset: str = "cpu",
    tasks: Sequence[str] = (),
    models: Sequence[str] = (),
    seeds: int = 1,
) -> list[Job]:
    """All jobs, or those of some tasks and models; each once, seeds 0 to `seeds - 1`."""
    require_number("seeds", seeds, 1, whole=True)
    known = [*TABLE, SHOTS.name]
    for task in tasks:
        find_task(task)
    tasks, models = tasks or known, models or MODELS
    jobs = make_grid(tasks, models, seeds=range(seeds), preset=preset)
    studies = _studies(preset, tasks, models)
    return list({job.name: job for job in [*jobs, *studies]}.values())


def _studies(preset: str, tasks: Sequence[str], models: Sequence[str]) -> list[Job]:
    jobs: list[Job] = []
    if CAPACITY_TASK in tasks and "pcode" in models:
        own = preset_for(preset, CAPACITY_TASK).options(PCODE).get("hidden", PCODEConfig.hidden)
        hidden = [units for units in CAPACITY_UNITS if units != own]
        jobs += make_grid([CAPACITY_TASK], ["pcode"], options={"hidden": hidden}, preset=preset)
    if SAMPLING_TASK in tasks:
        small = preset == "cpu"
        jobs += [
            Job(
                task=SAMPLING_TASK,
                model=model,
                preset=preset,
                steps=SAMPLING_STEPS if small else None,
                finer=finer,
                options={"hidden": SAMPLING_UNITS} if small else {},
            )
            for finer in SAMPLING_FINER
            for model in ("rnn", "pcode")
            if model in models
        ]
    return jobs
