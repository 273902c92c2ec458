"""The command line: what goes wrong is said in one line, with exit code 2."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from skipstone.cli import main
from skipstone.console import short_number
from skipstone.training.run import Run


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["skipstone", *arguments])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train circle rnn", "there is no task 'circle'. Did you mean circles?"),
        ("train circles rrn", "there is no model 'rrn'. Did you mean rnn?"),
        ("train circles rnn --preset cpuu", 'preset must be "cpu", "paper" or "smoke"; got'),
        ("train circles pcode --preset smoke --set tolerance=-1", "at least 0; got -1"),
        ("train circles pcode --set tolerance", "--set takes name=value, such as hidden=64; got"),
        ("train circles rnn --preset smoke --set reads=motion", "option of RNN must be"),
        ("train circles rnn --preset smoke --device tpu", 'device must be "auto" or "cpu"; got'),
        ("train circles rnn --preset smoke --steps 0", "steps must be at least 1; got 0"),
        ("train circles rnn --preset smoke --set hidden=-4", "hidden must be at least 1; got -4"),
        ("train circles rnn --preset smoke --set hidden=true", "hidden must be a whole number"),
        ("train circles pcode --preset smoke --set hidden=15", "hidden must be even"),
        ("train circles rnn --preset smoke --seed -1", "seed must be a whole number"),
        ("show circles --count 100000", "a sheet must have at most 100 trajectories"),
        ("train circles rnn --preset smoke --devices 0", "devices must be at least 1; got 0"),
        ("train circles rnn --preset smoke --precision 8", 'precision must be "32-true"'),
        ("--import nowhere tasks", "--import takes a module that can be imported; No module"),
        ("evaluate {tmp}", "a run is a folder with config.json"),
        ("runs {tmp}", "holds none"),
        ("show circle", "circles"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = arguments.format(tmp=tmp_path).split()
    if words[0] == "train":
        words += ["--runs", str(tmp_path / "runs"), "--quiet"]
    assert run(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    lines = said.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert re.search(re.escape(message), lines[0])
    assert said.out == ""


def test_words_in_place_of_numbers_are_explained() -> None:
    """In a process of its own, where annotations are not checked before the config is."""
    for word in ("tiny", "nan"):
        arguments = ["train", "circles", "pcode", "--set", f"tolerance={word}"]
        code = "from skipstone.cli import main; main()"
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == f"error: tolerance must be a number; got {word!r}.\n"


def test_version_is_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--version", monkeypatch=monkeypatch) == 0
    assert re.fullmatch(r"skipstone \d+\.\d+\.\d+", capsys.readouterr().out.strip())


def test_train_runs_and_evaluate_tell_the_same_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a task and a model of one's own, which are known once their module is imported."""
    runs = str(tmp_path)
    mine = ["--import", "own_models"]
    options = ["--preset", "smoke", "--runs", runs, "--quiet", "--device", "cpu"]
    assert run(*mine, "train", "dots", "mine", *options, monkeypatch=monkeypatch) == 0
    assert "sample mse" in capsys.readouterr().out
    more = [*options, "--set", "tolerance=auto"]
    assert run(*mine, "train", "dots", "pcode", *more, monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    folder = tmp_path / "dots-pcode-smoke-toleranceauto-seed0"
    assert isinstance(Run(folder).config["model"]["tolerance"], float)
    assert Run(folder).config["data"]["task"] == "dots"
    assert run(*mine, "evaluate", str(folder), monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    evaluation = Run(folder).evaluation
    assert [wall["batch"] for wall in evaluation["wall_times"]] == [1, 256]
    assert run("runs", runs, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "dots-mine-smoke-seed0" in said
    assert short_number(evaluation["sample_mse"]["value"]) in said


def test_ctrl_c_says_how_to_resume_and_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("stopped after step 3; start it again")

    monkeypatch.setattr("skipstone.paper.jobs.run_job", stop)
    assert run("train", "lines", "rnn", monkeypatch=monkeypatch) == 130
    assert capsys.readouterr().err == "stopped after step 3; start it again\n"
