"""Jobs: what they are called, what they train, and the tolerance that an RNN gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import own_models
import pytest

from helpers import edit_json
from skipstone import PCODE, InvalidInput
from skipstone.models.registry import MODELS
from skipstone.paper.jobs import Job, evaluate_run, make_grid, run_job, task_data
from skipstone.paper.presets import AUTO
from skipstone.paper.tasks.registry import find_task, task_options
from skipstone.training.run import Run, list_runs

TASK = own_models.DOTS.name
QUIET: dict[str, Any] = {"progress": False, "device": "cpu"}


def test_a_grid_is_the_product_without_repetition() -> None:
    jobs = make_grid(
        ["lines", "circles"],
        ["rnn", "pcode"],
        seeds=[0, 1, 1],
        options={"hidden": [8, 16], "tolerance": [AUTO, 1e-3]},
        preset="smoke",
    )
    # Only the PC-ODE has a tolerance: 2 tasks × 2 seeds × 2 sizes × (1 RNN + 2 PC-ODEs).
    assert len(jobs) == len({job.name for job in jobs}) == 24
    assert all(set(job.options) == {"hidden"} for job in jobs if job.model == "rnn")


def test_what_differs_from_the_preset_is_in_the_name() -> None:
    options = {"reads": "values", "hidden": 8}
    job = Job(task="circles", model="pcode", steps=7, finer=2, seed=3, options=options)
    assert job.name == "circles-pcode-cpu-finer2-steps7-hidden8-reads-values-seed3"
    assert job.varied == {"steps", "finer", "hidden", "reads"}
    assert Job(task="circles", model="pcode").varied == set()
    # Folders are told apart by every digit of a tolerance.
    near = [Job(task="circles", model="pcode", options={"tolerance": t}) for t in (0.1, 0.10000001)]
    assert near[0].name != near[1].name


def test_a_run_of_another_preset_is_not_the_jobs() -> None:
    job = Job(task="circles", model="pcode", preset="smoke", finer=2)
    options = asdict(task_options(find_task(job.task), **job.data_options))
    config = {"model": dict(job.model_options), "recipe": asdict(job.recipe)}
    config["data"] = {"options": options}
    assert config["model"]["min_step"] == 2.0
    assert job.describes(config)
    # What a folder does not mention has its default.
    del config["model"]["target_step"]
    assert job.describes(config)
    assert not replace(job, options={"target_step": 3.0}).describes(config)
    assert not job.describes({**config, "model": {**config["model"], "hidden": 8}})
    assert not job.describes({**config, "recipe": {**config["recipe"], "noise": 0.5}})
    assert not job.describes({**config, "data": {"options": {**options, "spacing": 0.05}}})
    assert not replace(job, finer=2).describes({**config, "data": {"options": {}}})
    assert not replace(job, finer=2).describes({**config, "data": {}})
    automatic = replace(job, options={"tolerance": AUTO})
    assert automatic.describes({**config, "model": {**config["model"], "tolerance": 0.123}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "rnn", "options": {"own_steps": 0.5}}, "option of RNN must be"),
        ({"options": {"reads": "nothing"}}, 'reads must be "values" or "motion"; got'),
        ({"options": {"hidden": True}}, "hidden must be a whole number; got True"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"finer": 0}, "finer must be at least 1; got 0"),
        ({"preset": "smok"}, "Did you mean smoke?"),
    ],
)
def test_bad_jobs_are_explained_before_any_data_is_made(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Job(**{"task": "circles", "model": "pcode", **given})


def test_automatic_tolerance_is_the_final_loss_of_an_rnn_beside_it(tmp_path: Path) -> None:
    job = Job(
        task=TASK, model="pcode", preset="smoke", options={"tolerance": AUTO, "hidden": 8}, seed=1
    )
    run = run_job(job, tmp_path, **QUIET)
    (baseline,) = [found for found in list_runs(tmp_path) if found != run]
    described = baseline.config["model"]
    assert (described["kind"], described["hidden"], baseline.config["seed"]) == ("rnn", 8, 1)
    assert baseline.config["recipe"] == run.config["recipe"]
    assert run.config["model"]["tolerance"] == baseline.result["training_loss"]
    # So that the squared error that a segment may reach is that loss.
    model = run.load()
    assert isinstance(model, PCODE)
    assert model.config.tolerance_at(1.0) == pytest.approx(baseline.result["training_loss"])
    # Again, everything is there.
    stamp = (baseline.folder / "result.json").stat().st_mtime_ns
    assert run_job(job, tmp_path, **QUIET).result == run.result
    assert (baseline.folder / "result.json").stat().st_mtime_ns == stamp


def test_a_job_is_recorded_and_its_data_can_be_made_again(tmp_path: Path) -> None:
    job = Job(task=TASK, model="mine", preset="smoke", steps=4, finer=2)
    run = run_job(job, tmp_path, **QUIET)
    assert run.folder == tmp_path / job.name
    assert Job(**run.config["data"]["job"]) == job
    assert type(run.load()) is MODELS.find("mine") is own_models.Mine
    data = task_data(run)
    assert asdict(data.options) == run.config["data"]["options"]
    assert data.test.times.shape[1] == 2 * (12 - 1) + 1
    assert run.evaluation["wall_times"] == []
    timed = evaluate_run(run, data)
    assert timed["wall_times"]
    assert run.evaluation == timed


def test_runs_on_other_data_are_explained(tmp_path: Path) -> None:
    run = run_job(Job(task=TASK, model="rnn", preset="smoke", steps=4), tmp_path, **QUIET)
    edit_json(run.folder / "config.json", lambda config: config["data"].pop("task"))
    with pytest.raises(InvalidInput, match=r"was not trained on a task\. Use skipstone\.evaluate"):
        evaluate_run(Run(run.folder))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda data: data.pop("options"),
            r"config\.json.*data: .*missing required field `options`",
        ),
        (lambda data: data["options"].update(task="x"), "circles has no option 'task'"),
        (lambda data: data["options"].update(name="x"), "circles has no option 'name'"),
        (lambda data: data["options"].update(cache=False), "circles has no option 'cache'"),
    ],
)
def test_data_that_cannot_be_made_again_are_explained(
    edit: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path
) -> None:
    run = run_job(Job(task=TASK, model="rnn", preset="smoke", steps=2), tmp_path, **QUIET)
    edit_json(run.folder / "config.json", lambda config: edit(config["data"]))
    with pytest.raises(InvalidInput, match=message.replace("circles", TASK)):
        task_data(Run(run.folder))
