"""The `skipstone` command: parse, call, print.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from skipstone.errors import InvalidInput

app = typer.Typer(
    help="Continuous-time sequence models that skip what is predictable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"skipstone {version('skipstone')}")
        raise typer.Exit
    return wanted


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def tasks() -> None:
    """List the tasks with their shapes."""
    from rich.console import Console

    from skipstone.paper.tasks.registry import task_table

    Console().print(task_table())


@app.command()
def show(
    task: Annotated[str, typer.Argument(help="Name of a task; `skipstone tasks` lists them.")],
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

    for path in show_task(task, out or Path(f"{task}.png"), video, count, seed):
        typer.echo(f"wrote {path}")


RUNS, WEIGHTS, OUT = Path("runs"), Path("weights"), Path("results")
RunsOption = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]


@app.command()
def train(
    task: Annotated[str, typer.Argument(help="Name of a task; `skipstone tasks` lists them.")],
    model: Annotated[str, typer.Argument(help="pcode, rnn, odernn or latentode.")],
    preset: Annotated[str, typer.Option(help="Budget: cpu, paper or smoke.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Of weights, data order and exploration.")] = 0,
    hidden: Annotated[int | None, typer.Option(help="Units; default: the preset's.")] = None,
    steps: Annotated[int | None, typer.Option(help="Gradient steps; default: preset's.")] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(help="For pcode: a squared error, or auto, the RNN's; default: the preset's."),
    ] = None,
    reads: Annotated[
        str | None,
        typer.Option(help="For pcode: its encoder is shown values or motion; default: preset's."),
    ] = None,
    finer: Annotated[
        int, typer.Option(help="So many observations in the place of one, over the same time.")
    ] = 1,
    runs: RunsOption = RUNS,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    devices: Annotated[int, typer.Option(help="Devices or processes to train on.")] = 1,
    precision: Annotated[str, typer.Option(help="32-true, bf16-mixed or 16-mixed.")] = "32-true",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train a model on a task, and evaluate it; run again to resume or to see the result."""
    from skipstone.paper.jobs import Job, run_job

    job = Job(
        task=task,
        model=model,
        preset=preset,
        seed=seed,
        hidden=hidden,
        steps=steps,
        tolerance=_tolerance(tolerance),
        reads=reads,
        finer=finer,
    )
    with _stoppable():
        run = run_job(
            job, runs, device=device, devices=devices, precision=precision, progress=not quiet
        )
    typer.echo(_summary(run.folder))


@app.command()
def grid(
    task: Annotated[list[str], typer.Option(help="A task; once for each.")],
    model: Annotated[list[str], typer.Option(help="pcode, rnn, odernn or latentode; repeatable.")],
    seed: Annotated[list[int], typer.Option(help="Repeatable.")] = [0],  # noqa: B006
    hidden: Annotated[
        list[int] | None, typer.Option(help="Units, repeatable; default: the preset's.")
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(help="For pcode, repeatable: a number, or auto; default: the preset's."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Budget: cpu, paper or smoke.")] = "cpu",
    steps: Annotated[int | None, typer.Option(help="Gradient steps; default: preset's.")] = None,
    runs: RunsOption = RUNS,
    workers: Annotated[
        int | None, typer.Option(help="Runs at a time; default: one per core.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster to run on, HOST:PORT.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    precision: Annotated[str, typer.Option(help="32-true, bf16-mixed or 16-mixed.")] = "32-true",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Train every combination, several at a time; run again to resume what is not finished."""
    from skipstone.paper.grid import grid_summary, make_grid, run_grid

    jobs = make_grid(
        task,
        model,
        seeds=seed,
        hidden=hidden or [None],
        tolerances=[_tolerance(text) for text in tolerance or [None]],
        preset=preset,
        steps=steps,
    )
    with _stoppable():
        outcomes = run_grid(
            jobs,
            runs,
            workers=workers,
            ray=ray,
            device=device,
            precision=precision,
            progress=not quiet,
        )
    typer.echo(grid_summary(outcomes))
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run; `skipstone runs` lists them.")],
) -> None:
    """Measure a run on its task's test data: errors, steps, costs and wall times."""
    from rich.console import Console

    from skipstone.paper.jobs import evaluate_run
    from skipstone.training.report import evaluation_table
    from skipstone.training.run import Run

    content = evaluate_run(Run(run))
    Console().print(evaluation_table(content))
    typer.echo(f"wrote {run / 'evaluation.json'}")


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="Folder that holds the runs.")] = RUNS,
) -> None:
    """List the runs with their results."""
    from rich.console import Console

    from skipstone.training.report import runs_table

    Console().print(runs_table(folder))


@app.command()
def plan(
    run: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs on shots; default: all in runs, or else in weights."),
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

    found = find_runs(run or [], (RUNS, WEIGHTS))
    for name, chosen in found.items():
        typer.echo(f"{name}: {chosen.folder}", err=True)
    with _stoppable():
        if show:
            said, written = show_shot(*next(iter(found.items())), rollouts, seed, out)
            typer.echo(said)
        else:
            settings = Settings(tables=tables, rollouts=rollouts, seed=seed)
            table = report_experiment(
                found, settings, out, only_new, tell=lambda text: typer.echo(text, err=True)
            )
            Console().print(table)
            written = [out / RESULTS, out / FIGURE]
    for path in written:
        typer.echo(f"wrote {path}")


@app.command()
def reproduce(
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train everything first: hours; resumable.")
    ] = False,
    preset: Annotated[str, typer.Option(help="Budget: cpu, paper or smoke.")] = "cpu",
    task: Annotated[
        list[str] | None, typer.Option(help="Train only this task; repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Train only this model, and RNNs that a PC-ODE's tolerance needs; repeatable."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each model; studies have one.")] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Trainings at a time; default: one per core.")
    ] = None,
    runs: RunsOption = RUNS,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("report"),
) -> None:
    """The paper's table, figures and videos, and a page that shows them."""
    from rich.console import Console

    from skipstone.files import make_folder
    from skipstone.paper.grid import grid_summary
    from skipstone.paper.measured import finished_runs
    from skipstone.paper.reproduce import report_trainings, report_weights, train_all, train_live
    from skipstone.training.report import evaluation_table, read_evaluation

    failed = False
    make_folder(out)  # Fails now, not after hours.
    with _stoppable():
        if from_scratch:
            outcomes = train_all(
                runs,
                preset=preset,
                tasks=task or (),
                models=model or (),
                seeds=seeds,
                workers=workers,
            )
            typer.echo(grid_summary(outcomes))
            failed = any(outcome.failure for outcome in outcomes)
            report = report_trainings(
                outcomes, preset, out, command=" ".join(["skipstone", *sys.argv[1:]])
            )
        elif task or model or workers or seeds != 1 or preset != "cpu" or runs != RUNS:
            raise InvalidInput(
                "--preset, --task, --model, --seeds, --workers and --runs are about training, "
                "which only --from-scratch does. Add it, or leave them out."
            )
        else:
            finished_runs(WEIGHTS)  # Fails now, not after a minute.
            typer.echo("Training a small PC-ODE on circles, about a minute, to see how that goes.")
            live = train_live(out)
            typer.echo(
                "What it predicts on its own, of test data (above, it had the truth at hand):"
            )
            Console().print(evaluation_table(read_evaluation(live)))
            typer.echo("Now the trained models of weights/, on test data made for them.")
            report = report_weights(WEIGHTS, OUT, out)
    for title, reason in report.left_out.items():
        typer.echo(f"left out: {title}: {reason}")
    for path in report.written:
        typer.echo(f"wrote {path}")
    if failed:
        raise typer.Exit(1)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Print how to resume after Ctrl-C: typer would end the command without a word."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(str(stop) or "interrupted", err=True)
        raise typer.Exit(130) from None


def _tolerance(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"tolerance must be auto or a number; got {text!r}.") from None


def _summary(folder: Path) -> str:
    from skipstone.training.report import summary

    return summary(folder)


def main() -> None:
    """Entry point of the command: input that breaks a rule is an error of one line."""
    try:
        app()
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
