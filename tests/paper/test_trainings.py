from __future__ import annotations

from collections import Counter

import pytest

from skipstone import PCODE, InvalidInput
from skipstone.models.config import ModelConfig
from skipstone.paper.presets import preset_for
from skipstone.paper.published import TABLE
from skipstone.paper.trainings import FRONTIER, SECOND_POINTS, trainings


def test_everything_the_paper_compares_is_trained() -> None:
    names = {job.name for job in trainings()}
    for task in [*TABLE, "shots"]:
        for model in ("rnn", "pcode", "odernn"):
            assert f"{task}-{model}-cpu-seed0" in names
        assert (f"{task}-latentode-cpu-seed0" in names) == (task != "shots")
    assert "circles-pcode-cpu-hidden16-seed0" in names
    for model in ("rnn", "pcode"):
        assert f"billiards1d-{model}-cpu-steps1500-hidden64-seed0" in names
        assert f"billiards1d-{model}-cpu-finer8-steps1500-hidden64-seed0" in names
    assert len(names) == len(trainings())


def test_the_models_that_matter_most_have_three_seeds() -> None:
    seeds = Counter((job.task, job.model) for job in trainings() if not job.varied)
    for (task, model), count in seeds.items():
        repeated = model in ("rnn", "pcode") and not task.startswith("pixels")
        assert count == (3 if repeated else 1)


def test_every_model_of_a_task_has_the_same_budget() -> None:
    """The same recipe, and no more arithmetic per rollout: a network that is wider runs less often
    by as much at least."""
    recipes: dict[str, set[object]] = {}
    for job in trainings():
        if job.varied <= {"target_step"}:
            recipes.setdefault(job.task, set()).add(job.recipe)
            options, usual = job.model_options, ModelConfig.hidden
            wider = (options.get("hidden", usual) / usual) ** 2
            assert wider <= options.get("target_step", 1)
    assert {len(found) for found in recipes.values()} == {1}


def test_tasks_models_and_seeds_can_be_chosen() -> None:
    jobs = trainings(tasks=["lines"], models=["pcode"], seeds=2)
    assert [job.name for job in jobs] == [f"lines-pcode-cpu-seed{seed}" for seed in range(2)]


def test_a_task_can_have_a_second_point() -> None:
    for task, options in SECOND_POINTS.items():
        found = [job for job in trainings() if job.task == task and dict(job.options) == options]
        own = preset_for("cpu", task).options(PCODE)["target_step"]
        assert len(found) == (0 if own == options["target_step"] else 3)


@pytest.mark.parametrize("task", list(FRONTIER))
def test_a_frontier_has_an_rnn_and_different_steps_of_one_budget(task: str) -> None:
    small = [
        job
        for job in trainings(tasks=[task])
        if job.finer == 1 and {"hidden", "steps"} <= job.varied and "tolerance" not in job.varied
    ]
    assert len({(job.recipe, job.model_options["hidden"]) for job in small}) == 1
    ours = [job.model_options.get("target_step") for job in small if job.model == "pcode"]
    assert len(ours) == len(set(ours)) >= 3
    assert len(small) == len(ours) + 1
    assert not any("target_step" in job.varied for job in trainings("paper", [task]))


def test_sizes_are_compared_at_a_fixed_tolerance() -> None:
    sizes = [job for job in trainings(tasks=["billiards1d"]) if "tolerance" in job.varied]
    assert [job.model_options["hidden"] for job in sizes] == [8, 16, 32, 64, 192]
    assert len({(job.model_options["tolerance"], job.recipe) for job in sizes}) == 1
    assert {job.model_options["target_step"] for job in sizes} == {None}


def test_a_study_keeps_the_budget_of_other_presets() -> None:
    finest = next(job for job in trainings("smoke", ["billiards1d"]) if job.finer == 8)
    assert finest.recipe.steps == 30
    finest = next(job for job in trainings("paper", ["billiards1d"]) if job.finer == 8)
    assert finest.varied == {"finer"}


def test_the_sampling_rate_changes_nothing_but_the_unit_of_time() -> None:
    jobs = [job for job in trainings() if job.varied <= {"finer", "hidden", "steps"}]
    jobs = [job for job in jobs if job.task == "billiards1d" and job.model == "pcode" and job.steps]
    assert [job.finer for job in jobs] == [1, 2, 4, 8]
    assert len({job.recipe for job in jobs}) == 1
    usual = jobs[0].model_options
    for job in jobs[1:]:
        options = job.model_options
        assert options["min_step"] == job.finer * usual.get("min_step", 1.0)
        assert options["target_step"] == job.finer * usual["target_step"]
        assert options["velocity_scale"] == usual.get("velocity_scale", 0.2) / job.finer
        rest = set(options) - {"min_step", "max_step", "target_step", "velocity_scale"}
        assert {name: options[name] for name in rest} == {name: usual[name] for name in rest}


def test_no_model_is_trained_twice_under_two_names() -> None:
    names = [job.name for job in trainings("smoke", ["circles"], ["pcode"], seeds=2)]
    assert "circles-pcode-smoke-seed0" in names
    assert "circles-pcode-smoke-hidden8-seed0" in names
    assert "circles-pcode-smoke-hidden16-seed0" not in names  # That is the preset's own size.


def test_what_is_not_in_the_paper_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"there is no task 'circle'. .*circles"):
        trainings(tasks=["circle"])
    with pytest.raises(InvalidInput, match="seeds must be at least 1; got 0"):
        trainings(seeds=0)
