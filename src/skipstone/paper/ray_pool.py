"""The jobs of a grid on a Ray cluster. The only module that imports Ray."""

from __future__ import annotations

import socket
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.paper.grid import work
from skipstone.paper.jobs import Job

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer."""


class RayPool:
    """Each job as a Ray task on one core, or on one GPU if the device is cuda."""

    def __init__(self, address: str, device: str):
        try:
            import ray
        except ImportError:
            raise InvalidInput("Ray is not installed. Run: pip install 'skipstone[ray]'") from None
        self._ray, self._ours = ray, not ray.is_initialized()
        _connect(ray, address)
        self._task = ray.remote(num_cpus=1, num_gpus=1 if device == "cuda" else 0)(work)
        self._running: list[Any] = []

    def submit(self, job: Job, root: Path, *rest: Any) -> Future[Any]:
        """Hand a job to Ray, which waits for a free core."""
        self._running.append(self._task.remote(job, root.resolve(), *rest))
        return self._running[-1].future()

    def stop(self) -> None:
        """Cancel the tasks: Ray interrupts the running ones as Ctrl-C would."""
        for task in self._running:
            self._ray.cancel(task)
        self._ray.wait(self._running, num_returns=len(self._running))

    def close(self) -> None:
        """Leave the cluster, at which Ray ends what is left of ours."""
        if self._ours:
            self._ray.shutdown()


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
