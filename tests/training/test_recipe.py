"""Schedules as functions of the step, and every error message."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest

from skipstone import InvalidInput, Recipe


def test_one_cycle_rises_to_the_peak_and_falls_to_almost_nothing() -> None:
    recipe = Recipe(steps=1000, learning_rate=2.0)
    rates = [recipe.learning_rate_at(step) for step in range(1000)]
    assert max(rates) == pytest.approx(2.0)
    assert rates.index(max(rates)) == 300
    assert rates[0] == pytest.approx(0.08)
    assert rates[-1] == pytest.approx(2e-4)
    assert all(later > earlier for earlier, later in pairwise(rates[:301]))
    assert all(later < earlier for earlier, later in pairwise(rates[300:]))


def test_annealing_is_done_after_60_percent_of_the_steps() -> None:
    recipe = Recipe(steps=1_000)
    progress = [recipe.progress_at(step) for step in (0, 150, 300, 600, 999)]
    assert progress == pytest.approx([0.0, 0.25, 0.5, 1.0, 1.0])
    assert recipe.settled_from == 600
    assert Recipe(steps=12).settled_from == 8


def test_noise_falls_evenly_and_ends_with_the_annealing() -> None:
    recipe = Recipe(steps=1_000, noise=0.12)
    levels = [recipe.noise_at(step) for step in (0, 150, 300, 600, 999)]
    assert levels == pytest.approx([0.12, 0.09, 0.06, 0.0, 0.0])
    assert Recipe().noise_at(0) == 0


def test_recipes_survive_a_dictionary() -> None:
    recipe = Recipe(steps=7, optimizer="adam", noise=0.1)
    assert Recipe(**asdict(recipe)) == recipe


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1 and at most 1000000000; got 0"),
        ({"steps": 10**10}, "steps must be at least 1 and at most 1000000000; got 10000000000"),
        ({"batch_size": 10**7}, "batch_size must be at least 1 and at most 1000000; got 10000000"),
        ({"patience": -1}, "patience must be at least 0 and at most 1000000000; got -1"),
        ({"noise": float("nan")}, "noise must be a finite number; got nan"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0"),
        ({"optimizer": "sgd"}, 'optimizer must be "soap" or "adam"; got \'sgd\''),
        ({"schedule": "cosine"}, 'schedule must be "one-cycle" or "decay"; got \'cosine\''),
    ],
)
def test_bad_recipes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Recipe(**options)
