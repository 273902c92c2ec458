"""The commands about the paper: tasks, trainings, planning and the report.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skipstone.console import parse_options, say, stoppable
from skipstone.errors import InvalidInput
from skipstone.extras import require_installed
from skipstone.outputs import require_writable, require_writable_file

if TYPE_CHECKING:
    from skipstone.paper.jobs import Job

paper_commands = typer.Typer()

RUNS, WEIGHTS, OUT, PRESET = Path("runs"), Path("weights"), Path("results"), "cpu"
TaskArgument = Annotated[str, typer.Argument(help="Name of a task; `skipstone tasks` lists them.")]
PresetOption = Annotated[str, typer.Option("--preset", help="Budget: cpu, paper or smoke.")]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Gradient steps; default: the preset's.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
PrecisionOption = Annotated[
    str, typer.Option("--precision", help="32-true, bf16-mixed or 16-mixed.")
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="An option of the model, name=value; repeatable. tolerance=auto takes an RNN's loss.",
    ),
]
SeedsOption = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        help="Seeds of each model; default: 3 for RNN and PC-ODE on coordinates, else 1. Studies "
        "have one.",
    ),
]
ListOption = Annotated[
    bool,
    typer.Option(
        "--list", help="Only list what --from-scratch still has to train, and for how long."
    ),
]
RunsOption = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]

VIDEO = ("imageio", "imageio_ffmpeg")
"""What videos need besides matplotlib."""


def _require_trainable(jobs: "list[Job]", runs: Path, *modules: str) -> None:
    """Raise for what is not installed or cannot be written, before any data is made."""
    from skipstone.models.registry import MODELS

    needs = [module for job in jobs for module in MODELS.find(job.model).needs]
    require_installed("lightning", *needs, *modules)
    require_writable(runs)
    for job in jobs:
        require_writable(runs / job.name)


@paper_commands.command()
def tasks() -> None:
    """List the tasks with their shapes."""
    from rich.console import Console

    from skipstone.paper.tasks.registry import task_table

    Console().print(task_table())


@paper_commands.command()
def show(
    task: TaskArgument,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the picture; default TASK.png.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="Also write a video here: .mp4 or .gif.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many trajectories to draw.")] = 12,
    seed: Annotated[int, typer.Option(help="Which trajectories to draw.")] = 0,
) -> None:
    """Draw some trajectories of a task, their collisions marked."""
    from skipstone.paper.figures.sheets import show_task

    require_installed("matplotlib", *(VIDEO if video else ()))
    for picture in (out or Path(f"{task}.png"), video):
        if picture is not None:
            require_writable_file(picture)
    for path in show_task(task, out or Path(f"{task}.png"), video, count, seed):
        say(f"wrote {path}")


@paper_commands.command()
def train(
    task: TaskArgument,
    model: Annotated[str, typer.Argument(help="Name of a model; `skipstone models` lists them.")],
    preset: PresetOption = PRESET,
    seed: Annotated[int, typer.Option(help="Of weights, data order and exploration.")] = 0,
    steps: StepsOption = None,
    option: OptionOption = None,
    finer: Annotated[int, typer.Option(help="Sampling rate, as a multiple of the task's own.")] = 1,
    runs: RunsOption = RUNS,
    device: DeviceOption = "auto",
    devices: Annotated[int, typer.Option(help="Devices or processes to train on.")] = 1,
    precision: PrecisionOption = "32-true",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train a model on a task, and evaluate it; run again to resume or to see the result."""
    from skipstone.paper.jobs import Job, run_job
    from skipstone.training.listing import summary

    job = Job(
        task=task,
        model=model,
        preset=preset,
        seed=seed,
        steps=steps,
        finer=finer,
        options={name: values[-1] for name, values in parse_options(option).items()},
    )
    _require_trainable([job], runs)
    with stoppable():
        run = run_job(
            job, runs, device=device, devices=devices, precision=precision, progress=not quiet
        )
    say(summary(run))


@paper_commands.command()
def grid(
    task: Annotated[list[str], typer.Option(help="A task; once for each.")],
    model: Annotated[list[str], typer.Option(help="A model; once for each.")],
    seed: Annotated[list[int], typer.Option(help="Repeatable.")] = [0],  # noqa: B006
    option: OptionOption = None,
    preset: PresetOption = PRESET,
    steps: StepsOption = None,
    runs: RunsOption = RUNS,
    workers: Annotated[
        int | None, typer.Option(help="Runs at a time; default: one per core.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster to run on, HOST:PORT.")
    ] = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "32-true",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Train every combination, several at a time; run again to resume what is not finished."""
    from skipstone.paper.grid import grid_summary, run_grid
    from skipstone.paper.jobs import make_grid

    jobs = make_grid(
        task,
        model,
        seeds=seed,
        options=parse_options(option),
        preset=preset,
        steps=steps,
    )
    _require_trainable(jobs, runs, *(["ray"] if ray is not None else []))
    with stoppable():
        outcomes = run_grid(
            jobs,
            runs,
            workers=workers,
            ray=ray,
            device=device,
            precision=precision,
            progress=not quiet,
        )
    say(grid_summary(outcomes))
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)


@paper_commands.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run; `skipstone runs` lists them.")],
) -> None:
    """Measure a run on its task's test data: errors, steps, costs and wall times."""
    from rich.console import Console

    from skipstone.paper.jobs import evaluate_run
    from skipstone.training.listing import evaluation_table
    from skipstone.training.run import Run

    require_writable(run)
    content = evaluate_run(Run(run))
    Console().print(evaluation_table(content))
    say(f"wrote {run / 'evaluation.json'}")


@paper_commands.command()
def plan(
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Runs on shots; default: all in runs, or else in weights. Seeds of one model play "
            "under one name, and together as an ensemble."
        ),
    ] = None,
    tables: Annotated[int, typer.Option(help="Random configurations of the balls.")] = 250,
    rollouts: Annotated[
        int, typer.Option(help="Shots tried for each, 260 or more; --show: 40.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(help="Of tables and candidates.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for results and pictures; replaces those there.")
    ] = OUT,
    show: Annotated[
        bool,
        typer.Option("--show", help="Only draw and animate one shot, by the first run."),
    ] = False,
    only_new: Annotated[
        bool,
        typer.Option("--only-new", help="Take over what the folder has of the same weights."),
    ] = False,
) -> None:
    """Plan shots at pool with trained models, and count how many succeed; run again to go on."""
    from rich.console import Console

    from skipstone.paper.pool.experiment import Settings
    from skipstone.paper.pool.results import (
        FIGURE,
        RESULTS,
        find_runs,
        report_experiment,
        show_shot,
    )

    require_installed("matplotlib", *(VIDEO if show else ()))
    require_writable(out)
    settings = Settings(tables=tables, rollouts=rollouts, seed=seed)
    found = find_runs(run or [], (RUNS, WEIGHTS))
    for name, chosen in found.items():
        say(f"{name}: {', '.join(str(each.folder) for each in chosen)}", err=True)
    with stoppable():
        if show:
            name, chosen = next(iter(found.items()))
            said, written = show_shot(name, chosen[0], rollouts, seed, out)
            say(said)
        else:
            table = report_experiment(
                found, settings, out, only_new, tell=lambda text: say(text, err=True)
            )
            Console().print(table)
            written = [out / RESULTS, out / FIGURE]
    for path in written:
        say(f"wrote {path}")


@paper_commands.command()
def reproduce(
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train everything first: hours; resumable.")
    ] = False,
    preset: PresetOption = PRESET,
    task: Annotated[
        list[str] | None, typer.Option(help="Train only this task; repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Train only this model, and RNNs that a PC-ODE's tolerance needs; repeatable."
        ),
    ] = None,
    seeds: SeedsOption = None,
    workers: Annotated[
        int | None, typer.Option(help="Trainings at a time; default: one per core.")
    ] = None,
    missing: ListOption = False,
    runs: RunsOption = RUNS,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("report"),
) -> None:
    """The paper's table, figures and videos, and a page that shows them."""
    if missing:
        from skipstone.paper.missing import list_missing

        for line in list_missing(preset, task or (), model or (), seeds, runs):
            say(line)
        return
    from skipstone.paper.reproduce import reproduce_trainings, reproduce_weights

    require_installed("lightning", "torchdiffeq", "matplotlib", *VIDEO)
    for folder in (runs, out) if from_scratch else (out,):
        require_writable(folder)
    with stoppable():
        if from_scratch:
            written = reproduce_trainings(
                *(runs, out, " ".join(["skipstone", *sys.argv[1:]])),
                preset=preset,
                tasks=task or (),
                models=model or (),
                seeds=seeds,
                workers=workers,
                say=say,
            )
        elif task or model or workers or seeds or preset != PRESET or runs != RUNS:
            raise InvalidInput(
                "--preset, --task, --model, --seeds, --workers and --runs are about training, "
                "which only --from-scratch does. Add it, or --list, or leave them out."
            )
        else:
            written = reproduce_weights(WEIGHTS, OUT, out, say=say)
    for path in written.paths:
        say(f"wrote {path}")
    if written.failed:
        raise typer.Exit(1)
