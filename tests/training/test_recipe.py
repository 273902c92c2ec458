from __future__ import annotations

import re
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest

from skipstone import InvalidInput
from skipstone.paper.tasks.registry import TASKS
from skipstone.training.recipe import PRESETS, Recipe, preset_for


def test_one_cycle_rises_to_the_peak_and_falls_to_almost_nothing() -> None:
    recipe = Recipe(steps=1000, learning_rate=2.0)
    rates = [recipe.learning_rate_at(step) for step in range(1000)]
    assert max(rates) == pytest.approx(2.0)
    assert rates.index(max(rates)) == 300
    assert rates[0] == pytest.approx(0.08)
    assert rates[-1] == pytest.approx(2e-4)
    assert all(later > earlier for earlier, later in pairwise(rates[:301]))


def test_the_papers_schedule_decays_every_5000_steps() -> None:
    recipe = preset_for("paper", "circles").recipe
    assert (recipe.steps, recipe.batch_size) == (10_000, 256)
    assert recipe.learning_rate_at(4_999) == 1e-3
    assert recipe.learning_rate_at(5_000) == pytest.approx(0.9e-3)
    assert recipe.tolerance_at(0, 1e-5, 1.0) == 1e-5
    assert (recipe.overshoot, recipe.optimizer, recipe.step_loss) == (0, "adam", "difference")


def test_the_papers_pixel_tasks_are_larger_and_longer() -> None:
    for task in ("pixels1d", "pixels2d"):
        preset = preset_for("paper", task)
        assert (preset.hidden, preset.recipe.steps) == (512, 50_000)


@pytest.mark.parametrize("name", PRESETS)
def test_images_are_drawn_anew_and_coordinates_moved(name: str) -> None:
    readouts = {task: preset_for(name, task).readout for task in TASKS}
    assert readouts.pop("pixels1d") == readouts.pop("pixels2d") == "absolute"
    assert set(readouts.values()) == {"displacement"}


def test_motion_is_shown_but_not_by_the_paper_nor_of_large_films() -> None:
    for name, shown in {"paper": "values", "cpu": "motion", "smoke": "motion"}.items():
        reads = {task: preset_for(name, task).reads for task in TASKS}
        assert reads.pop("pixels2d") == ("values" if name == "cpu" else shown)
        assert set(reads.values()) == {shown}
    assert preset_for("paper", "circles").recipe.own_steps == 0


def test_tolerance_falls_geometrically_to_its_final_value() -> None:
    recipe = Recipe(steps=100, anneal_from=1e-2)
    for variance in (1.0, 7.0):
        expected = {0: 1e-2 * variance, 30: 1e-3 * variance**0.5, 60: 1e-4, 99: 1e-4}
        for step, tolerance in expected.items():
            assert recipe.tolerance_at(step, 1e-4, variance) == pytest.approx(tolerance)


@pytest.mark.parametrize("final", [0.0, 0.5, float("inf")])
def test_tolerances_that_need_no_annealing_stay(final: float) -> None:
    assert Recipe(anneal_from=1e-2).tolerance_at(0, final, 1.0) == final


def test_recipes_survive_a_dictionary() -> None:
    for preset in PRESETS.values():
        assert Recipe(**asdict(preset.recipe)) == preset.recipe


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"patience": -1}, "patience must be at least 0; got -1"),
        ({"overshoot": float("nan")}, "overshoot must be at least 0; got nan"),
        ({"explore": 1.5}, "explore must be between 0 and 1; got 1.5"),
        ({"learning_rate": 0.0}, "learning_rate must be positive; got 0.0"),
        ({"optimizer": "sgd"}, "optimizer must be one of soap, adam; got 'sgd'"),
        ({"step_loss": "log"}, "step_loss must be one of difference, ratio; got 'log'"),
        ({"schedule": "cosine"}, "schedule must be one of one-cycle, decay; got 'cosine'"),
    ],
)
def test_bad_recipes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Recipe(**options)


def test_unknown_presets_are_explained() -> None:
    with pytest.raises(InvalidInput, match="Did you mean smoke"):
        preset_for("smok", "lines")


def test_noise_falls_evenly_and_ends_with_the_annealing() -> None:
    recipe = Recipe(steps=1_000, noise=0.12)
    levels = [recipe.noise_at(step) for step in (0, 150, 300, 600, 999)]
    assert levels == pytest.approx([0.12, 0.09, 0.06, 0.0, 0.0])
    assert Recipe().noise_at(0) == 0
