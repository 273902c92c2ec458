"""What is still to be trained: commands that train exactly that, and how long they take."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers import edit_json
from skipstone.cli import app
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.missing import remaining_hours, training_hours
from skipstone.paper.trainings import trainings

LIST = ["reproduce", "--list", "--preset", "smoke", "--task", "lines", "--model", "rnn"]


def listed(folder: Path) -> list[str]:
    found = CliRunner().invoke(app, [*LIST, "--runs", str(folder)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.output.splitlines()


def test_what_is_trained_is_no_longer_listed(tmp_path: Path) -> None:
    (line, total) = listed(tmp_path)
    command = f"skipstone train lines rnn --preset smoke --runs {tmp_path}"
    assert re.fullmatch(rf" +0\.00 h  missing +{re.escape(command)}", line)
    assert total.startswith(f"0 of 1 trainings are finished in {tmp_path}; the others take about ")
    run = run_job(Job(task="lines", model="rnn", preset="smoke"), tmp_path, progress=False)
    assert listed(tmp_path) == [f"1 of 1 trainings are finished in {tmp_path}."]
    # One that a preset of other days trained is not what is asked for.
    config = run.folder / "config.json"
    edit_json(config, lambda content: content["model"].update(hidden=8))
    assert "other settings" in listed(tmp_path)[0]
    config.write_text("{")
    assert "unreadable" in listed(tmp_path)[0]


def test_a_listed_command_trains_the_job_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Job] = []

    def stop(job: Job, *_: Any, **__: Any) -> None:
        asked.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr("skipstone.paper.jobs.run_job", stop)
    jobs = trainings()
    # One of each kind is enough: parsing takes a while.
    kinds = {(job.model, frozenset(job.varied), bool(job.seed)): job for job in jobs}
    automatic = replace(jobs[0], model="pcode", options={"tolerance": "auto"})
    for job in [*kinds.values(), automatic]:
        CliRunner().invoke(app, job.command.split()[1:])
        assert asked[-1].name == job.name


def test_hours_grow_with_the_work() -> None:
    job = Job(task="billiards1d", model="pcode", steps=1000)
    usual = training_hours(job)
    assert training_hours(replace(job, steps=3000)) == pytest.approx(3 * usual)
    assert training_hours(replace(job, finer=4)) == pytest.approx(4 * usual)
    assert usual / 3 < training_hours(replace(job, options={"hidden": 64})) < usual
    rnn = training_hours(replace(job, model="rnn"))
    automatic = training_hours(replace(job, options={"tolerance": "auto"}))
    assert automatic == pytest.approx(usual + rnn)


def test_what_is_done_is_not_counted_again(tmp_path: Path) -> None:
    job = Job(task="lines", model="rnn", steps=1000)
    (tmp_path / job.name).mkdir()
    (tmp_path / job.name / "metrics.csv").write_text("step,training_loss\n500,1\n750,1\n")
    assert remaining_hours(job, tmp_path) == pytest.approx(training_hours(job) / 4)
