"""A job: one model on one task, from data to evaluated run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import torch

from skipstone.errors import InvalidInput, require_choice, require_number, require_seed
from skipstone.evaluation.metrics import evaluate
from skipstone.locks import locked
from skipstone.models.base import Model
from skipstone.models.pcode_config import PCODEConfig
from skipstone.models.registry import MODELS
from skipstone.models.scaling import SCALINGS
from skipstone.paper.presets import AUTO, preset_for
from skipstone.paper.schemas import TaskTrainingRecord, require_record
from skipstone.paper.tasks.load import TaskData, load_task
from skipstone.paper.tasks.registry import TASKS, find_task, task_options
from skipstone.training.fit import fit
from skipstone.training.recipe import Recipe
from skipstone.training.run import Run

_LENGTHS = ("min_step", "max_step", "target_step")
"""Options of a PC-ODE that are lengths of time, in observations."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train: everything that decides the numbers of a run on a task."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    preset: str = "cpu"
    """Budget and settings: cpu, paper or smoke."""
    seed: int = 0
    """Of the initial weights, the order of the data and everything drawn."""
    steps: int | None = None
    """Gradient steps; None for the preset's."""
    finer: int = 1
    """Sampling rate, as a multiple of the task's own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the model that differ from the preset's, such as hidden or tolerance."""

    def __post_init__(self) -> None:
        kind = self._kind
        find_task(self.task)
        self.recipe  # noqa: B018 - its own checks, before any data is made.
        require_seed(self.seed)
        require_number("finer", self.finer, 1, whole=True)
        # The config says what is wrong with an option, before any data is made.
        options = self.model_options | {"dim": 1}
        require_choice("scaling", options.pop("scaling", SCALINGS[0]), SCALINGS)
        if options.get("tolerance") == AUTO:
            del options["tolerance"]
        kind.from_config(options)

    @property
    def _kind(self) -> type[Model[Any]]:
        return MODELS.find(self.model)

    @property
    def model_options(self) -> dict[str, Any]:
        """Options of the model: the preset's and the job's own, for the job's sampling rate."""
        options = preset_for(self.preset, self.task).options(self._kind) | dict(self.options)
        if self.finer != 1 and issubclass(self._kind.Config, PCODEConfig):
            options = _steps_in_time(options, self.finer)
        return options

    @property
    def recipe(self) -> Recipe:
        """The preset's, with the job's own number of steps if it has one."""
        recipe = preset_for(self.preset, self.task).recipe
        return recipe if self.steps is None else dataclasses.replace(recipe, steps=self.steps)

    @property
    def data_options(self) -> dict[str, Any]:
        """Options of the task: the preset's, sampled as finely as the job asks for."""
        options = dict(preset_for(self.preset, self.task).data)
        if self.finer != 1:
            usual = find_task(self.task).options
            options["spacing"] = usual.spacing / self.finer
            options["observations"] = (usual.observations - 1) * self.finer + 1
        return options

    @property
    def name(self) -> str:
        """Name of the run's folder: what differs from the preset is in it."""
        parts = [self.task, self.model.replace(":", "."), self.preset]
        parts += [f"finer{self.finer}"] if self.finer != 1 else []
        parts += [f"steps{self.steps}"] if self.steps is not None else []
        for name, value in sorted(self.options.items()):
            parts.append(f"{name}-{value}" if isinstance(value, str) else f"{name}{value}")
        return "-".join([*parts, f"seed{self.seed}"])

    @property
    def command(self) -> str:
        """What trains it alone, in the folder where a grid looks for it."""
        parts = ["skipstone train", self.task, self.model]
        parts += [f"--preset {self.preset}"] if self.preset != "cpu" else []
        parts += [f"--seed {self.seed}"] if self.seed else []
        parts += [f"--steps {self.steps}"] if self.steps is not None else []
        parts += [f"--finer {self.finer}"] if self.finer != 1 else []
        for name, value in sorted(self.options.items()):
            text = value if isinstance(value, str) else json.dumps(value)
            parts.append(f"--set {name}={text}")
        return " ".join(parts)

    @property
    def varied(self) -> set[str]:
        """What differs from the preset; studies vary something on purpose."""
        return varied(asdict(self))

    def describes(self, config: Mapping[str, Any]) -> bool:
        """Whether a run with this config was trained as the job asks: a preset may have changed
        since, and its name is all that a folder's name has of it."""
        defaults = {each.name: each.default for each in dataclasses.fields(self._kind.Config)}
        same = all(
            config["model"].get(name, defaults[name]) == value
            for name, value in self.model_options.items()
            if name in defaults and value != AUTO
        )
        trained_on = config["data"].get("options", {})
        same = same and self.data_options.items() <= trained_on.items()
        return same and config["recipe"] == asdict(self.recipe)

    def load_data(self) -> TaskData:
        """The task's data, as the preset and the job ask for."""
        return load_task(self.task, **self.data_options)


def make_grid(
    tasks: Iterable[str],
    models: Iterable[str],
    *,
    seeds: Iterable[int] = (0,),
    options: Mapping[str, Sequence[Any]] | None = None,
    preset: str = "cpu",
    steps: int | None = None,
) -> list[Job]:
    """Every combination as a job, once. A model gets only the options that it has."""
    jobs = {}
    options = options or {}
    varied = [dict(zip(options, each, strict=True)) for each in product(*options.values())]
    for task, model, seed, values in product(tasks, models, seeds, varied):
        known = {each.name for each in dataclasses.fields(MODELS.find(model).Config)}
        own = {name: value for name, value in values.items() if name in known}
        job = Job(task=task, model=model, seed=seed, preset=preset, steps=steps, options=own)
        jobs[job.name] = job
    return list(jobs.values())


def varied(described: Mapping[str, Any]) -> set[str]:
    """What a described job varies. A folder's description is read, never built: a job's names may
    be import paths, and a folder must not decide which code runs."""
    changed = {"steps"} if described["steps"] is not None else set()
    changed |= {"finer"} if described["finer"] != 1 else set()
    return changed | set(described["options"])


def run_job(job: Job, root: Path, **settings: Any) -> Run:
    """Train and evaluate a job in its folder below `root`, from wherever it stands.

    `settings` are those of `fit` that do not change the numbers: device, devices, precision,
    progress.
    """
    data = job.load_data()
    run = train_job(job, data, root, **settings)
    if not run.evaluation:
        evaluate_run(run, data, timing=False)
    return run


def train_job(job: Job, data: TaskData, root: Path, **settings: Any) -> Run:
    """Train a job; one whose tolerance is automatic trains an RNN beside it first."""
    kind, options = job._kind, job.model_options
    if options.get("tolerance") == AUTO:
        options["tolerance"] = _rnn_tolerance(job, data, root, **settings)
    torch.manual_seed(job.seed)
    model = kind.for_data(data.train, **options)  # pyright: ignore[reportArgumentType]
    return fit(
        model,
        data.train,
        data.validation,
        folder=root / job.name,
        recipe=job.recipe,
        seed=job.seed,
        data={"task": job.task, "options": asdict(data.options), "job": asdict(job)},
        **settings,
    )


def _rnn_tolerance(job: Job, data: TaskData, root: Path, **settings: Any) -> float:
    """The final training loss of an RNN of the same budget, in scaled units."""
    sizes = {name: value for name, value in job.options.items() if name == "hidden"}
    baseline = dataclasses.replace(job, model="rnn", options=sizes)
    folder = root / f"{job.name}-tolerance"
    run = train_job(baseline, data, folder, **{**settings, "devices": 1})
    return run.result["training_loss"]


def _steps_in_time(options: Mapping[str, Any], finer: int) -> dict[str, Any]:
    """Options of a PC-ODE whose steps cover the same time however finely it is sampled; its unit
    of time is the time between observations."""
    usual = {name: getattr(PCODEConfig, name) for name in (*_LENGTHS, "velocity_scale")}
    usual |= {name: value for name, value in options.items() if name in usual}
    scaled = {name: usual[name] and usual[name] * finer for name in _LENGTHS}
    return {**options, **scaled, "velocity_scale": usual["velocity_scale"] / finer}


def evaluate_run(run: Run, data: TaskData | None = None, timing: bool = True) -> dict[str, Any]:
    """Evaluate a run on its task's test data, and keep the numbers beside its weights."""
    data = task_data(run) if data is None else data
    with locked(run.folder, "evaluate"):
        content = measure_run(run, data, timing)
        run.keep_evaluation(content)
    return content


def task_data(run: Run) -> TaskData:
    """The data that a run was trained on."""
    described = run.config["data"]
    if "task" not in described:
        raise InvalidInput(
            f"{run.folder} was not trained on a task. Use skipstone.evaluate(model, sequences)."
        )
    if described["task"] not in TASKS:
        # Not imported, whatever it names: a folder must not decide which code runs.
        raise InvalidInput(
            f"{run.folder} was trained on {described['task']!r}, a task that is not known here. "
            "Import the module that registers it: skipstone --import MODULE evaluate ..."
        )
    options = require_record(run, TaskTrainingRecord)["data"]["options"]
    # Whatever is no option of the task is said here, also what load_task knows by that name.
    task_options(find_task(described["task"]), **options)
    return load_task(described["task"], **options)


def measure_run(run: Run, data: TaskData, timing: bool = True) -> dict[str, Any]:
    """The numbers of a run on test data."""
    model: Model[Any] = run.load()
    return evaluate(model, data.test, events=data.events["test"], timing=timing).to_dict()
