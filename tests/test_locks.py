"""One process at a time: who is in the way is named, and a crash leaves nothing in the way."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from skipstone.errors import InvalidInput
from skipstone.locks import HOLDER, LOCK, locked

HOLD = (
    "import pathlib, sys, time; from skipstone.locks import locked\n"
    "with locked(pathlib.Path(sys.argv[1]), 'train in'):\n"
    "    print('held', flush=True); time.sleep(600)"
)


def test_a_lock_names_its_holder_until_it_is_released(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    since = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    holder = rf"process {os.getpid()} on {re.escape(socket.gethostname())}, since {since}, does"
    with locked(folder, "train in"):
        for _ in range(2):  # Being refused takes nothing from the holder.
            with (
                pytest.raises(InvalidInput, match=f"can train in {folder}; {holder}"),
                locked(folder, "train in"),
            ):
                pytest.fail("two at a time")
        (folder / HOLDER).write_text("null")
        with pytest.raises(InvalidInput, match="another process does"), locked(folder, "train in"):
            pytest.fail("two at a time")
    with locked(folder, "train in"):
        pass
    assert [path.name for path in folder.iterdir()] == [LOCK]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    refused = pytest.raises(InvalidInput, match=f"process {process.pid} on ")
    with refused, locked(tmp_path, "train in"):
        pytest.fail("two at a time")
    process.kill()
    process.communicate()
    assert (tmp_path / HOLDER).exists()  # It had no time to tidy up.
    with locked(tmp_path, "train in"):
        assert str(os.getpid()) in (tmp_path / HOLDER).read_text()
