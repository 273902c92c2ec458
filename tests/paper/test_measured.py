"""Runs and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import measured

from helpers import edit_json
from skipstone import InvalidInput
from skipstone.paper.groups import comparable
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.measured import finished_runs, measure_runs
from skipstone.paper.report import ReportFiles, write_report


@pytest.fixture(autouse=True)
def timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether something is timed is asked here, not how exactly."""
    monkeypatch.setattr("skipstone.evaluation.timing.PATIENCE", 0)
    monkeypatch.setattr("skipstone.evaluation.timing.FEWEST", 1)


def test_seeds_are_measured_each_and_timed_once(tmp_path: Path) -> None:
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed, steps=2) for seed in (0, 1)]
    jobs.append(Job(task="lines", model="rnn", preset="smoke", steps=2, options={"hidden": 8}))
    found = measure_runs([run_job(job, tmp_path, progress=False) for job in jobs])
    assert [bool(run.evaluation["wall_times"]) for run in found] == [True, False, True]
    assert len({run.evaluation["sample_mse"]["value"] for run in found}) == 3


def test_a_run_without_weights_is_quoted(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    jobs = [Job(task="lines", model="rnn", preset="smoke", seed=seed) for seed in (0, 1, 2)]
    first, second, third = [run_job(job, runs, progress=False) for job in jobs]
    (first.folder / "weights.safetensors").unlink()
    (third.folder / "weights.safetensors").unlink()
    (third.folder / "evaluation.json").unlink()  # So that there is nothing to quote.
    found = measure_runs(finished_runs(runs))
    assert [run.run for run in found] == [first, second]
    assert found[0].evaluation == first.evaluation
    assert [bool(run.evaluation["wall_times"]) for run in found] == [False, True]
    # Examples come from the seed that has a model, and without one there are none.
    assert {"lines.png"} <= _figures(write_report(found, tmp_path / "two"))
    assert "lines.png" not in _figures(write_report(found[:1], tmp_path / "one"))


def test_what_differs_from_a_preset_is_told_and_not_compared(tmp_path: Path) -> None:
    usual, rnn = measured(tmp_path), measured(tmp_path, "RNN")
    small, finer = measured(tmp_path, hidden=8), measured(tmp_path, finer=2)
    varied = [run.varied for run in (usual, rnn, small, finer)]
    assert varied == [set(), set(), {"hidden"}, {"finer"}]
    assert comparable([usual, rnn, small, finer]) == [usual, rnn]
    assert (finer.spacing, finer.hidden, finer.seed) == (usual.spacing / 2, 128, 0)
    assert (small.model, rnn.model, rnn.task) == ("PC-ODE", "RNN", "billiards1d")
    assert small.budget == (8, usual.budget[1])


def test_a_folder_without_finished_runs_is_explained(tmp_path: Path) -> None:
    measured(tmp_path)  # Which has neither weights nor numbers in its folder.
    with pytest.raises(InvalidInput, match=r"holds none\. .*--from-scratch"):
        finished_runs(tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda config: config["data"].pop("job"), "data: object missing required field `job`"),
        (lambda config: config["data"]["options"].pop("spacing"), "required field `spacing`"),
        (lambda config: config["model"].pop("hidden"), "model: object missing .*`hidden`"),
        (lambda config: config["model"].update(scale=["x"]), "model.scale"),
    ],
)
def test_a_run_that_no_report_can_read_is_explained(
    edit: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path
) -> None:
    run = run_job(Job(task="lines", model="rnn", preset="smoke", steps=2), tmp_path, progress=False)
    edit_json(run.folder / "config.json", edit)
    with pytest.raises(InvalidInput, match=message):
        finished_runs(tmp_path)


def _figures(report: ReportFiles) -> set[str]:
    return {path.name for path in report.written if path.suffix == ".png"}
