"""Grids of real jobs in processes: they fail, die, are stopped, and go on where they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import own_models
import pytest

import skipstone.paper.grid as grid_module
from helpers import edit_json
from skipstone import InvalidInput
from skipstone.cli import main
from skipstone.locks import locked
from skipstone.models.tensors import read_tensors
from skipstone.paper.grid import Outcome, run_grid
from skipstone.paper.jobs import Job, make_grid, run_job
from skipstone.training.run import CHECKPOINT, Run

TASK = own_models.DOTS.name
RNN = Job(task=TASK, model="rnn", preset="smoke")
PCODE = Job(task=TASK, model="pcode", preset="smoke")
FOREIGN = Job(task=TASK, model="odernn", preset="smoke")
STEPS = 300
"""So many that a training can be stopped in their midst, and so few that it can be repeated."""


def foreign_folder(root: Path) -> None:
    """Something in the way of one job, which must then fail."""
    (root / FOREIGN.name).mkdir(parents=True)
    (root / FOREIGN.name / "thesis.tex").touch()


def test_jobs_that_fail_or_die_leave_the_others_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, dying, plain, mine = (
        Job(task=TASK, model=name, preset="smoke")
        for name in ("own_models:Failing", "own_models:Dying", "own_models:Plain", "mine")
    )
    foreign_folder(tmp_path)
    over = tmp_path / "logs" / f"{RNN.name}.log"  # Of a failure that is no more.
    over.parent.mkdir()
    over.touch()
    jobs = [failing, dying, FOREIGN, RNN, plain, mine, RNN]
    outcomes = run_grid(jobs, tmp_path, workers=2, progress=False)
    found = {outcome.job.name: outcome for outcome in outcomes}
    assert len(outcomes) == len(found) == 6
    log = tmp_path / "logs" / f"{failing.name}.log"
    assert found[failing.name].failure == f"RuntimeError: it broke ({log})"
    assert 'raise RuntimeError("it broke\\non purpose")' in log.read_text()
    assert found[dying.name].failure == "its process ended abruptly (out of memory?)"
    assert "is not empty and not a run" in str(found[FOREIGN.name].failure)
    assert [path.name for path in log.parent.iterdir()] == [log.name]
    for job in (RNN, plain, mine):
        assert found[job.name].failure is None
        run = found[job.name].run
        assert run.evaluation["sample_mse"]["value"] > 0
        assert run.result["machine"]["threads"] == max(1, len(os.sched_getaffinity(0)) // 2)
    kinds = [Run(tmp_path / job.name).config["model"]["kind"] for job in (plain, mine)]
    assert kinds == ["own_models:Plain", "mine"]

    monkeypatch.setattr(grid_module, "_pool", lambda *_: pytest.fail("nothing is left to do"))
    again = run_grid([RNN, plain], tmp_path, progress=False)
    assert [(outcome.before, outcome.failure) for outcome in again] == [(True, None)] * 2
    # A folder that holds the same name with another recipe is not what was asked for.
    edit_json(
        tmp_path / RNN.name / "config.json", lambda config: config["recipe"].update(batch_size=17)
    )
    assert not grid_module.is_finished(RNN, tmp_path)


def start_grid(root: Path, steps: int = STEPS) -> subprocess.Popen[str]:
    """Two jobs side by side, from the command line, in a session of their own."""
    code = "from skipstone.cli import main; main()"
    arguments = f"--import own_models grid --task {TASK} --model rnn --seed 0 --seed 1"
    more = f"--preset smoke --steps {steps} --workers 2 --runs {root}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments.split(), *more.split()],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def folders(root: Path, steps: int = STEPS) -> list[Path]:
    return [root / f"{TASK}-rnn-smoke-steps{steps}-seed{seed}" for seed in (0, 1)]


def workers_of(process: subprocess.Popen[str]) -> set[int]:
    """Running processes of a grid's session, besides its own and the standard library's."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (path / "cmdline").read_text()
        except OSError:  # It has just ended.
            continue
        if int(session) == process.pid and state != "Z" and "spawn_main" in command:
            found.add(int(path.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def assert_stopped(process: subprocess.Popen[str], code: int = 130) -> None:
    """The grid ended as after Ctrl-C, all of it."""
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "stopped with 0 of 2 runs ended" in errors
    assert "Run the same again, and it goes on from there." in errors
    assert "Traceback" not in errors
    assert workers_of(process) == set()


reads_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@reads_proc
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["parent", "group"])
def test_ctrl_c_saves_every_run_and_the_same_again_goes_on(
    send: Callable[[int, int], None], tmp_path: Path
) -> None:
    """A terminal interrupts the whole group, `kill -INT` the grid alone."""
    process = start_grid(tmp_path)
    wait_until(lambda: all((folder / CHECKPOINT).exists() for folder in folders(tmp_path)))
    assert len(workers_of(process)) == 2
    send(process.pid, signal.SIGINT)
    assert_stopped(process)
    for folder in folders(tmp_path):
        assert not Run(folder).finished
        assert "progress" in read_tensors(folder / CHECKPOINT)[1]
    if send is os.killpg:
        job = Job(task=TASK, model="rnn", preset="smoke", steps=STEPS, seed=1)
        (outcome,) = run_grid([job], tmp_path, workers=2, progress=False)
        whole = run_job(job, tmp_path / "whole", progress=False)
        assert outcome.failure is None
        for name in ("weights_sha256", "training_loss", "validation_error", "best_step"):
            assert outcome.run.result[name] == whole.result[name]
        assert outcome.run.evaluation == whole.evaluation


@reads_proc
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["parent", "group"])
def test_ctrl_c_before_the_workers_are_ready(
    send: Callable[[int, int], None], tmp_path: Path
) -> None:
    process = start_grid(tmp_path, steps=1_000_000)
    wait_until(lambda: len(workers_of(process)) > 0)
    send(process.pid, signal.SIGINT)
    assert_stopped(process)


@reads_proc
@pytest.mark.slow
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["parent", "group"])
def test_sigterm_saves_every_run(send: Callable[[int, int], None], tmp_path: Path) -> None:
    """`kill` reaches the grid alone, a service manager all of its processes."""
    process = start_grid(tmp_path, steps=1_000_000)
    files = [folder / CHECKPOINT for folder in folders(tmp_path, 1_000_000)]
    wait_until(lambda: all(file.exists() for file in files))
    send(process.pid, signal.SIGTERM)
    assert_stopped(process, code=143)
    assert all("progress" in read_tensors(file)[1] for file in files)


def test_one_grid_at_a_time_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ScriptedPool(AssertionError("nothing is started"))
    monkeypatch.setattr(grid_module, "_pool", lambda *_: pool)
    refused = pytest.raises(InvalidInput, match=rf"can run a grid in {tmp_path}; process \d+ on ")
    with locked(tmp_path, "run a grid in"), refused:
        run_grid([RNN], tmp_path, progress=False)
    assert pool.calls == ["close"]


@reads_proc
def test_no_job_outlives_its_grid(tmp_path: Path) -> None:
    process = start_grid(tmp_path, steps=1_000_000)
    files = [folder / CHECKPOINT for folder in folders(tmp_path, 1_000_000)]
    wait_until(lambda: all(file.exists() for file in files))
    before = [file.stat().st_mtime_ns for file in files]
    process.kill()
    process.communicate()  # Ends when nobody writes to its pipe any more.
    assert workers_of(process) == set()
    for file, earlier in zip(files, before, strict=True):
        assert file.stat().st_mtime_ns > earlier
        assert "progress" in read_tensors(file)[1]


class ScriptedPool:
    """Runs nothing: it fails, and remembers what it was asked."""

    def __init__(self, error: BaseException):
        self.error = error
        self.calls: list[str] = []

    def submit(self, job: Job, *rest: Any) -> Any:
        self.calls.append(job.name)
        raise self.error

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), r"stopped with 0 of 1 runs ended; .* goes on from there"),
        (OSError("no more processes"), "no more processes"),
    ],
)
def test_whatever_ends_a_grid_stops_its_jobs(
    error: BaseException, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ScriptedPool(error)
    monkeypatch.setattr(grid_module, "_pool", lambda *_: pool)
    with pytest.raises(type(error), match=message):
        run_grid([RNN], tmp_path, progress=False)
    assert pool.calls == [RNN.name, "stop", "close"]


def run_command(patch: pytest.MonkeyPatch, arguments: str) -> int:
    patch.setattr(sys, "argv", ["skipstone", *arguments.split()])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_command_lists_failures_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {}

    def scripted(jobs: list[Job], root: Path, **options: Any) -> list[Outcome]:
        given.update(jobs=jobs, root=root, **options)
        run = Run(root)
        return [Outcome(RNN, run, "it broke"), Outcome(PCODE, run, before=True)]

    monkeypatch.setattr(grid_module, "run_grid", scripted)
    arguments = "--task dots --model rnn --model pcode --seed 0 --seed 1 --set hidden=8"
    more = "--set tolerance=auto --set tolerance=0.5 --preset smoke --runs there --workers 3"
    assert run_command(monkeypatch, f"grid {arguments} {more} --quiet") == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 runs are finished, 1 of them before, 1 failed",
        f"{RNN.name}: it broke",
    ]
    expected = make_grid(
        [TASK],
        ["rnn", "pcode"],
        seeds=[0, 1],
        options={"hidden": [8], "tolerance": ["auto", 0.5]},
        preset="smoke",
    )
    assert given["jobs"] == expected
    assert (given["root"], given["workers"], given["progress"]) == (Path("there"), 3, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--task circle --model rnn", "there is no task 'circle'. Did you mean circles?"),
        ("--task lines --model rrn", "there is no model 'rrn'. Did you mean rnn?"),
        ("--task lines --model nowhere:Model", "must be a name or an import path"),
        ("--task lines --model rnn --preset smok", 'preset must be "cpu", "paper" or "smoke"'),
        ("--task lines --model rnn --workers 0", "workers must be at least 1; got 0."),
        ("--task lines --model pcode --set tolerance=-1", "tolerance must be at least 0; got -1"),
        ("--task lines --model rnn --device tpu9", 'device must be "auto" or "cpu"; got'),
        ("--task lines --model rnn --ray 127.0.0.1:1", "there must be a Ray cluster at 127.0.0.1"),
        ("--task lines --model rnn --ray cluster", "an address has a host and a port"),
        ("--task lines --model rnn --ray here:1 --workers 2", "workers=2 for the cluster at here"),
    ],
)
def test_mistakes_are_one_line_and_code_two(
    arguments: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--ray" in arguments:
        pytest.importorskip("ray")
    assert run_command(monkeypatch, f"grid {arguments} --runs {tmp_path}") == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert len(errors.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_cluster_package_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"pip install 'skipstone\[ray\]'"):
        run_grid([RNN], tmp_path, ray="127.0.0.1:1", progress=False)
