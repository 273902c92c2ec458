"""The command line: what goes wrong is said in one line, with exit code 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest

import skipstone
from helpers import run_cli
from skipstone.console import short_number


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train circle rnn", "circles"),
        ("train circles rrn", "there is no model 'rrn'. Did you mean rnn"),
        (
            "train circles rnn --preset cpuu",
            'preset must be "cpu", "paper" or "smoke"; got \'cpuu\'',
        ),
        ("train circles pcode --preset smoke --set tolerance=NaN", "tolerance must be"),
        ("train circles pcode --preset smoke --set tolerance=-1", "tolerance must be"),
        ("train circles pcode --set hidden", "--set takes name=value, such as hidden=64"),
        ("train circles pcode --set hiden=64", "got 'hiden'. Did you mean hidden?"),
        ("train circles rnn --set tolerance=1", "or \"reads\"; got 'tolerance'"),
        ("train circles rnn --preset smoke --device tpu", 'device must be "auto"'),
        ("train circles rnn --preset smoke --steps 0", "steps must be"),
        ("train circles rnn --preset smoke --set hidden=-4", "hidden must be"),
        ("train circles rnn --preset smoke --set hidden=true", "hidden must be"),
        ("train circles pcode --preset smoke --set hidden=15", "hidden must be even"),
        ("train circles rnn --preset smoke --seed -1", "seed must be"),
        ("show circles --count 100000", "a sheet must have at most 100 trajectories"),
        ("train circles rnn --preset smoke --devices 0", "devices must be"),
        ("train circles rnn --preset smoke --precision 8", 'precision must be "32-true"'),
        ("--import no_such_module tasks", "--import takes a module that can be imported"),
        ("--import .. tasks", "--import takes a module that can be imported; TypeError"),
        ("train circles pcode --preset smoke --set tolerance=Infinity", "must be a finite number"),
        ("train circles rnn --preset smoke --set hidden=9999999", "a network must have at most"),
        ("train circles rnn --preset smoke --steps 99999999999999999999", "steps must be below"),
        ("train circles rnn --seed 99999999999999999999999", "at most 2**63 - 1; got 99999999999"),
        ("plan --tables 99999999", "tables must be at least 2 and at most 1000000"),
        ("evaluate /proc/none", "must be a place that can be written to; No such file"),
        ("show circles --out {long}.png", "must be a place that can be written to; File name too"),
        ("runs {long}", "File name too long"),
        ("evaluate {long}", "File name too long"),
        ("plan --out {file}", "must be a place that can be written to"),
        ("reproduce --out {file}/x", "must be a place that can be written to"),
        ("evaluate {tmp}", "a run is a folder with config.json"),
        ("runs {tmp}", "holds none"),
        ("show circle", "circles"),
    ],
)
def test_bad_input_is_one_line(arguments: str, message: str, tmp_path: Path) -> None:
    names = {"tmp": tmp_path, "long": tmp_path / ("x" * 300), "file": tmp_path / "file"}
    names["file"].write_text("")
    words = arguments.format(**names).split()
    if words[0] == "train":
        words += ["--runs", str(tmp_path / "runs"), "--quiet"]
    said = run_cli(*words)
    assert said.code == 2
    (line,) = said.err.strip().splitlines()
    assert line.startswith("error: ")
    assert re.search(re.escape(message), line)
    assert said.out == ""


def test_a_word_is_no_tolerance() -> None:
    """In a process of its own: here, types are checked before the config checks its numbers."""
    command = [sys.executable, "-m", "skipstone", "train", "circles", "pcode"]
    done = subprocess.run([*command, "--set", "tolerance=tiny"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: tolerance must be a number; got 'tiny'.\n"


def test_version_is_the_packages() -> None:
    said = run_cli("--version")
    assert (said.code, said.out) == (0, f"skipstone {skipstone.__version__}\n")


def test_train_runs_and_evaluate_tell_the_same_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    runs = str(tmp_path)
    options = ["--preset", "smoke", "--set", "tolerance=auto", "--runs", runs, "--quiet"]
    said = run_cli("train", "lines", "pcode", *options, "--device", "cpu")
    assert said.code == 0, said.err
    assert "sample mse" in said.out
    folder = tmp_path / "lines-pcode-smoke-tolerance-auto-seed0"
    # The automatic tolerance is that of the RNN of the same budget, trained beside it.
    config = json.loads((folder / "config.json").read_text())
    beside = tmp_path / f"{folder.name}-tolerance" / "lines-rnn-smoke-seed0"
    loss = json.loads((beside / "result.json").read_text())["training_loss"]
    assert config["model"]["tolerance"] == loss
    assert config["data"]["task"] == "lines"
    assert run_cli("evaluate", str(folder)).code == 0
    evaluation = json.loads((folder / "evaluation.json").read_text())
    assert [wall["batch"] for wall in evaluation["wall_times"]] == [1, 256]
    listed = run_cli("runs", runs).out
    assert "lines-rnn-smoke-seed0" in listed
    assert short_number(evaluation["sample_mse"]["value"]) in listed


def test_errors_of_files_and_of_memory_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes of a disk or a machine that is full is no defect of the program."""
    full = OSError(28, "No space left on device", "runs/x\x1b[31m")
    for error, line in [
        (full, "error: runs/x�[31m: No space left on device. Check the path"),
        (MemoryError(), "error: there is not enough memory for this."),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "error: there is not enough"),
    ]:
        monkeypatch.setattr("skipstone.training.listing.runs_table", mock.Mock(side_effect=error))
        said = run_cli("runs")
        assert said.code == 2
        assert said.err.startswith(line)
        assert said.err.count("\n") == 1
    defect = mock.Mock(side_effect=RuntimeError("a defect"))
    monkeypatch.setattr("skipstone.training.listing.runs_table", defect)
    with pytest.raises(RuntimeError, match="a defect"):
        run_cli("runs")


def test_warnings_are_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(folder: Path) -> str:
        warnings.warn("something to know", stacklevel=1)
        return "a table"

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr("skipstone.training.listing.runs_table", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = run_cli("runs")
    assert (said.out, said.err) == ("a table\n", "warning: something to know\n")


def test_ctrl_c_says_how_to_resume_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("stopped after step 3; start it again")

    monkeypatch.setattr("skipstone.paper.jobs.run_job", stop)
    said = run_cli("train", "lines", "rnn")
    assert (said.code, said.err) == (130, "stopped after step 3; start it again\n")
