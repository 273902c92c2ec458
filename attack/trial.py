"""One trial: work in a process of its own, how it ended, and whether that is acceptable."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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

KEPT, ALIKE = 60, 3
"""Failures of a kind that are described, and how many of them may begin alike; the others are
counted."""

SHOWN = 20
"""How often the progress of a kind is shown."""

_PIPE = 2**20
"""Bytes that work may print before somebody reads them."""


@dataclass(frozen=True)
class Ended:
    """How work in a process ended."""

    code: int
    """Exit code; negative for a signal."""
    said: str
    """What it printed, errors last."""
    hung: bool = False

    @property
    def last(self) -> str:
        """The last line of what it printed."""
        return (self.said.strip().splitlines() or [""])[-1]


@dataclass
class Tally:
    """What became of the trials of one kind."""

    kind: str = ""
    planned: int = 0
    """Trials to come, for the progress; none is shown for 0."""
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
            begins = re.split(r"[=\d]", trial)[0]
            if sum(told.startswith(begins) for told in self.failures) < ALIKE:
                self.failures.append(f"{trial}: {failure}"[:400])
        if self.planned and self.attempted % max(1, self.planned // SHOWN) == 0:
            told = f"{self.kind}: {self.attempted} of {self.planned}, {self.failed} failed"
            print(told, file=sys.stderr, flush=True)

    def crash(self) -> None:
        """Count the end of a kind by an error of the attack itself, with all of its traceback."""
        self.attempted += 1
        self.outcomes["crashed"] += 1
        self.failures.append(f"the attack itself crashed: {traceback.format_exc()}")

    @property
    def failed(self) -> int:
        return self.attempted - self.survived

    def to_dict(self) -> dict[str, object]:
        """For `attack.json`."""
        return {
            "attempted": self.attempted,
            "survived": self.survived,
            "failed": self.failed,
            "outcomes": dict(sorted(self.outcomes.items())),
            "failures": self.failures,
        }


class Child:
    """Work in a forked process, whose output is kept. Everything is imported already, so that it
    begins at once."""

    living: list[Child] = []  # noqa: RUF012 - shared on purpose: all that have not been waited for.

    def __init__(self, work: Callable[[], object]):
        # A pipe, since a file would be under the limits that disks are given here.
        self._output, output = os.pipe()
        fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE)
        os.set_blocking(self._output, False)
        self._said = b""
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            # Whatever happens: beyond this line a child would go on as its parent, and remove its
            # folder.
            try:
                code = _run(work, output)
            finally:
                os._exit(code)
        os.close(output)
        Child.living.append(self)

    def kill(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self, seconds: float = SECONDS) -> Ended:
        """Wait for it; what takes too long is killed, with whatever it has started."""
        until, hung = time.monotonic() + seconds, False
        found, status = os.waitpid(self.pid, os.WNOHANG)
        while not found:
            self._read()
            hung = hung or time.monotonic() > until
            if hung:
                self.kill(signal.SIGKILL)
            time.sleep(0.003)
            found, status = os.waitpid(self.pid, os.WNOHANG)
        Child.living.remove(self)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._read()
        os.close(self._output)
        return Ended(os.waitstatus_to_exitcode(status), self._said.decode(errors="replace"), hung)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while some := os.read(self._output, _PIPE):
                self._said += some


def _run(work: Callable[[], object], output: int) -> int:
    """In the child: the exit code of the work."""
    os.setpgid(0, 0)
    Child.living.clear()  # They are the parent's.
    os.dup2(output, 1)
    os.dup2(output, 2)
    # New ones: the parent's may be files, which know a position that a pipe does not have.
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for as long as the process lasts.
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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


def explained(work: Callable[[], object]) -> Callable[[], None]:
    """Work as the command does it: errors that the library explains are a line."""

    def told() -> None:
        from skipstone import InvalidInput

        try:
            work()
        except InvalidInput as error:
            os.write(1, f"error: {error}\n"[:2000].encode(errors="replace"))
            raise SystemExit(2) from None

    return told


def command(*words: str) -> Callable[[], None]:
    """The `skipstone` command as work."""

    def work() -> None:
        from skipstone.cli import main

        with mock.patch.object(sys, "argv", ["skipstone", *words]):
            main()

    return work


def fault(ended: Ended, allowed: tuple[int, ...] = (0, 2)) -> str | None:
    """Why an end is not acceptable; None if it is. With exit code 2 the last line says why."""
    if ended.hung:
        return "hangs"
    if TRACEBACK in ended.said:
        return f"a traceback, {ended.last}"
    if ended.code not in allowed:
        return f"ends with {ended.code}, {ended.last!r}"
    # The second is how the parser of commands frames what it says.
    if ended.code == 2 and not any(
        line.startswith(("error: ", "╭─ Error", "Usage")) for line in ended.said.splitlines()
    ):
        return f"fails without saying why, {ended.last!r}"
    return None


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder to work in, where relative paths lead to, with a cache of its own. No work outlives
    it, and SIGTERM ends it as Ctrl-C does."""
    before = Path.cwd()
    usual = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        cache = {"XDG_CACHE_HOME": str(Path(folder) / "cache")}
        try:
            with mock.patch.dict(os.environ, cache):
                yield Path(folder)
        finally:
            os.chdir(before)
            for child in list(Child.living):
                child.end(0.0)
            signal.signal(signal.SIGTERM, usual)
