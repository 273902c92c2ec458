"""Runs and their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from skipstone.reproduce.measured import measure_runs
from skipstone.training.jobs import Job, run_job


def test_seeds_are_measured_each_and_timed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1)]
    jobs.append(Job(task="lines", model="rnn", preset="smoke", hidden=8))
    measured = measure_runs([run_job(job, tmp_path / job.name) for job in jobs])
    assert [bool(run.evaluation["wall_times"]) for run in measured] == [True, False, True]
    assert len({run.evaluation["sample_mse"]["value"] for run in measured}) == 3
