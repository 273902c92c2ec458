"""Grids: the order of their jobs by script, and real ones that fail, die, stop and resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from skipstone.paper.backends import Event, LocalBackend
from skipstone.paper.ray_backend import pack, unpack
from skipstone.paper.worker import Failure, Report

import skipstone.paper.grid as grid_module
from skipstone import InvalidInput
from skipstone.cli import main
from skipstone.paper.grid import Outcome, make_grid, run_grid, with_baselines
from skipstone.paper.jobs import Job
from skipstone.training.run import Run, read_tensors

RNN = Job(task="circles", model="rnn", preset="smoke")
PCODE = Job(task="circles", model="pcode", preset="smoke")
FOREIGN = Job(task="lines", model="rnn", preset="smoke")
CHECKPOINT = "checkpoint.safetensors"


class Recorder:
    """A display that remembers, and may act on what it is shown."""

    def __init__(self, on_report: Callable[[str, Report], None] = lambda name, report: None):
        self.reports: list[tuple[str, Report]] = []
        self.lines: list[str] = []
        self._on_report = on_report

    def running(self, name: str, report: Report) -> None:
        self.reports.append((name, report))
        self.lines.append(f"{name} runs")
        self._on_report(name, report)

    def ended(self, name: str, outcome: str) -> None:
        self.lines.append(f"{name} {outcome}")

    def say(self, text: str) -> None:
        self.lines.append(text)


def record(patch: pytest.MonkeyPatch, recorder: Recorder) -> Recorder:
    @contextmanager
    def show(*_: Any) -> Iterator[Recorder]:
        yield recorder

    patch.setattr(grid_module, "show_grid", show)
    return recorder


class ScriptedBackend:
    """Runs nothing: each poll ends the job that was started first, by script."""

    def __init__(self, slots: int = 1, failing: set[str] | None = None):
        self.slots = slots
        self.failing = failing or set()
        self.started: list[Job] = []
        self.running: list[Job] = []
        self.most = 0
        self.calls: list[str] = []

    def start(self, job: Job) -> None:
        assert job.baseline not in self.running
        self.started.append(job)
        self.running.append(job)
        self.most = max(self.most, len(self.running))

    def poll(self, seconds: float) -> list[Event]:
        job = self.running.pop(0)
        return [Event(job, Failure("it broke") if job.name in self.failing else None)]

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedBackend:
    backend = ScriptedBackend()
    monkeypatch.setattr(grid_module, "_backend", lambda *_: backend)
    return backend


def foreign_folder(root: Path) -> None:
    """Something in the way of one job, which must then fail."""
    (root / FOREIGN.name).mkdir(parents=True)
    (root / FOREIGN.name / "thesis.tex").touch()


def test_a_grid_is_the_product_without_repetition() -> None:
    jobs = make_grid(
        ["lines", "circles"],
        ["rnn", "pcode"],
        seeds=[0, 1, 1],
        hidden=[8, 16],
        tolerances=["auto", 1e-3],
        preset="smoke",
    )
    # Only the PC-ODE has a tolerance: 2 tasks × 2 seeds × 2 sizes × (1 RNN + 2 PC-ODEs).
    assert len(jobs) == len({job.name for job in jobs}) == 24
    assert {job.tolerance for job in jobs if job.model == "rnn"} == {None}


def test_every_needed_rnn_is_planned_once_and_first(tmp_path: Path) -> None:
    assert with_baselines([PCODE, RNN, PCODE], tmp_path) == [RNN, PCODE]
    fixed = Job(task="circles", model="pcode", preset="smoke", tolerance=0.1)
    assert with_baselines([fixed], tmp_path) == [fixed]
    # Folders are told apart by every digit of a tolerance.
    near = Job(task="circles", model="pcode", preset="smoke", tolerance=0.10000001)
    assert with_baselines([fixed, near], tmp_path) == [fixed, near]
    # With the cpu preset, circles have a tolerance of their own and need no RNN.
    cpu = Job(task="circles", model="pcode", preset="cpu")
    assert with_baselines([cpu], tmp_path) == [cpu]


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_a_pcode_waits_for_its_rnn_and_all_slots_are_used(
    slots: int, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.slots = slots
    jobs = make_grid(["circles"], ["pcode"], seeds=[0, 1, 2], preset="smoke")
    outcomes = run_grid(jobs, tmp_path, progress=False)
    assert len(scripted.started) == len(set(scripted.started)) == 6
    for job in jobs:
        assert job.baseline is not None
        assert scripted.started.index(job.baseline) < scripted.started.index(job)
    assert scripted.most == min(slots, 3)
    assert [outcome.failure for outcome in outcomes] == [None] * 6
    assert scripted.calls == ["close"]


def test_a_failure_takes_along_only_what_depends_on_it(
    scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.failing = {RNN.name}
    outcomes = run_grid([PCODE, FOREIGN], tmp_path, progress=False)
    assert scripted.started == [RNN, FOREIGN]
    assert {outcome.job.name: outcome.failure for outcome in outcomes} == {
        RNN.name: "it broke",
        PCODE.name: f"the RNN that its tolerance comes from failed, {RNN.name}",
        FOREIGN.name: None,
    }


def test_local_jobs_run_fail_and_are_skipped_when_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_folder(tmp_path)
    outcomes = run_grid([PCODE, FOREIGN], tmp_path, workers=2, progress=False)
    rnn, pcode, foreign = outcomes
    assert (rnn.failure, pcode.failure) == (None, None)
    assert foreign.failure is not None
    assert "is not empty and not a run" in foreign.failure
    assert pcode.run.config["tolerance"] == rnn.run.result["training_loss"]
    assert rnn.run.result["finished"] <= pcode.run.result["finished"]
    assert rnn.run.result["machine"]["threads"] == max(1, len(os.sched_getaffinity(0)) // 2)
    assert all((run.folder / "evaluation.json").is_file() for run in (rnn.run, pcode.run))

    monkeypatch.setattr(grid_module, "_backend", lambda *_: pytest.fail("nothing is left to do"))
    again = run_grid([PCODE, RNN], tmp_path, progress=False)
    assert [outcome.before for outcome in again] == [True, True]
    # A folder that holds the same name with another recipe is not what was asked for.
    assert not grid_module._is_finished(Job(**{**vars(RNN), "preset": "cpu"}), tmp_path)


def test_a_killed_job_is_reported_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(task="circles", model="rnn", preset="smoke", steps=400)
    backend = LocalBackend(tmp_path, 2, {"device": "cpu", "precision": "32-true"})
    backend.start(job)
    news: list[Any] = []
    while not news or isinstance(news[-1], Report):
        news += [event.news for event in backend.poll(1)]
        if (tmp_path / job.name / CHECKPOINT).exists():
            backend.close()
    assert news[-1].reason == "its process was ended by SIGKILL (out of memory?)"
    assert not Run(tmp_path / job.name).finished

    recorder = record(monkeypatch, Recorder())
    (outcome,) = run_grid([job], tmp_path, workers=2)
    assert outcome.failure is None
    steps = [report.step for _, report in recorder.reports if report.steps == 400]
    assert steps[0] > 10
    assert steps[-1] == 400
    assert steps == sorted(steps)


def processes_about(root: Path) -> list[str]:
    """Command lines of all processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [line] if str(root) in line else []
    return found


def version(file: Path) -> tuple[int, int]:
    """What changes when a file is replaced, however coarse the clock of the disk."""
    stat = file.stat()
    return stat.st_ino, stat.st_mtime_ns


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_job_outlives_its_grid(ending: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C, or the end of the grid's own process: all jobs save and end."""
    arguments = "--task circles --model rnn --seed 0 --seed 1 --preset smoke --steps 1000000"
    command = [sys.executable, "-c", "from skipstone.cli import main; main()", "grid"]
    process = subprocess.Popen(
        [*command, *arguments.split(), "--workers", "2", "--runs", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    files = [tmp_path / f"circles-rnn-smoke-steps1000000-seed{n}" / CHECKPOINT for n in (0, 1)]
    wait_until(lambda: all(file.exists() for file in files))
    assert len(processes_about(tmp_path)) == 3
    before = [version(file) for file in files]
    process.send_signal(ending)
    _, errors = process.communicate(timeout=60)
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert "stopped with 0 of 2 runs ended" in errors
        assert "Run the same again, and it goes on from there." in errors
        assert "Traceback" not in errors
        assert processes_about(tmp_path) == []
    wait_until(lambda: not processes_about(tmp_path), 30)
    for file, earlier in zip(files, before, strict=True):
        assert version(file) != earlier
        assert "progress" in read_tensors(file)[1]


def test_ctrl_c_stops_the_backend(scripted: ScriptedBackend, tmp_path: Path) -> None:
    def interrupt(seconds: float) -> list[Event]:
        raise KeyboardInterrupt

    scripted.poll = interrupt
    with pytest.raises(
        KeyboardInterrupt, match=r"stopped with 0 of 2 runs ended; .* goes on from there"
    ):
        run_grid([PCODE], tmp_path, progress=False)
    assert scripted.calls == ["stop", "close"]


def run_command(patch: pytest.MonkeyPatch, arguments: str) -> int:
    patch.setattr(sys, "argv", ["skipstone", *arguments.split()])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_command_lists_failures_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {}

    def scripted(jobs: list[Job], root: Path, **options: Any) -> list[Outcome]:
        given.update(jobs=jobs, root=root, **options)
        run = Run(root)
        return [Outcome(RNN, run, "it broke"), Outcome(PCODE, run, before=True)]

    monkeypatch.setattr(grid_module, "run_grid", scripted)
    arguments = "--task circles --model rnn --model pcode --seed 0 --seed 1 --hidden 8"
    more = "--tolerance auto --tolerance 0.5 --preset smoke --runs there --workers 3 --quiet"
    assert run_command(monkeypatch, f"grid {arguments} {more}") == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 runs are finished, 1 of them before, 1 failed",
        f"{RNN.name}: it broke",
    ]
    expected = make_grid(
        *(["circles"], ["rnn", "pcode"]),
        seeds=[0, 1],
        hidden=[8],
        tolerances=["auto", 0.5],
        preset="smoke",
    )
    assert given["jobs"] == expected
    assert (given["root"], given["workers"], given["progress"]) == (Path("there"), 3, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--task circle --model rnn", "there is no task 'circle'. Did you mean circles?"),
        ("--task lines --model rrn", "model must be one of pcode, rnn, odernn, latentode"),
        ("--task lines --model rnn --preset smok", "preset must be one of paper, cpu, smoke"),
        ("--task lines --model rnn --workers 0", "workers must be at least 1; got 0."),
        ("--task lines --model pcode --tolerance nan", 'tolerance must be "auto" or a number'),
        ("--task lines --model rnn --device tpu9", "device must be one that this machine has"),
        ("--task lines --model rnn --ray 127.0.0.1:1", "there must be a Ray cluster at 127.0.0.1"),
        ("--task lines --model rnn --ray cluster", "an address has a host and a port"),
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


def test_runs_travel_where_disks_are_not_shared(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    for name in ("config.json", "result.json", "weights.safetensors", CHECKPOINT, ".x.partial"):
        (there / name).write_text(f"the {name}")
    files = pack(there)
    assert set(files) == {"config.json", "result.json", "weights.safetensors"}
    unpack(here, files)
    assert pack(here) == files
    # What is finished here already, as on a shared disk, is left alone.
    unpack(here, {"config.json": b"another"})
    assert pack(here) == files


@pytest.mark.parametrize(
    ("model", "reads", "message"),
    [
        ("rnn", "motion", "reads is for a pcode; a model rnn is shown every observation"),
        ("pcode", "nothing", "reads must be one of values, motion; got 'nothing'"),
    ],
)
def test_what_is_shown_is_checked(model: str, reads: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Job(task="circles", model=model, reads=reads)


def test_what_is_shown_is_in_the_name_and_nothing_to_the_baseline() -> None:
    job = Job(task="circles", model="pcode", preset="paper", reads="motion")
    assert job.name == "circles-pcode-paper-reads-motion-seed0"
    assert job.baseline == Job(task="circles", model="rnn", preset="paper")
