"""Runs and their numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import measured
from skipstone.training.report import read_evaluation

from skipstone.paper.jobs import Job, run_job
from skipstone.paper.measured import Measured, finished_runs, measure_runs
from skipstone.paper.report import ReportFiles, write_report
from skipstone.training.run import CONFIG, Run


def test_seeds_are_measured_each_and_timed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1)]
    jobs.append(Job(task="lines", model="rnn", preset="smoke", hidden=8))
    found = measure_runs([run_job(job, tmp_path / job.name) for job in jobs])
    assert [bool(run.evaluation["wall_times"]) for run in found] == [True, False, True]
    assert len({run.evaluation["sample_mse"]["value"] for run in found}) == 3


def test_a_run_without_weights_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    runs = tmp_path / "runs"
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1, 2)]
    first, second, third = [run_job(job, runs) for job in jobs]
    (first.folder / "weights.safetensors").unlink()
    (third.folder / "weights.safetensors").unlink()
    (third.folder / "evaluation.json").unlink()  # So that there is nothing to quote.
    found = measure_runs(finished_runs(runs))
    assert [run.run for run in found] == [first, second]
    assert found[0].evaluation == read_evaluation(first)
    assert [bool(run.evaluation["wall_times"]) for run in found] == [False, True]
    # Examples come from the seed that has a model, and without one there are none.
    assert {"lines.png"} <= _figures(write_report(found, tmp_path / "two"))
    assert "lines.png" not in _figures(write_report(found[:1], tmp_path / "one"))


def test_what_differs_from_a_preset_is_told(tmp_path: Path) -> None:
    run = measured(tmp_path).run
    rnn = measured(tmp_path, "RNN").run

    def varied(run: Run, model: dict[str, Any], recipe: dict[str, Any]) -> set[str]:
        config = json.loads((run.folder / CONFIG).read_text())
        config["model"] |= model
        config["recipe"] |= recipe
        changed = tmp_path / "changed"
        changed.mkdir(exist_ok=True)
        (changed / CONFIG).write_text(json.dumps(config))
        return Measured(Run(changed), {}).varied

    assert varied(run, {}, {}) == varied(rnn, {}, {}) == set()
    assert varied(run, {"reads": "values"}, {}) == {"reads"}
    assert varied(run, {"step_layers": 1, "hidden": 8}, {}) == {"step_layers", "hidden"}
    assert varied(run, {}, {"own_steps": 0.1}) == {"recipe"}
    # Steps are nothing to an RNN, the learning rate is.
    assert varied(rnn, {}, {"own_steps": 0.1}) == set()
    assert varied(rnn, {}, {"learning_rate": 0.1}) == {"recipe"}


def _figures(report: ReportFiles) -> set[str]:
    return {path.name for path in report.written if path.suffix == ".png"}
