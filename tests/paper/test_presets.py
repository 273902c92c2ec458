"""Presets: the paper's settings are complete, and what we recommend are the defaults."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from skipstone import ODERNN, PCODE, RNN, InvalidInput, Recipe
from skipstone.paper.jobs import Job
from skipstone.paper.presets import AUTO, PRESETS, preset_for
from skipstone.paper.tasks.registry import TASKS


def test_the_papers_schedule_decays_every_5000_steps() -> None:
    preset = preset_for("paper", "circles")
    recipe, options = preset.recipe, preset.options(PCODE)
    assert (recipe.steps, recipe.batch_size, recipe.optimizer) == (10_000, 256, "adam")
    assert recipe.learning_rate_at(4_999) == 1e-3
    assert recipe.learning_rate_at(5_000) == pytest.approx(0.9e-3)
    assert (options["overshoot"], options["own_steps"], options["step_loss"]) == (
        0,
        0,
        "difference",
    )
    assert (options.pop("tolerance"), options.pop("scaling")) == (AUTO, "none")
    constant = PCODE.Config(dim=1, tolerance=1e-5, **options)
    assert constant.tolerance_at(0.0) == constant.tolerance_at(1.0) == 1e-5


def test_the_paper_names_every_setting_of_its_model() -> None:
    """So that no default of ours can change what the paper's preset trains."""
    tuning = {field.name for field in fields(PCODE.Config)} - {
        field.name for field in fields(RNN.Config)
    }
    bounds = {"min_step", "max_step", "velocity_scale", "whole_steps", "target_step"}
    assert set(PRESETS["paper"].pcode) == tuning - bounds


def test_the_papers_pixel_tasks_are_larger_and_longer() -> None:
    for task in ("pixels1d", "pixels2d"):
        preset = preset_for("paper", task)
        assert (preset.options(RNN)["hidden"], preset.recipe.steps) == (512, 50_000)


def test_a_task_of_ones_own_is_trained_with_the_defaults() -> None:
    preset = preset_for("cpu", "mine")
    assert preset.recipe == Recipe()
    assert preset.options(PCODE) == preset.options(RNN) == preset.options(ODERNN) == {}


def test_options_go_only_to_models_that_have_them() -> None:
    paper = preset_for("paper", "circles")
    assert "solver" in paper.options(ODERNN)
    assert "solver" not in paper.options(PCODE)
    assert "tolerance" in paper.options(PCODE)
    assert set(paper.options(RNN)) == {"hidden", "scaling", "reads"}


def test_motion_is_shown_but_not_by_the_paper() -> None:
    for name, shown in {"paper": "values", "cpu": "motion", "smoke": "motion"}.items():
        for task in TASKS:
            options = preset_for(name, task).options(PCODE)
            assert options.get("reads", PCODE.Config.reads) == shown


def test_the_papers_data_are_those_of_the_tasks() -> None:
    for task in TASKS:
        assert preset_for("paper", task).data == {}
    assert Job(task="pixels2d", model="rnn", preset="paper").data_options == {}


def test_recipes_of_presets_survive_a_dictionary() -> None:
    for preset in PRESETS.values():
        assert Recipe(**asdict(preset.recipe)) == preset.recipe


def test_unknown_presets_are_explained() -> None:
    with pytest.raises(InvalidInput, match="Did you mean smoke"):
        preset_for("smok", "lines")


def test_tolerance_falls_geometrically_to_its_final_value() -> None:
    config = PCODE.Config(dim=1, tolerance=1e-4, anneal_from=1e-2)
    found = [config.tolerance_at(progress) for progress in (0.0, 0.5, 1.0)]
    assert found == pytest.approx([1e-2, 1e-3, 1e-4])


@pytest.mark.parametrize("final", [0.0, 0.5])
def test_tolerances_that_need_no_annealing_stay(final: float) -> None:
    assert PCODE.Config(dim=1, tolerance=final, anneal_from=1e-2).tolerance_at(0) == final
