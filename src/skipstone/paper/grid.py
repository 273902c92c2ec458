"""`run_grid`: many jobs at once, on this machine or on a Ray cluster.

Every job is independent and resumes from its own folder, so a grid needs no memory of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from skipstone.console import Progress, show_progress
from skipstone.errors import InvalidInput, require_number
from skipstone.files import write_text
from skipstone.models.registry import MODELS
from skipstone.paper.jobs import Job, run_job
from skipstone.training.fit import check_hardware, require_lightning
from skipstone.training.run import Run

POLL_SECONDS = 1.0
"""Longest wait for news, after which the display moves on."""

GRACE_SECONDS = 60.0
"""How long a worker whose parent is gone may take to save its state."""


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
    options: Mapping[str, Sequence[Any]] | None = None,
    preset: str = "cpu",
    steps: int | None = None,
) -> list[Job]:
    """Every combination as a job, once. A model gets only the options that it has."""
    jobs = {}
    options = options or {}
    varied = [dict(zip(options, each, strict=True)) for each in product(*options.values())]
    for task, model, seed, values in product(tasks, models, seeds, varied):
        known = {each.name for each in fields(MODELS.find(model).Config)}
        own = {name: value for name, value in values.items() if name in known}
        job = Job(task=task, model=model, seed=seed, preset=preset, steps=steps, options=own)
        jobs[job.name] = job
    return list(jobs.values())


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

    What is finished is skipped, and what was interrupted is resumed. A job that fails leaves the
    others running; its reason is in its outcome and its traceback in `root/logs`.

    `workers` is how many run at a time: by default one per core, or on Ray as many as fit. They
    share the cores, `cores // workers` threads each. `ray` is the address of a Ray cluster, for
    example "10.0.0.1:6379"; its machines should see `root` under the same path.
    """
    if workers is not None:
        require_number("workers", workers, 1, whole=True)
    root, jobs = Path(root), list({job.name: job for job in jobs}.values())
    done = {job.name for job in jobs if _is_finished(job, root)}
    outcomes = {job.name: Outcome(job, Run(root / job.name), before=True) for job in jobs}
    waiting = [job for job in jobs if job.name not in done]
    if waiting:
        settings = {"device": device, "precision": precision, "progress": False}
        with show_progress(progress) as show:
            failures = _run_all(waiting, root, _pool(ray, workers, settings), settings, show)
        for job in waiting:
            outcomes[job.name] = Outcome(job, Run(root / job.name), failures[job.name])
    return list(outcomes.values())


def _is_finished(job: Job, root: Path) -> bool:
    """Whether a job's folder holds its evaluated result. The job itself explains anything odd."""
    run = Run(root / job.name)
    try:
        return bool(run.finished and run.evaluation) and run.config["recipe"] == asdict(job.recipe)
    except InvalidInput:
        return False


@runtime_checkable
class JobPool(Protocol):
    """A place that runs functions."""

    def submit(self, job: Job, root: Path, settings: dict[str, Any]) -> Future[Any]:
        """Start a job when there is room."""
        ...

    def stop(self) -> None:
        """Have every job save its state and end; returns when they have."""
        ...

    def close(self) -> None:
        """Free what the pool holds."""
        ...


def _pool(ray: str | None, workers: int | None, settings: dict[str, Any]) -> JobPool:
    if ray is None:
        require_lightning()
        check_hardware(settings["device"], 1, settings["precision"])
        return Processes(workers or _cores())
    from skipstone.paper.ray_pool import RayPool

    return RayPool(ray, settings["device"])


def _run_all(
    jobs: list[Job], root: Path, pool: JobPool, settings: dict[str, Any], show: Progress
) -> dict[str, str | None]:
    """Why each job failed, None for those that did not."""
    failures: dict[str, str | None] = {}
    try:
        futures = {pool.submit(job, root, settings): job for job in jobs}
        while futures:
            for future in wait(futures, POLL_SECONDS, FIRST_COMPLETED).done:
                job = futures.pop(future)
                failures[job.name] = _failure(future, root / "logs" / f"{job.name}.log")
                show("all runs", len(failures) / len(jobs), failures[job.name] or job.name)
            for job in futures.values():
                _show_running(job, root, show)
    except KeyboardInterrupt:
        show("all runs", len(failures) / len(jobs), "stopping; each run saves its state first")
        pool.stop()
        raise KeyboardInterrupt(
            f"stopped with {len(failures)} of {len(jobs)} runs ended; everything is in {root}. Run "
            "the same again, and it goes on from there."
        ) from None
    finally:
        pool.close()
    return failures


def _show_running(job: Job, root: Path, show: Progress) -> None:
    """How far a job's last validation says it is."""
    rows = Run(root / job.name).metrics
    if rows:
        show(job.name, rows[-1]["step"] / job.recipe.steps, f"loss {rows[-1]['training_loss']:.2e}")


def _failure(future: Future[Any], log: Path) -> str | None:
    """The reason in one line, with the traceback in a file; None for success."""
    try:
        found = future.result()
    except BrokenProcessPool:
        found = ("its process ended abruptly (out of memory?)", "")
    except Exception as error:  # Its machine is gone.
        found = (str(error).strip().partition("\n")[0], str(error))
    log.unlink(missing_ok=True)
    if found is None:
        return None
    reason, details = found
    if details:
        write_text(log, details)
    return f"{reason} ({log})" if details else reason


def work(job: Job, root: Path, settings: dict[str, Any]) -> tuple[str, str] | None:
    """Run a job. What goes wrong is returned, as a line and a traceback, so that it can travel."""
    try:
        run_job(job, root, **settings)
    except InvalidInput as error:
        return str(error), ""
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first}", traceback.format_exc()
    return None


class Processes:
    """Each job in a process of its own, so that one that dies takes no other with it."""

    def __init__(self, workers: int):
        self._threads = ThreadPoolExecutor(workers)
        self._cores_each = max(1, _cores() // workers)

    def submit(self, job: Job, root: Path, settings: dict[str, Any]) -> Future[Any]:
        """Start a job when there is room."""
        return self._threads.submit(self._alone, job, root, settings)

    def _alone(self, job: Job, root: Path, settings: dict[str, Any]) -> Any:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context, _begin_worker, (self._cores_each,)) as process:
            return process.submit(work, job, root, settings).result()

    def stop(self) -> None:
        """Interrupt the processes, at which they save and end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child.pid is not None:
                os.kill(child.pid, signal.SIGINT)
        self.close()

    def close(self) -> None:
        """Wait for what still runs."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def _begin_worker(threads: int) -> None:
    """Take a share of the cores, and end when the parent does."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE_SECONDS)
        os._exit(1)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def grid_summary(outcomes: list[Outcome]) -> str:
    """How a grid ended: counts, then a line for every failure."""
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    before = sum(outcome.before for outcome in outcomes)
    text = f"{len(outcomes) - len(failed)} of {len(outcomes)} runs are finished"
    text += f", {before} of them before" if before else ""
    lines = [f"{outcome.job.name}: {outcome.failure}" for outcome in failed]
    return "\n".join([f"{text}, {len(failed)} failed" if failed else text, *lines])
