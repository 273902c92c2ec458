"""`run_grid`: many jobs, some at a time, on this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.files import write_text
from skipstone.paper.backends import Backend, LocalBackend, check_workers
from skipstone.paper.display import Display, show_grid
from skipstone.paper.jobs import Job
from skipstone.paper.worker import Failure, Report
from skipstone.training.report import EVALUATION
from skipstone.training.run import Run

POLL_SECONDS = 0.5
"""Longest wait for news, after which the display moves on."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    job: Job
    run: Run
    failure: str | None = None
    """The reason in one line; None if the run is finished."""
    before: bool = False
    """Whether it was finished before the grid began."""


def make_grid(
    tasks: Iterable[str],
    models: Iterable[str],
    *,
    seeds: Iterable[int] = (0,),
    hidden: Iterable[int | None] = (None,),
    tolerances: Iterable[float | str | None] = (None,),
    preset: str = "cpu",
    steps: int | None = None,
) -> list[Job]:
    """Every combination as a job, once: only the PC-ODE has a tolerance."""
    jobs = (
        Job(
            task=task,
            model=model,
            seed=seed,
            hidden=units,
            tolerance=tolerance if model == "pcode" else None,
            preset=preset,
            steps=steps,
        )
        for task, model, seed, units, tolerance in product(tasks, models, seeds, hidden, tolerances)
    )
    return list(dict.fromkeys(jobs))


def run_grid(
    jobs: Sequence[Job],
    root: str | Path,
    *,
    workers: int | None = None,
    ray: str | None = None,
    device: str = "auto",
    precision: str = "32-true",
    progress: bool = True,
) -> list[Outcome]:
    """Train and evaluate all jobs, each in its folder below `root`.

    What is finished is skipped, and what was interrupted is resumed. An RNN that a PC-ODE takes its
    tolerance from runs before it, whether it was asked for or not. A job that fails leaves the
    others running; its reason is in its outcome and its traceback in `root/logs`.

    `workers` is how many run at a time: by default one per core, or on Ray as many as fit. They
    share the cores, `cores // workers` threads each. `ray` is the address of a Ray cluster, for
    example "10.0.0.1:6379"; its machines should see `root` under the same path.
    """
    check_workers(workers)
    root = Path(root)
    planned = with_baselines(jobs, root)
    grid = _Grid(planned, root)
    options = {"device": device, "precision": precision}
    if grid.waiting:
        with show_grid(len(planned), len(grid.outcomes), progress) as display:
            backend = _backend(ray, root, workers, options)
            try:
                _run(grid, backend, display)
            finally:
                backend.close()
    return [grid.outcomes[job.name] for job in planned]


def with_baselines(jobs: Iterable[Job], root: Path) -> list[Job]:
    """The jobs, each once, and the RNNs that those still to do take their tolerance from."""
    planned: dict[str, Job] = {}
    for job in jobs:
        baseline = None if _is_finished(job, root) else job.baseline
        for needed in (baseline, job):
            if needed is not None:
                planned.setdefault(needed.name, needed)
    return list(planned.values())


def _is_finished(job: Job, root: Path) -> bool:
    """Whether a job's folder holds its evaluated result. The job itself explains anything odd."""
    run = Run(root / job.name)
    with suppress(InvalidInput):
        evaluated = run.finished and (run.folder / EVALUATION).is_file()
        return evaluated and run.config["recipe"] == asdict(job.recipe)
    return False


def _backend(ray: str | None, root: Path, workers: int | None, options: dict[str, Any]) -> Backend:
    if ray is None:
        return LocalBackend(root, workers, options)
    from skipstone.paper.ray_backend import RayBackend

    return RayBackend(ray, root, workers, options)


class _Grid:
    """Which jobs wait, run and have ended."""

    def __init__(self, jobs: list[Job], root: Path):
        self.root = root
        self.waiting: dict[str, Job] = {}
        self.running: dict[str, Job] = {}
        self.outcomes: dict[str, Outcome] = {}
        for job in jobs:
            if _is_finished(job, root):
                self.outcomes[job.name] = Outcome(job, Run(root / job.name), before=True)
            else:
                self.waiting[job.name] = job

    def next_ready(self) -> Job | None:
        """Take a job whose RNN, if it needs one, neither waits nor runs."""
        for name, job in self.waiting.items():
            needed = job.baseline.name if job.baseline else None
            if needed not in self.waiting and needed not in self.running:
                self.running[name] = self.waiting.pop(name)
                return job
        return None

    def missing_baseline(self, job: Job) -> Failure | None:
        """Why a job cannot start although its turn has come."""
        outcome = self.outcomes.get(job.baseline.name) if job.baseline else None
        if outcome is None or outcome.failure is None:
            return None
        return Failure(f"the RNN that its tolerance comes from failed, {outcome.job.name}")

    def end(self, job: Job, failure: Failure | None) -> str:
        """Note how a job ended, and return it in words."""
        del self.running[job.name]
        log = self.root / "logs" / f"{job.name}.log"
        log.unlink(missing_ok=True)
        reason = failure and failure.reason
        if failure is not None and failure.details:
            write_text(log, failure.details)
            reason = f"{failure.reason} ({log})"
        self.outcomes[job.name] = Outcome(job, Run(self.root / job.name), reason)
        return "finished" if reason is None else f"failed: {reason}"


def _run(grid: _Grid, backend: Backend, display: Display) -> None:
    try:
        while grid.waiting or grid.running:
            _start_ready(grid, backend, display)
            for event in backend.poll(POLL_SECONDS) if grid.running else []:
                if not isinstance(event.news, Report):
                    display.ended(event.job.name, grid.end(event.job, event.news))
                elif event.job.name in grid.running:  # A report can be late.
                    display.running(event.job.name, event.news)
    except KeyboardInterrupt:
        display.say("stopping; each run saves its state first (Ctrl-C again to end at once)")
        with suppress(KeyboardInterrupt):
            backend.stop()
        total = len(grid.waiting) + len(grid.running) + len(grid.outcomes)
        raise KeyboardInterrupt(
            f"stopped with {len(grid.outcomes)} of {total} runs ended; everything is in "
            f"{grid.root}. Run the same again, and it goes on from there."
        ) from None


def _start_ready(grid: _Grid, backend: Backend, display: Display) -> None:
    while len(grid.running) < backend.slots and (job := grid.next_ready()) is not None:
        failure = grid.missing_baseline(job)
        if failure is not None:
            display.ended(job.name, grid.end(job, failure))
        else:
            backend.start(job)


def grid_summary(outcomes: list[Outcome]) -> str:
    """How a grid ended: counts, then a line for every failure."""
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    before = sum(outcome.before for outcome in outcomes)
    text = f"{len(outcomes) - len(failed)} of {len(outcomes)} runs are finished"
    text += f", {before} of them before" if before else ""
    lines = [f"{outcome.job.name}: {outcome.failure}" for outcome in failed]
    return "\n".join([f"{text}, {len(failed)} failed" if failed else text, *lines])
