"""`skipstone reproduce`, from the command line to the files it leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skipstone import InvalidInput
from skipstone.cli import app
from skipstone.paper.jobs import Job
from skipstone.paper.reproduce import train_live

SCRATCH = ["reproduce", "--from-scratch", "--preset", "smoke", "--task", "lines", "--workers", "1"]


@pytest.fixture(autouse=True)
def timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wall times are part of a report; how exact they are is asked elsewhere."""
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    monkeypatch.setattr("skipstone.evaluation.timing.FEWEST", 1)


def test_from_scratch_ends_with_everything_there_is_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ["--model", "odernn", "--model", "pcode"]
    first = CliRunner().invoke(app, [*SCRATCH, *models], catch_exceptions=False)
    assert first.exit_code == 0
    assert "2 of 2 runs are finished" in first.output
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") >= 2
    for name in ("table1.md", "table1.csv", "evaluations.json", "figures/lines.png"):
        assert (tmp_path / "report" / name).stat().st_size > 0
    assert "| ODE-RNN" in (tmp_path / "report" / "table1.md").read_text(encoding="utf-8")
    # What is missing for the other figures is said.
    assert re.search(
        r"left out: Cost against sampling rate: there must be runs of billiards1d", first.output
    )
    assert not (tmp_path / "report" / "figures" / "sampling.png").exists()
    again = CliRunner().invoke(app, [*SCRATCH, *models], catch_exceptions=False)
    assert "2 of 2 runs are finished, 2 of them before" in again.output

    # Less to report on: nothing of the report before is left.
    stale = tmp_path / "report" / "figures" / "hero.png"
    stale.touch()
    mine = tmp_path / "report" / "figures" / "mine.png"
    mine.touch()
    alone = CliRunner().invoke(app, [*SCRATCH, "--model", "pcode"], catch_exceptions=False)
    assert "1 of 1 runs are finished" in alone.output
    assert "| ODE-RNN" not in (tmp_path / "report" / "table1.md").read_text(encoding="utf-8")
    assert mine.exists()
    assert not stale.exists()


def test_a_report_is_about_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        CliRunner().invoke(app, [*SCRATCH, "--model", "pcode"], catch_exceptions=False)
        table = (tmp_path / "report" / "table1.md").read_text(encoding="utf-8")
        assert [line.split(" | ")[1] for line in table.splitlines()[2:]] == ["PC-ODE"]


@pytest.mark.parametrize("option", [("--task", "lines"), ("--runs", "elsewhere")])
def test_choosing_what_to_train_needs_from_scratch(option: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="which only --from-scratch does"):
        CliRunner().invoke(app, ["reproduce", *option], catch_exceptions=False)


def test_a_place_that_cannot_be_written_to_is_noticed_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "file")]
    with pytest.raises(InvalidInput, match="file must be a place that can be written to"):
        CliRunner().invoke(app, [*SCRATCH, *options], catch_exceptions=False)
    assert not (tmp_path / "runs").exists()


def test_training_before_your_eyes_leaves_the_rest_of_its_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Job(task="lines", model="rnn", preset="smoke")
    monkeypatch.setattr("skipstone.paper.reproduce.LIVE", small)
    mine = tmp_path / "live" / "mine.txt"
    mine.parent.mkdir()
    mine.touch()
    before = train_live(tmp_path).folder / "before"
    before.touch()
    assert train_live(tmp_path).finished
    assert not before.exists()  # It began anew.
    assert mine.exists()


def test_a_place_without_weights_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"weights holds none.*clone.*--from-scratch"):
        CliRunner().invoke(app, ["reproduce"], catch_exceptions=False)
