"""One trial: work in a process of its own, how it ended, and whether that is acceptable."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

TRACEBACK = "Traceback (most recent call last)"
SECONDS = 120.0
"""After which work that has not ended hangs."""

KEPT = 20
"""Failures of a kind that are described; the others are counted."""


@dataclass(frozen=True)
class Ended:
    """How work in a process ended."""

    code: int
    """Exit code; negative for a signal."""
    said: str
    """What it printed, errors last."""
    hung: bool = False


@dataclass
class Tally:
    """What became of the trials of one kind."""

    attempted: int = 0
    survived: int = 0
    failures: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def count(self, trial: str, failure: str | None, outcome: str = "") -> None:
        """Add a trial; `failure` is None if it went as it should."""
        self.attempted += 1
        self.outcomes[outcome or ("survived" if failure is None else "failed")] += 1
        if failure is None:
            self.survived += 1
        elif len(self.failures) < KEPT:
            self.failures.append(f"{trial}: {failure}"[:400])

    def to_dict(self) -> dict[str, object]:
        """For `attack.json`."""
        return {
            "attempted": self.attempted,
            "survived": self.survived,
            "failed": self.attempted - self.survived,
            "outcomes": dict(sorted(self.outcomes.items())),
            "failures": self.failures,
        }


class Child:
    """Work in a forked process, whose output goes into a file. Everything is imported already, so
    that it begins at once."""

    def __init__(self, work: Callable[[], object]):
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the last reference.
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_run(work, self._file.fileno()))

    def kill(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self, seconds: float = SECONDS) -> Ended:
        """Wait for it; what takes too long is killed."""
        until, hung = time.monotonic() + seconds, False
        found, status = os.waitpid(self.pid, os.WNOHANG)
        while not found:
            if time.monotonic() > until:
                hung = True
                self.kill(signal.SIGKILL)
                found, status = os.waitpid(self.pid, 0)
            else:
                time.sleep(0.005)
                found, status = os.waitpid(self.pid, os.WNOHANG)
        self._file.seek(0)
        said = self._file.read().decode(errors="replace")
        return Ended(os.waitstatus_to_exitcode(status), said, hung)


def _run(work: Callable[[], object], output: int) -> int:
    """In the child: the exit code of the work."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else 0)
    try:
        work()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run_work(work: Callable[[], object], seconds: float = SECONDS) -> Ended:
    """Run work in a process of its own, to its end."""
    return Child(work).end(seconds)


def command(*words: str) -> Callable[[], None]:
    """The `skipstone` command as work."""

    def work() -> None:
        from skipstone.cli import main

        with mock.patch.object(sys, "argv", ["skipstone", *words]):
            main()

    return work


def fault(ended: Ended, allowed: tuple[int, ...] = (0, 2)) -> str | None:
    """Why an end is not acceptable; None if it is. With exit code 2 the last line says why."""
    lines = ended.said.strip().splitlines()
    last = lines[-1] if lines else ""
    if ended.hung:
        return "hangs"
    if TRACEBACK in ended.said:
        return f"a traceback, {last}"
    if ended.code not in allowed:
        return f"ends with {ended.code}, {last!r}"
    # The second is how the parser of commands frames what it says.
    if ended.code == 2 and not any(
        line.startswith(("error: ", "╭─ Error", "Usage")) for line in lines
    ):
        return f"fails without saying why, {last!r}"
    return None


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder to work in, where relative paths lead to."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)
