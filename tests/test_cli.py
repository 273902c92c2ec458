"""The command line: what goes wrong is said in one line, with exit code 2."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from skipstone.cli import main


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
        ("train circle rnn", "circles"),
        ("train circles rrn", "model must be one of pcode, rnn, odernn, latentode; got 'rrn'. Did"),
        ("train circles rnn --preset cpuu", "preset must be one of paper, cpu, smoke; got 'cpuu'"),
        ("train circles pcode --preset smoke --tolerance nan", "zero or more; got nan"),
        ("train circles pcode --preset smoke --tolerance -1", "zero or more; got -1.0"),
        ("train circles pcode --tolerance tiny", "tolerance must be auto or a number; got 'tiny'"),
        ("train circles rnn --preset smoke --device tpu", "device must be one that this machine"),
        ("train circles rnn --preset smoke --steps 0", "steps must be at least 1; got 0"),
        ("train circles rnn --preset smoke --hidden -4", "hidden must be a whole number"),
        ("train circles rnn --preset smoke --hidden 0", "hidden must be a whole number"),
        ("train circles pcode --preset smoke --hidden 15", "hidden must be even"),
        ("train circles rnn --preset smoke --seed -1", "seed must be a whole number"),
        ("show circles --count 100000", "a sheet must have at most 100 trajectories"),
        ("train circles rnn --preset smoke --devices 0", "devices must be at least 1; got 0"),
        ("train circles rnn --preset smoke --precision 8", "precision must be one of"),
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


def test_version_is_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--version", monkeypatch=monkeypatch) == 0
    assert re.fullmatch(r"skipstone \d+\.\d+\.\d+", capsys.readouterr().out.strip())


def test_train_runs_and_evaluate_tell_the_same_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path)
    options = ["--preset", "smoke", "--runs", runs, "--quiet", "--device", "cpu"]
    assert run("train", "lines", "pcode", *options, monkeypatch=monkeypatch) == 0
    assert "sample mse" in capsys.readouterr().out
    folder = tmp_path / "lines-pcode-smoke-seed0"
    # The automatic tolerance is that of the RNN of the same budget, trained beside it.
    config = json.loads((folder / "config.json").read_text())
    baseline: dict[str, Any] = json.loads(
        (tmp_path / "lines-rnn-smoke-seed0" / "result.json").read_text()
    )
    assert config["tolerance"] == baseline["training_loss"]
    assert config["data"]["task"] == "lines"
    assert run("evaluate", str(folder), monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    evaluation = json.loads((folder / "evaluation.json").read_text())
    assert [wall["batch"] for wall in evaluation["wall_times"]] == [1, 256]
    assert run("runs", runs, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "lines-rnn-smoke-seed0" in said
    assert f"{evaluation['sample_mse']['value']:.3g}" in said
