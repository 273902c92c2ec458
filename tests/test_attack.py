"""A short attack, and the judges of it: they can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from attack.resuming import spread
from attack.seals import closed, opened
from attack.trial import ALIKE, TRACEBACK, Ended, Tally, fault
from attack.uses import agrees
from skipstone import InvalidInput
from skipstone.files import is_alive
from skipstone.models.tensors import read_tensors, write_tensors

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


def test_failures_that_begin_alike_leave_room_for_others() -> None:
    tally = Tally()
    for number in range(9):
        tally.count(f"load with folder={number}", "a traceback")
    tally.count("fit", "hangs")
    assert (tally.failed, len(tally.failures)) == (10, ALIKE + 1)


def test_a_crash_of_the_attack_itself_is_counted() -> None:
    tally = Tally()
    try:
        raise KeyError("lost")
    except KeyError:
        tally.crash()
    assert (tally.attempted, tally.failed) == (1, 1)
    assert TRACEBACK in tally.failures[0]
    assert "KeyError: 'lost'" in tally.failures[0]


@pytest.mark.parametrize("count", [3, 8, 20])
def test_kills_are_spread_over_all_changes(count: int) -> None:
    places = spread(count, 8, first=5)
    assert len(places) == count
    assert set(places) <= set(range(1, 9))
    assert len(set(places)) == min(count, 8)


def test_a_header_is_sealed_as_the_package_seals_it(tmp_path: Path) -> None:
    """So that an edit gets past the checksum, to what has to refuse it."""
    path = tmp_path / "weights.safetensors"
    write_tensors(path, {"a": torch.ones(3)}, {"progress": json.dumps({"step": 4})})
    header, rest = opened(path.read_bytes())
    header["__metadata__"]["skipstone"]["progress"]["step"] = 5
    path.write_bytes(closed(header, rest, sealed=True))
    tensors, notes = read_tensors(path)
    assert torch.equal(tensors["a"], torch.ones(3))
    assert json.loads(notes["progress"]) == {"step": 5}
    path.write_bytes(closed(*opened(path.read_bytes())[:1], rest[:-1], sealed=False))
    with pytest.raises(InvalidInput):
        read_tensors(path)


@pytest.mark.parametrize(
    ("found", "written", "same"),
    [(1e30, 10**30, True), ([2], [2.0], True), (1, True, False), ("1", 1, False), ([], [1], False)],
)
def test_a_value_that_is_loaded_is_the_one_that_was_written(
    found: object, written: object, same: bool
) -> None:
    assert agrees(found, written) is same


def in_a_process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which forks before it has threads."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_a_kind_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    done = in_a_process("attack", "--only", "nonsense", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith('error: --only must be "calls", "commands", "damage"')
    assert len(done.stderr.splitlines()) == 1


def test_work_that_raises_anything_ends_in_its_own_process(tmp_path: Path) -> None:
    """Otherwise it would go on as its parent, and remove the folder that both are in."""
    script = (
        "import os, sys\nfrom attack.trial import run_work, scratch\n"
        "with scratch() as folder:\n"
        "    ended = run_work(lambda: os.close(1) or sys.stdout.write('x' * 9))\n"
        "    print(ended.code, folder.is_dir())\n"
    )
    (tmp_path / "tried.py").write_text(script)
    done = in_a_process("tried", cwd=tmp_path)
    assert done.stdout == "1 True\n", done.stderr


def test_an_attack_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    """Neither its folder nor the work that it was waiting for."""
    script = (
        "import os, signal, time\nfrom attack.trial import Child, run_work, scratch\n"
        "with scratch() as folder:\n"
        "    slow = Child(lambda: time.sleep(60))\n"
        "    print(slow.pid, folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    slow.end()\n"
    )
    (tmp_path / "ended.py").write_text(script)
    done = in_a_process("ended", cwd=tmp_path)
    pid, folder = done.stdout.split()
    assert done.returncode == 143, done.stderr
    assert not Path(folder).exists()
    assert not is_alive(int(pid))


def test_a_short_attack_is_survived(tmp_path: Path) -> None:
    out = tmp_path / "attack.json"
    words = ("attack", "--share", "0.003", "--out", str(out))
    done = in_a_process(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())
    kinds = found["kinds"]
    assert {kind: counts["attempted"] > 0 for kind, counts in kinds.items()} == dict.fromkeys(
        ["calls", "commands", "damage", "kills", "disks", "threads", "sharing"], True
    )
    assert all(counts["failed"] == 0 for counts in kinds.values())
    assert found["finished"]
    assert "calls: 30 of 30, 0 failed" in done.stderr


FAST = ("checkpoints", "lock", "forecast", "updates")


def test_a_broken_package_is_noticed(tmp_path: Path) -> None:
    """No checkpoints, no lock, a forecast that is not written, and `max_updates=2.5`."""
    done = in_a_process("attack.breakages", *FAST, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        [f"{name}:", "noticed"] for name in FAST
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["resuming", "sigterm", "atomic", "full", "seals", "schemas", "layouts"]
)
def test_other_breakages_are_noticed_too(name: str, tmp_path: Path) -> None:
    done = in_a_process("attack.breakages", name, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
