"""Where the jobs of a grid run: the contract, and processes on this machine."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any, Protocol, runtime_checkable

from skipstone.errors import InvalidInput
from skipstone.paper.jobs import Job
from skipstone.paper.worker import Failure, Report
from skipstone.training.fit import check_hardware, require_lightning


@dataclass(frozen=True)
class Event:
    """Something a job did: progress, failure, or, with neither, its successful end."""

    job: Job
    news: Report | Failure | None


@runtime_checkable
class Backend(Protocol):
    """A place that runs jobs."""

    slots: int
    """Jobs to have started at a time, at most."""

    def start(self, job: Job) -> None:
        """Start a job."""
        ...

    def poll(self, seconds: float) -> list[Event]:
        """What has happened since; waits up to some seconds for something to happen."""
        ...

    def stop(self) -> None:
        """Have every job save its state and end; returns when they have."""
        ...

    def close(self) -> None:
        """End what still runs, at once."""
        ...


class LocalBackend:
    """Each job in a process of its own, with its share of the cores."""

    def __init__(self, root: Path, workers: int | None, options: dict[str, Any]):
        require_lightning()
        check_hardware(options["device"], 1, options["precision"])
        self.slots = _cores() if workers is None else workers
        self._order = {"root": str(root), "options": options}
        self._threads = max(1, _cores() // self.slots)
        self._children: list[subprocess.Popen[str]] = []
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def start(self, job: Job) -> None:
        """Start a job in a new process."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - the listener closes it.
        child = subprocess.Popen(
            [
                *(sys.executable, "-m", "skipstone.paper.worker"),
                json.dumps({"job": asdict(job), **self._order}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env={"OMP_NUM_THREADS": str(self._threads), **os.environ},
            start_new_session=True,  # Ctrl-C is for us alone; `stop` passes it on.
        )
        self._children.append(child)
        Thread(target=self._listen, args=(job, child, errors), daemon=True).start()

    def _listen(self, job: Job, child: subprocess.Popen[str], errors: IO[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        failure = None
        with child.stdout, errors:
            for line in child.stdout:
                if not line.endswith("\n"):  # Killed while it spoke.
                    break
                content = json.loads(line)
                if "Report" in content:
                    self._events.put(Event(job, Report(**content["Report"])))
                else:
                    failure = Failure(**content["Failure"])
            code = child.wait()
            if code != 0 and failure is None:
                errors.seek(0)
                failure = Failure(_ending(code), errors.read().decode(errors="replace"))
        child.stdin.close()
        self._events.put(Event(job, failure))

    def poll(self, seconds: float) -> list[Event]:
        """What the processes have told."""
        events = []
        with suppress(queue.Empty):
            events.append(self._events.get(timeout=seconds))
            while True:
                events.append(self._events.get_nowait())
        return events

    def stop(self) -> None:
        """End the standard inputs, at which the processes save and end."""
        for child in self._children:
            assert child.stdin is not None
            child.stdin.close()
        for child in self._children:
            child.wait()

    def close(self) -> None:
        """Kill what still runs."""
        for child in self._children:
            child.kill()  # Does nothing to a process that has ended.
            child.wait()


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ending(code: int) -> str:
    if code >= 0:
        return f"its process ended with code {code}"
    hint = " (out of memory?)" if code == -signal.SIGKILL else ""
    return f"its process was ended by {signal.Signals(-code).name}{hint}"


def check_workers(workers: int | None) -> None:
    """Raise unless this many jobs can run at a time."""
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers must be at least 1; got {workers}.")
