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
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import torch

from skipstone.console import Progress, show_progress
from skipstone.errors import InvalidInput, require_number
from skipstone.files import write_text
from skipstone.models.registry import MODELS
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.tasks.registry import find_task
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
    outcomes = {job.name: Outcome(job, Run(root / job.name), before=True) for job in jobs}
    settings = {"device": device, "precision": precision, "progress": False}
    if waiting := [job for job in jobs if not is_finished(job, root)]:
        with show_progress(progress) as show:
            failures = _run_all(waiting, root, _pool(ray, workers, settings), settings, show)
        for job in waiting:
            outcomes[job.name] = Outcome(job, Run(root / job.name), failures[job.name])
    return list(outcomes.values())


def is_finished(job: Job, root: Path) -> bool:
    """Whether a job's folder holds its evaluated result. One that is unreadable or was trained with
    other settings does not; the job will say why."""
    run = Run(root / job.name)
    try:
        return bool(run.finished and run.evaluation) and job.describes(run.config)
    except InvalidInput:
        return False


def _pool(ray: str | None, workers: int | None, settings: dict[str, Any]) -> Any:
    """`Processes`, or `RayPool`, which has the same methods."""
    if ray is None:
        require_lightning()
        check_hardware(settings["device"], 1, settings["precision"])
        return Processes(workers or _cores())
    if workers is not None:
        raise InvalidInput(
            f"a Ray cluster runs a job per core; got workers={workers} for the cluster at {ray}. "
            "Leave one of them out."
        )
    from skipstone.paper.ray_pool import RayPool

    return RayPool(ray, settings["device"])


def _run_all(
    jobs: list[Job], root: Path, pool: Any, settings: dict[str, Any], show: Progress
) -> dict[str, str | None]:
    """Why each job failed, None for those that did not."""
    failures: dict[str, str | None] = {}
    try:
        running = {pool.submit(job, root, settings, _modules(job)): job for job in jobs}
        while running:
            for future in futures.wait(running, POLL_SECONDS, futures.FIRST_COMPLETED).done:
                job = running.pop(future)
                failures[job.name] = _failure(future, root / "logs" / f"{job.name}.log")
                show("all runs", len(failures) / len(jobs), failures[job.name] or job.name)
            for job in running.values():
                _show_running(job, root, show)
    except KeyboardInterrupt:
        show("all runs", len(failures) / len(jobs), "stopping; each run saves its state first")
        raise KeyboardInterrupt(
            f"stopped with {len(failures)} of {len(jobs)} runs ended; everything is in {root}. Run "
            "the same again, and it goes on from there."
        ) from None
    finally:
        pool.stop()
        pool.close()
    return failures


def _modules(job: Job) -> list[str]:
    """Where a job's model and task come from: another process knows a user's own only once their
    modules are imported."""
    return [MODELS.find(job.model).__module__, find_task(job.task).observe.__module__]


def _show_running(job: Job, root: Path, show: Progress) -> None:
    """How far a job's last validation says it is."""
    rows = Run(root / job.name).metrics
    if rows:
        show(job.name, rows[-1]["step"] / job.recipe.steps, f"loss {rows[-1]['training_loss']:.2e}")


def _failure(future: futures.Future[Any], log: Path) -> str | None:
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


def work(
    job: Job, root: Path, settings: dict[str, Any], modules: list[str]
) -> tuple[str, str] | None:
    """Run a job. What goes wrong is returned, as a line and a traceback, so that it can travel."""
    try:
        mask_interrupts(False)
        for module in modules:
            import_module(module)
        run_job(job, root, **settings)
    except KeyboardInterrupt:
        return "it was interrupted. Run the same again, and it goes on", ""
    except InvalidInput as error:
        return str(error), ""
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first}", traceback.format_exc()
    finally:
        # Ctrl-C in a terminal reaches a worker twice: from there, and from its parent.
        mask_interrupts(True)
        parent = multiprocessing.parent_process()
        if parent is not None and not parent.is_alive():
            os._exit(1)  # Nobody is left to take the result.
    return None


def mask_interrupts(blocked: bool) -> None:
    """Have SIGINT wait, or not, for this thread and for the processes that it starts."""
    if hasattr(signal, "pthread_sigmask"):
        how = signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, {signal.SIGINT})


class Processes:
    """Each job in a process of its own, so that one that dies takes no other with it."""

    def __init__(self, workers: int):
        # A process that is still starting cannot save: there, Ctrl-C waits. A tracker undoes that.
        resource_tracker.ensure_running()
        self._threads = futures.ThreadPoolExecutor(workers, "", mask_interrupts, (True,))
        self._cores_each = max(1, _cores() // workers)
        self._lock, self._stopped, self._processes = threading.Lock(), False, set[Any]()

    def submit(self, *arguments: Any) -> futures.Future[Any]:
        """Start a job when there is room."""
        return self._threads.submit(self._alone, *arguments)

    def _alone(self, *arguments: Any) -> Any:
        context, threads = multiprocessing.get_context("spawn"), (self._cores_each,)
        with futures.ProcessPoolExecutor(1, context, _begin_worker, threads) as pool:
            # Either it is started here and stopped there, or it is not started.
            with self._lock:
                if self._stopped:
                    return "it was not started", ""
                others = set(multiprocessing.active_children())
                result = pool.submit(work, *arguments)
                self._processes |= set(multiprocessing.active_children()) - others
            return result.result()

    def stop(self) -> None:
        """Interrupt the processes, at which they save and end."""
        with self._lock:
            self._stopped = True
        for process in self._processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGINT)

    def close(self) -> None:
        """Wait for them."""
        self._threads.shutdown(cancel_futures=True)


def _begin_worker(threads: int) -> None:
    """Take a share of the cores, and end when the parent does."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
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
