"""`skipstone reproduce`, from the command line to the files it leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skipstone import InvalidInput
from skipstone.cli import app

SCRATCH = ["reproduce", "--from-scratch", "--preset", "smoke", "--task", "lines", "--workers", "1"]


def test_from_scratch_ends_with_everything_there_is_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ["--model", "rnn", "--model", "pcode"]
    first = CliRunner().invoke(app, [*SCRATCH, *models], catch_exceptions=False)
    assert first.exit_code == 0
    assert "2 of 2 runs are finished" in first.output
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") >= 2
    for name in ("table1.md", "table1.csv", "evaluations.json", "figures/lines.png"):
        assert (tmp_path / "report" / name).stat().st_size > 0
    # What is missing for the other figures is said.
    assert re.search(
        r"left out: Cost against sampling rate: there must be runs of billiards1d", first.output
    )
    assert not (tmp_path / "report" / "figures" / "sampling.png").exists()
    again = CliRunner().invoke(app, [*SCRATCH, *models], catch_exceptions=False)
    assert "2 of 2 runs are finished, 2 of them before" in again.output


def test_choosing_what_to_train_needs_from_scratch() -> None:
    with pytest.raises(InvalidInput, match="which only --from-scratch does"):
        CliRunner().invoke(app, ["reproduce", "--task", "lines"], catch_exceptions=False)


def test_a_place_without_weights_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"weights holds none.*clone.*--from-scratch"):
        CliRunner().invoke(app, ["reproduce"], catch_exceptions=False)
