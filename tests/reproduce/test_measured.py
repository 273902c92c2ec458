"""Runs and their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from skipstone.reproduce.measured import finished_runs, measure_runs
from skipstone.reproduce.report import Report, write_report
from skipstone.training.jobs import Job, run_job
from skipstone.training.report import read_evaluation


def test_seeds_are_measured_each_and_timed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1)]
    jobs.append(Job(task="lines", model="rnn", preset="smoke", hidden=8))
    measured = measure_runs([run_job(job, tmp_path / job.name) for job in jobs])
    assert [bool(run.evaluation["wall_times"]) for run in measured] == [True, False, True]
    assert len({run.evaluation["sample_mse"]["value"] for run in measured}) == 3


def test_a_run_without_weights_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    runs = tmp_path / "runs"
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1, 2)]
    first, second, third = [run_job(job, runs) for job in jobs]
    (first.folder / "weights.safetensors").unlink()
    (third.folder / "weights.safetensors").unlink()
    (third.folder / "evaluation.json").unlink()  # So that there is nothing to quote.
    measured = measure_runs(finished_runs(runs))
    assert [run.run for run in measured] == [first, second]
    assert measured[0].evaluation == read_evaluation(first)
    assert [bool(run.evaluation["wall_times"]) for run in measured] == [False, True]
    # Examples come from the seed that has a model, and without one there are none.
    assert {"lines.png"} <= _figures(write_report(measured, tmp_path / "two"))
    assert "lines.png" not in _figures(write_report(measured[:1], tmp_path / "one"))


def _figures(report: Report) -> set[str]:
    return {path.name for path in report.written if path.suffix == ".png"}
