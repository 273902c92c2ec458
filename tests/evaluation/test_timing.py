"""Wall times, with a scripted clock."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain, cycle

import pytest
import torch

from helpers import linear_pcode
from skipstone import RNN, Sequences
from skipstone.evaluation import Estimate, timing


def play(monkeypatch: pytest.MonkeyPatch, durations: Iterator[float]) -> list[list[float]]:
    """Let rollouts take the given times; returns where the rows of each come to be listed."""
    ticks = accumulate(chain.from_iterable((1.0, duration) for duration in durations))
    monkeypatch.setattr(timing, "perf_counter", lambda: next(ticks))
    rows: list[list[float]] = []
    monkeypatch.setattr(
        timing, "predict", lambda model, batch: rows.append(batch.values[:, 0, 0].tolist())
    )
    return rows


def numbered(count: int) -> Sequences:
    return Sequences.from_array(torch.arange(float(count))[:, None, None].expand(-1, 3, 1))


def test_median_and_quartiles_of_what_follows_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, cycle([100.0, 4.0, 1.0, 3.0, 5.0, 2.0]))
    one, many = timing.time_rollouts(linear_pcode(1.0, 2.0), numbered(3))
    assert (one.batch, many.batch) == (1, 256)
    assert one.seconds == many.seconds == Estimate(3.0, 2.0, 4.0)


def test_fast_rollouts_are_repeated_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = play(monkeypatch, cycle([2.0**-10]))
    timing.time_rollouts(linear_pcode(1.0, 2.0), numbered(3))
    assert [len(batch) for batch in rows] == 51 * [1] + 51 * [256]
    # One after the other, and over again.
    assert rows[:4] == [[0.0], [1.0], [2.0], [0.0]]
    assert rows[51][:4] == [0.0, 1.0, 2.0, 0.0]


def test_models_that_scale_are_given_the_data_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollout scales its context itself; scaled twice, it would take other steps."""
    rows = play(monkeypatch, cycle([1.0]))
    timing.time_rollouts(RNN.from_config({"dim": 1, "scale": [100.0]}), numbered(3))
    assert rows[:3] == [[0.0], [1.0], [2.0]]


def test_real_rollouts_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    one, many = timing.time_rollouts(linear_pcode(1.0, 1.0), numbered(2))
    for found in (one, many):
        assert 0 < found.seconds.low <= found.seconds.value <= found.seconds.high < 10
