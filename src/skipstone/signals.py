"""Ending when asked to: save, say how to go on, and exit with 130 for Ctrl-C, 143 for SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from skipstone.errors import printable

TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, as shells have it."""


class Terminated(SystemExit):
    """The end of a process that SIGTERM has asked to end, after everything is saved."""

    def __init__(self, message: str):
        """An end with exit code 143; what was done and how to resume is in `message`."""
        super().__init__(TERMINATED)
        self.message = message


def stop_saying(message: str, number: int) -> NoReturn:
    """End as a signal asks for. Ctrl-C is a `KeyboardInterrupt`, as everywhere in Python. For
    SIGTERM, which Python knows no exception for, the message is printed. Another SIGTERM changes
    nothing from then on: the process is ending, and its exit code should say so."""
    if number != signal.SIGTERM:
        raise KeyboardInterrupt(message)
    if threading.current_thread() is threading.main_thread():
        # No handler: the interpreter takes those down before it ends.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(printable(message), file=sys.stderr, flush=True)
    raise Terminated(message)


@contextmanager
def terminable() -> Iterator[None]:
    """In this block SIGTERM does what Ctrl-C does; the process then exits with 143 instead."""
    came = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt as stop:
        if not came:
            raise
        stop_saying(str(stop) or "terminated", signal.SIGTERM)
    finally:
        if signal.getsignal(signal.SIGTERM) is interrupt:
            signal.signal(signal.SIGTERM, before)
