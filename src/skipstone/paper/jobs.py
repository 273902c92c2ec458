"""A job: one model on one task, from data to evaluated run."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from skipstone.errors import InvalidInput, require_number
from skipstone.evaluation import evaluate
from skipstone.files import write_json
from skipstone.models.base import Model
from skipstone.models.ode import ODEConfig
from skipstone.models.pcode import READS, PCODEConfig
from skipstone.paper.tasks.load import TaskData, load_task
from skipstone.paper.tasks.registry import find_task
from skipstone.training.fit import auto_tolerance, check_seed, check_tolerance, fit
from skipstone.training.recipe import Recipe, preset_for
from skipstone.training.report import EVALUATION
from skipstone.training.run import MODELS, Run


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train: everything that decides the numbers of a run on a task."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    preset: str = "cpu"
    """Budget and schedule: cpu, paper or smoke."""
    seed: int = 0
    """Of the initial weights, the order of the data and the exploration."""
    hidden: int | None = None
    """Units; None for the preset's."""
    tolerance: float | str | None = None
    """For the PC-ODE: a number, or auto; None for the preset's."""
    steps: int | None = None
    """Gradient steps; None for the preset's."""
    reads: str | None = None
    """For the PC-ODE: what its encoder is shown, values or motion; None for the preset's."""
    finer: int = 1
    """Observations in the place of each one of the task's, over the same stretch of time."""

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            near = difflib.get_close_matches(self.model.lower(), MODELS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidInput(
                f"model must be one of {', '.join(MODELS)}; got {self.model!r}.{hint}"
            )
        find_task(self.task)
        preset_for(self.preset, self.task)
        check_seed(self.seed)
        require_number("finer", self.finer, 1, whole=True)
        if self.reads is not None and self.model != "pcode":
            raise InvalidInput(
                f"reads is for a pcode; a model {self.model} is shown every observation. Leave it "
                "out."
            )
        if self.reads not in (None, *READS):
            raise InvalidInput(f"reads must be one of {', '.join(READS)}; got {self.reads!r}.")
        if self.chosen_tolerance != "auto":
            check_tolerance(self.chosen_tolerance)

    @property
    def recipe(self) -> Recipe:
        """The preset's, with the job's own number of steps if it has one."""
        recipe = preset_for(self.preset, self.task).recipe
        return recipe if self.steps is None else dataclasses.replace(recipe, steps=self.steps)

    @property
    def chosen_tolerance(self) -> float | str:
        """The job's own tolerance, or the preset's."""
        preset = preset_for(self.preset, self.task)
        return preset.tolerance if self.tolerance is None else self.tolerance

    @property
    def baseline(self) -> Job | None:
        """The RNN whose final loss is this job's tolerance; None if it needs none."""
        if self.model != "pcode" or self.chosen_tolerance != "auto":
            return None
        return dataclasses.replace(self, model="rnn", tolerance=None, reads=None)

    def load_data(self) -> TaskData:
        """The task's data, sampled as finely as the job asks for."""
        if self.finer == 1:
            return load_task(self.task)
        usual = find_task(self.task).options
        return load_task(
            self.task,
            spacing=usual.spacing / self.finer,
            observations=(usual.observations - 1) * self.finer + 1,
        )

    @property
    def name(self) -> str:
        """Name of the run's folder: what differs from the preset is in it."""
        parts = [self.task, self.model, self.preset]
        parts += [f"finer{self.finer}"] if self.finer != 1 else []
        parts += [f"hidden{self.hidden}"] if self.hidden is not None else []
        parts += [f"steps{self.steps}"] if self.steps is not None else []
        parts += [f"tolerance{self.tolerance}"] if self.tolerance is not None else []
        parts += [f"reads-{self.reads}"] if self.reads is not None else []
        return "-".join([*parts, f"seed{self.seed}"])


def run_job(job: Job, root: Path, **options: Any) -> Run:
    """Train and evaluate a job in its folder below `root`, from wherever it stands.

    `options` are those of `fit` that do not change the numbers: device, devices, precision,
    progress.
    """
    data = job.load_data()
    run = train_job(job, data, root, **options)
    if not (run.folder / EVALUATION).is_file():
        evaluate_run(run, data, timing=False)
    return run


def train_job(job: Job, data: TaskData, root: Path, **options: Any) -> Run:
    """Train a job; a PC-ODE whose tolerance is automatic trains its RNN first."""
    preset, kind = preset_for(job.preset, job.task), MODELS[job.model]
    sizes: dict[str, Any] = {
        "hidden": preset.hidden if job.hidden is None else job.hidden,
        "readout": preset.readout,
    }
    if issubclass(kind.Config, ODEConfig):
        sizes["solver"] = preset.solver
    if issubclass(kind.Config, PCODEConfig):
        reads = preset.reads if job.reads is None else job.reads
        sizes |= {
            "reads": reads,
            "step_layers": preset.step_layers,
            "whole_steps": preset.whole_steps,
            **_steps_in_time(job.finer),
        }
    torch.manual_seed(job.seed)
    model = kind.for_data(data.train, **sizes)
    tolerance = job.chosen_tolerance
    if job.baseline is not None:
        tolerance = auto_tolerance(train_job(job.baseline, data, root, **{**options, "devices": 1}))
    return fit(
        model,
        data.train,
        data.validation,
        folder=root / job.name,
        recipe=job.recipe,
        tolerance=tolerance,
        seed=job.seed,
        data={"task": job.task, **asdict(data.options)},
        **options,
    )


def _steps_in_time(finer: int) -> dict[str, float]:
    """Bounds of a PC-ODE's steps that are the same stretch of time however finely it is observed;
    its unit of time is the time between observations."""
    usual = PCODEConfig(dim=1)
    return {
        "min_step": usual.min_step * finer,
        "max_step": usual.max_step * finer,
        "velocity_scale": usual.velocity_scale / finer,
    }


def evaluate_run(run: Run, data: TaskData | None = None, timing: bool = True) -> dict[str, Any]:
    """Evaluate a run on its task's test data, and keep the numbers beside its weights."""
    described = dict(run.config["data"])
    if "task" not in described:
        raise InvalidInput(
            f"{run.folder} was not trained on a task. Use skipstone.evaluate(model, sequences)."
        )
    if data is None:
        data = load_task(described.pop("task"), **described)
    content = measure_run(run, data, timing)
    write_json(run.folder / EVALUATION, content)
    return content


def measure_run(run: Run, data: TaskData, timing: bool = True) -> dict[str, Any]:
    """The numbers of a run on test data."""
    model: Model[Any] = run.load()
    return evaluate(
        model,
        data.test,
        events=data.events["test"],
        tolerance=run.config["tolerance"],
        timing=timing,
    ).to_dict()
