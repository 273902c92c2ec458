"""SIGTERM ends a process as Ctrl-C does, with a word and a code of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from skipstone.signals import Terminated, stop_saying, terminable


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """After its message, SIGTERM is ignored; the tests go on."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_sigterm_interrupts_says_what_was_said_and_ends_with_143(
    capsys: pytest.CaptureFixture[str],
) -> None:

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(10)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("saved; start it again") from None

    with pytest.raises(Terminated) as end, terminable():
        work()
    assert end.value.code == 143
    assert capsys.readouterr().err == "saved; start it again\n"


def test_a_second_sigterm_changes_nothing() -> None:
    """It comes after the message, when the process is ending. Names are printed as text."""
    code = """
import atexit, os, signal
from skipstone.signals import stop_saying, terminable
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
with terminable():
    stop_saying("all is in runs/\\x1b[31mred", signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "all is in runs/�[31mred\n")


def test_ctrl_c_stays_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt, match="saved"), terminable():
        stop_saying("saved", signal.SIGINT)
    assert capsys.readouterr().err == ""


def test_other_threads_leave_signals_alone() -> None:
    seen = []

    def work() -> None:
        with terminable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.parametrize("module", ["skipstone.cli", "typer", "torch"])
def test_ctrl_c_while_something_is_imported_prints_no_traceback(module: str) -> None:
    """The interrupt comes when the import of a module begins."""
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["skipstone", "train", "circles", "rnn"]
from skipstone.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_nothing_is_imported_before_ctrl_c_is_answered() -> None:
    """Before `main` begins, Python answers, with a traceback: nothing may take time there."""
    code = """
import sys
before = set(sys.modules)
from skipstone.__main__ import main
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["skipstone", "skipstone.__main__"], done.stderr
