"""`reproduce`: the paper with one command, from shipped weights or from scratch."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from skipstone.console import show_progress
from skipstone.errors import InvalidInput
from skipstone.paper.grid import Outcome, run_grid
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.measured import finished_runs, measure_runs
from skipstone.paper.pool.experiment import Settings
from skipstone.paper.pool.results import RESULTS, find_runs, report_experiment
from skipstone.paper.report import ReportFiles, write_report
from skipstone.paper.tasks.shots import SHOTS
from skipstone.paper.trainings import trainings
from skipstone.training.run import Run

LIVE = Job(task="circles", model="pcode", hidden=64, steps=600)
"""What a newcomer sees being trained: about a minute."""

SMOKE_PLANNING = Settings(tables=10, rollouts=300)
"""Planning with models that have learned nothing: only that it works."""


def train_live(out: Path) -> Run:
    """A small PC-ODE, trained before your eyes, every time anew."""
    folder = out / "live"
    shutil.rmtree(folder / LIVE.name, ignore_errors=True)
    try:
        return run_job(LIVE, folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the next time it begins anew.") from None


def report_weights(weights: Path, results: Path, out: Path) -> ReportFiles:
    """Evaluate trained runs, and draw everything from them and from the results of planning."""
    runs = finished_runs(weights)
    with show_progress() as progress:
        measured = measure_runs(runs, progress)
        return write_report(measured, out, planning=results / RESULTS, progress=progress)


def train_all(
    runs: Path,
    *,
    preset: str = "cpu",
    tasks: Sequence[str] = (),
    models: Sequence[str] = (),
    seeds: int = 1,
    workers: int | None = None,
) -> list[Outcome]:
    """Train whatever is not trained yet of all that the paper compares, or of a part of it."""
    jobs = trainings(preset, tasks, models, seeds)
    # RNNs that only tolerances come from are not part of what was asked for, and once those are
    # known they are not looked at again.
    return [done for done in run_grid(jobs, runs, workers=workers) if done.job in jobs]


def report_trainings(
    outcomes: Sequence[Outcome], preset: str, out: Path, command: str
) -> ReportFiles:
    """The same from runs of one's own, which plan their shots first if they can."""
    runs = [outcome.run for outcome in outcomes if outcome.failure is None]
    if not runs:
        raise InvalidInput("there must be a finished run to report on; every training failed.")
    players = [run for run in runs if run.config["data"]["task"] == SHOTS.name]
    if players:
        settings = SMOKE_PLANNING if preset == "smoke" else Settings()
        report_experiment(find_runs([run.folder for run in players], ()), settings, out)
    # A file from before would be about other models.
    planning = out / RESULTS if players else None
    with show_progress() as progress:
        measured = measure_runs(runs, progress)
        return write_report(measured, out, planning=planning, command=command, progress=progress)
