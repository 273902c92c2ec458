"""One job of a grid: what it tells while it runs, and a process of its own to run it in.

`python -m skipstone.paper.worker ORDER` runs the job that ORDER describes in JSON. It tells its
progress on its standard output, a JSON object per line, and it stops, with everything saved, when
its standard input ends. So it cannot outlive the process that started it, whatever ends that one.
"""

from __future__ import annotations

import _thread
import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from skipstone.errors import InvalidInput

if TYPE_CHECKING:  # A worker says that it has started before it imports torch.
    from skipstone.paper.jobs import Job

REPORT_EVERY = 0.5
"""Seconds between two reports of a job."""


@dataclass(frozen=True)
class Report:
    """Where a job stands; without numbers, that it has started."""

    step: int = 0
    steps: int = 0
    loss: float = math.nan
    mean_step: float = math.nan


@dataclass(frozen=True)
class Failure:
    """Why a job did not finish."""

    reason: str
    """In one line."""
    details: str = ""
    """A traceback, where there is one."""


def work(
    job: Job, root: Path, options: dict[str, Any], tell: Callable[[Report], None]
) -> Failure | None:
    """Run a job; whatever goes wrong is returned, so that it can travel to whoever asked."""
    from skipstone.paper.jobs import run_job

    told = -math.inf

    def progress(step: int, steps: int, loss: float, mean_step: float) -> None:
        nonlocal told
        if step == steps or time.monotonic() - told > REPORT_EVERY:
            told = time.monotonic()
            tell(Report(step, steps, loss, mean_step))

    try:
        run_job(job, root, progress=progress, **options)
    except InvalidInput as error:
        return Failure(str(error))
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return Failure(f"{type(error).__name__}: {first}", traceback.format_exc())
    return None


def main() -> None:
    """Run the job of the command line."""
    # A shell starts what it puts in the background without Ctrl-C, which stopping relies on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_stop_when_left, daemon=True).start()
    channel = _own_channel()

    def tell(message: Report | Failure) -> None:
        with suppress(OSError):  # If nobody listens any more, the stop is under way.
            print(json.dumps({type(message).__name__: asdict(message)}), file=channel, flush=True)

    tell(Report())
    from skipstone.paper.jobs import Job

    order = json.loads(sys.argv[1])
    failure = work(Job(**order["job"]), Path(order["root"]), order["options"], tell)
    if failure is not None:
        tell(failure)
        raise SystemExit(1)


def _stop_when_left() -> None:
    """Interrupt the training when the standard input ends, and again if that was not noticed."""
    while os.read(0, 1024):  # Not through sys.stdin, whose lock Python needs to exit.
        pass
    while True:
        _thread.interrupt_main()
        time.sleep(1)


def _own_channel() -> TextIO:
    """The standard output, which nothing else can write to from now on."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


if __name__ == "__main__":
    main()
