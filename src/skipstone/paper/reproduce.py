"""`reproduce`: the paper with one command, from shipped weights or from scratch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from skipstone.console import show_progress
from skipstone.errors import InvalidInput
from skipstone.files import make_folder
from skipstone.paper.grid import grid_summary, run_grid
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.measured import finished_runs, measure_runs
from skipstone.paper.pool.experiment import Settings
from skipstone.paper.pool.results import RESULTS, find_runs, report_experiment
from skipstone.paper.report import write_report
from skipstone.paper.tasks.shots import SHOTS
from skipstone.paper.trainings import trainings
from skipstone.training.listing import evaluation_table
from skipstone.training.run import Run

LIVE = Job(task="circles", model="pcode", steps=600, options={"hidden": 64})
"""What a newcomer sees being trained: about a minute."""

SMOKE_PLANNING = Settings(tables=10, rollouts=300)
"""Planning with models that have learned nothing: only that it works."""


Say = Callable[[str], None]
"""Prints a line for the reader."""


@dataclass(frozen=True)
class Written:
    """What a reproduction left on disk."""

    paths: list[Path]
    failed: bool = False
    """Whether a training failed, so that the report is not complete."""


def reproduce_weights(weights: Path, results: Path, out: Path, say: Say) -> Written:
    """Train a small model before the reader's eyes, then measure and draw the trained ones."""
    make_folder(out)  # Fails now, not after a minute.
    runs = finished_runs(weights)
    say("Training a small PC-ODE on circles, about a minute, to see how that goes.")
    live = train_live(out)
    say("What it predicts on its own, of test data (above, it had the truth at hand):")
    Console().print(evaluation_table(live.evaluation))
    say("Now the trained models of weights/, on test data made for them.")
    return _report(runs, out, results / RESULTS, say)


def train_live(out: Path) -> Run:
    """A small PC-ODE, trained every time anew."""
    folder = out / "live"
    shutil.rmtree(folder / LIVE.name, ignore_errors=True)
    try:
        return run_job(LIVE, folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the next time it begins anew.") from None


def reproduce_trainings(
    folder: Path,
    out: Path,
    command: str,
    *,
    preset: str,
    tasks: Sequence[str],
    models: Sequence[str],
    seeds: int | None,
    workers: int | None,
    say: Say,
) -> Written:
    """Train whatever is not trained yet of all that the paper compares, or of a part of it; plan
    shots with models that can, and report."""
    make_folder(out)  # Fails now, not after hours.
    outcomes = run_grid(trainings(preset, tasks, models, seeds), folder, workers=workers)
    say(grid_summary(outcomes))
    runs = [outcome.run for outcome in outcomes if outcome.failure is None]
    if not runs:
        raise InvalidInput("there must be a finished run to report on; every training failed.")
    players = [
        outcome.run.folder
        for outcome in outcomes
        if outcome.failure is None and outcome.job.task == SHOTS.name and not outcome.job.varied
    ]
    if players:
        settings = SMOKE_PLANNING if preset == "smoke" else Settings()
        report_experiment(find_runs(players, ()), settings, out)
    # A file from before would be about other models.
    planning = out / RESULTS if players else None
    return _report(runs, out, planning, say, command, failed=len(runs) < len(outcomes))


def _report(
    runs: Sequence[Run],
    out: Path,
    planning: Path | None,
    say: Say,
    command: str = "skipstone reproduce",
    failed: bool = False,
) -> Written:
    with show_progress() as progress:
        measured = measure_runs(runs, progress)
        report = write_report(measured, out, planning=planning, command=command, progress=progress)
    for title, reason in report.left_out.items():
        say(f"left out: {title}: {reason}")
    return Written(report.written, failed)
