"""The jobs of a grid on a Ray cluster. The only module that imports Ray."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.files import replacing
from skipstone.paper.backends import Event
from skipstone.paper.jobs import Job
from skipstone.paper.worker import Failure, Report, work
from skipstone.training.run import CHECKPOINT, RESULT, Run

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer."""

Files = dict[str, bytes]
"""A run folder's files by name: a few megabytes at most."""


class Board:
    """An actor on the cluster where jobs leave their reports for us to fetch."""

    def __init__(self) -> None:
        self._reports: dict[Job, Report] = {}

    def put(self, job: Job, report: Report) -> None:
        """Leave a report, in place of an earlier one that nobody has fetched."""
        self._reports[job] = report

    def take(self) -> dict[Job, Report]:
        """Fetch what is new."""
        reports, self._reports = self._reports, {}
        return reports


class RayBackend:
    """Each job as a Ray task on one core, or on one GPU if the device is cuda."""

    def __init__(self, address: str, root: Path, workers: int | None, options: dict[str, Any]):
        self._ray = _require_ray()
        self._ours = not self._ray.is_initialized()
        _connect(self._ray, address)
        self.slots = sys.maxsize if workers is None else workers
        self._root = root.resolve()
        self._options = options
        gpus = 1 if options["device"] == "cuda" else 0
        self._task = self._ray.remote(num_cpus=1, num_gpus=gpus)(_work_on_node)
        self._board = self._ray.remote(num_cpus=0)(Board).remote()
        self._jobs: dict[Any, Job] = {}

    def start(self, job: Job) -> None:
        """Hand a job to Ray, which waits for a free core."""
        given = pack(self._root / job.baseline.name) if job.baseline else {}
        task = self._task.remote(job, self._root, self._options, given, self._board)
        self._jobs[task] = job

    def poll(self, seconds: float) -> list[Event]:
        """Reports from the board, and the ends of tasks."""
        ended, _ = self._ray.wait(list(self._jobs), timeout=seconds)
        reports = self._ray.get(self._board.take.remote())
        events = [Event(job, report) for job, report in reports.items()]
        for task in ended:
            job = self._jobs.pop(task)
            events.append(Event(job, self._collect(task, job)))
        return events

    def _collect(self, task: Any, job: Job) -> Failure | None:
        """Bring a finished run here, unless this machine sees it anyway."""
        try:
            result = self._ray.get(task)
        except self._ray.exceptions.RayError as error:  # Its process or machine is gone.
            return Failure(str(error).strip().partition("\n")[0], str(error))
        if isinstance(result, Failure):
            return result
        unpack(self._root / job.name, result)
        return None

    def stop(self) -> None:
        """Cancel the tasks: Ray interrupts the running ones as Ctrl-C would."""
        tasks = list(self._jobs)
        for task in tasks:
            self._ray.cancel(task)
        if tasks:
            self._ray.wait(tasks, num_returns=len(tasks))

    def close(self) -> None:
        """Leave the cluster, at which Ray ends what is left of ours."""
        for task in self._jobs:
            self._ray.cancel(task, force=True)
        if self._ours:
            self._ray.shutdown()


def _work_on_node(
    job: Job, root: Path, options: dict[str, Any], given: Files, board: Any
) -> Files | Failure:
    """A job on a machine of the cluster, with its RNN's run if this machine does not see it."""

    def tell(report: Report) -> None:
        board.put.remote(job, report)

    tell(Report())
    if job.baseline:
        unpack(root / job.baseline.name, given)
    return work(job, root, options, tell) or pack(root / job.name)


def pack(folder: Path) -> Files:
    """The files of a finished run."""
    files = (path for path in folder.iterdir() if path.is_file() and path.name != CHECKPOINT)
    return {path.name: path.read_bytes() for path in files if not path.name.startswith(".")}


def unpack(folder: Path, files: Files) -> None:
    """Write the files of a finished run, unless it is there; its result, which says so, last."""
    if Run(folder).finished:
        return
    for name in sorted(files, key=lambda name: name == RESULT):
        with replacing(folder / name) as beside:
            beside.write_bytes(files[name])


def _require_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InvalidInput("Ray is not installed. Run: pip install 'skipstone[ray]'") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join a cluster, or say in one line why not."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            # Ray itself would try for minutes, and then end this process.
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        elif address not in ("auto", "local"):
            raise ValueError("an address has a host and a port, such as 10.0.0.1:6379")
        ray.init(address, ignore_reinit_error=True, logging_level="ERROR", log_to_driver=False)
    except (OSError, ValueError, RuntimeError, ImportError, OverflowError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise InvalidInput(
            f"there must be a Ray cluster at {address}; {reason}. `ray status --address {address}` "
            "shows whether it runs."
        ) from None
