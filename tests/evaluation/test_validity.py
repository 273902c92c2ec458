"""Valid prediction time, on paths that are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers import linear_pcode
from skipstone import Sequences, evaluate
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.rollouts import Errors
from skipstone.evaluation.validity import SHARES, _until_missed


def test_the_time_is_that_of_the_first_miss() -> None:
    values = np.array([[0.0, 0.3, 0.1, 0.0], [0.0, 0.0, 0.0, 0.9], [np.nan, 0, 0, 0], [0.0] * 4])
    observed = np.ones((4, 4), dtype=bool)
    observed[1, 3] = False  # What was not observed cannot be missed.
    elapsed = np.arange(1.0, 5.0) * np.ones((4, 1))
    times, lasting = _until_missed(Errors(values, observed), 0.5, elapsed)
    assert times.tolist() == [2, 4, 1, 4]
    assert lasting.tolist() == [0, 1, 0, 1]


def test_a_line_that_drifts_is_valid_for_as_long_as_it_takes() -> None:
    """The truth stands still in half of the trajectories; the model moves at a constant rate."""
    rate, steps = 0.01, 30
    still = torch.zeros(10, steps + 1, 1, dtype=torch.float64)
    still[5:] = 1.0
    found = evaluate(linear_pcode(rate, 5.0), Sequences.from_array(still), timing=False).valid_times
    assert [each.share for each in found] == list(SHARES)
    # The spread of the data is a half.
    for each in found:
        expected = np.floor(each.share * 0.5 / rate + 1e-9) + 1
        assert each.time.value == expected
        assert each.lasting.value == 0


def test_a_median_has_an_interval() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=401)
    found = Bootstrap(401, rng).median(values)
    assert found.value == np.median(values)
    # The standard error of a normal sample's median is 1.25 over the root of its size.
    assert found.high - found.low == pytest.approx(2 * 1.96 * 1.25 / 401**0.5, rel=0.35)
    assert found.low < found.value < found.high
