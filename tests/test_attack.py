"""A short attack, and the judges of it: they can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attack.trial import Ended, Tally, fault

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("ended", "failure"),
    [
        (Ended(0, "done"), None),
        (Ended(2, "warning: so so\nerror: times must increase."), None),
        (Ended(2, ""), "fails without saying why, ''"),
        (Ended(1, "Traceback (most recent call last):\nKeyError: 3"), "a traceback, KeyError: 3"),
        (Ended(0, "Traceback (most recent call last):\nKeyError: 3"), "a traceback, KeyError: 3"),
        (Ended(-9, "killed"), "ends with -9, 'killed'"),
        (Ended(-9, "", hung=True), "hangs"),
    ],
)
def test_only_success_and_one_line_are_acceptable(ended: Ended, failure: str | None) -> None:
    assert fault(ended) == failure


def test_a_tally_adds_up() -> None:
    tally = Tally()
    tally.count("one", None)
    tally.count("other", "hangs")
    found = tally.to_dict()
    assert (found["attempted"], found["survived"], found["failed"]) == (2, 1, 1)
    assert found["failures"] == ["other: hangs"]


def test_a_short_attack_is_survived(tmp_path: Path) -> None:
    """In a process of its own, which forks before it has threads."""
    out = tmp_path / "attack.json"
    command = [sys.executable, "-m", "attack", "--share", "0.003", "--seed", "3", "--out", str(out)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = json.loads(out.read_text())["kinds"]
    assert {kind: counts["attempted"] > 0 for kind, counts in kinds.items()} == dict.fromkeys(
        ["calls", "commands", "damage", "kills", "disks", "threads", "sharing"], True
    )
    assert all(counts["failed"] == 0 for counts in kinds.values())
