"""The bootstrap: exact where the answer is exact, right on average where it is random."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skipstone.evaluation import Estimate, estimate
from skipstone.evaluation.estimate import Bootstrap


def bootstrap(trajectories: int, seed: int = 0) -> Bootstrap:
    return Bootstrap(trajectories, np.random.default_rng(seed))


def test_constant_data_have_an_interval_without_width() -> None:
    counts = np.array([1, 5, 2, 7])
    found = bootstrap(4).ratio(0.25 * counts, counts)
    assert found == Estimate(0.25, 0.25, 0.25)


def test_the_value_weighs_trajectories_by_what_they_count() -> None:
    found = bootstrap(2).ratio(np.array([1.0, 9.0]), np.array([1, 3]))
    assert (found.value, found.low, found.high) == (2.5, 1.0, 3.0)


def test_an_interval_has_the_width_of_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=4000)
    found = bootstrap(4000).ratio(values, np.ones(4000))
    half = 1.96 * values.std() / math.sqrt(4000)
    np.testing.assert_allclose(
        [found.value, found.low, found.high],
        [values.mean(), values.mean() - half, values.mean() + half],
        atol=0.15 * half,
    )


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for seed in range(100):
        counts = rng.integers(1, 10, size=60)
        found = bootstrap(60, seed).ratio(rng.normal(counts * 1.0, counts**0.5), counts)
        held += found.low <= 1.0 <= found.high
    # 95 % of 100, give or take three standard deviations.
    assert 88 <= held < 100


def test_columns_are_independent_questions_to_the_same_draws() -> None:
    totals = np.random.default_rng(3).random((30, 4))
    counts = np.ones((30, 4))
    shared = bootstrap(30)
    alone = [shared.ratio(totals[:, i], counts[:, i]) for i in range(4)]
    together = shared.ratios(totals, counts)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(
            [one.value, one.low, one.high], [other.value, other.low, other.high]
        )


def test_blocks_change_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = np.random.default_rng(4).random((20, 1))
    whole = bootstrap(20)._sums(totals)
    monkeypatch.setattr(estimate, "_BLOCK", 7)
    np.testing.assert_allclose(bootstrap(20)._sums(totals), whole, rtol=1e-14)


def test_what_cannot_be_known_is_not_a_number() -> None:
    totals = np.array([[0.0, 2.0, np.nan, np.inf], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    counts = np.array([[0, 4, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    nothing, once, diverged, overflowed = bootstrap(3).ratios(totals, counts)
    assert math.isnan(nothing.value)
    assert once.value == 0.5
    assert math.isnan(diverged.value)
    assert overflowed.value == math.inf
    for found in (nothing, once, diverged, overflowed):
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_resamples_that_count_nothing_are_left_out() -> None:
    # Both are absent from one resample in seven; the others can only give 1, 3 or a mean of them.
    totals, counts = np.zeros(100), np.zeros(100)
    totals[:2], counts[:2] = [1.0, 3.0], 1.0
    found = bootstrap(100).ratio(totals, counts)
    assert found == Estimate(2.0, 1.0, 3.0)
