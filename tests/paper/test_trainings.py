from __future__ import annotations

import pytest

from skipstone import InvalidInput
from skipstone.paper.published import TABLE
from skipstone.paper.trainings import trainings


def test_everything_the_paper_compares_is_trained() -> None:
    names = {job.name for job in trainings()}
    for task in [*TABLE, "shots"]:
        for model in ("rnn", "pcode", "odernn"):
            assert f"{task}-{model}-cpu-seed0" in names
    assert "circles-pcode-cpu-hidden16-seed0" in names
    for model in ("rnn", "pcode"):
        assert f"billiards1d-{model}-cpu-steps1500-hidden64-seed0" in names
        assert f"billiards1d-{model}-cpu-finer8-steps1500-hidden64-seed0" in names
    assert len(names) == len(trainings())


def test_tasks_models_and_seeds_can_be_chosen() -> None:
    jobs = trainings(tasks=["lines"], models=["pcode"], seeds=3)
    assert [job.name for job in jobs] == [f"lines-pcode-cpu-seed{seed}" for seed in range(3)]


def test_a_study_keeps_the_budget_of_other_presets() -> None:
    finest = next(job for job in trainings("smoke", ["billiards1d"]) if job.finer == 8)
    assert finest.recipe.steps == 30


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
