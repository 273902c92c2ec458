"""Updates against collisions: known shares, a brute-force count, and the level of chance."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.evaluation import Alignment
from skipstone.evaluation.alignment import align
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.rollouts import Errors, Rollouts
from skipstone.paper.tasks import Events


def collisions(times: list[list[float]]) -> Events:
    offsets = np.cumsum([0, *map(len, times)])
    flat = np.array([time for row in times for time in row], dtype=float)
    column, place = np.zeros(len(flat), dtype=np.int64), np.zeros((len(flat), 1, 1))
    return Events(offsets, flat, column, column, column, place, place)


def rollouts(start: float, end: float, updates: list[list[float]]) -> Rollouts:
    batch = len(updates)
    knots = np.full((batch, 1 + max(map(len, updates))), np.inf)
    knots[:, 0] = start
    for row, times in enumerate(updates):
        knots[row, 1 : 1 + len(times)] = times
    return Rollouts(
        errors=Errors(np.zeros((batch, 1)), np.ones((batch, 1), dtype=bool)),
        start=np.full(batch, start),
        end=np.full(batch, end),
        knots=knots,
        evaluations=np.zeros(batch, dtype=np.int64),
    )


def aligned(
    updates: list[list[float]],
    times: list[list[float]],
    start: float = 0.0,
    end: float = 10.0,
    unit: float = 1.0,
) -> Alignment:
    resampling, placement = np.random.default_rng(0).spawn(2)
    bootstrap = Bootstrap(len(updates), resampling)
    return align(rollouts(start, end, updates), collisions(times), unit, bootstrap, placement)


def test_shares_of_known_updates_and_collisions() -> None:
    # Near: 2.5 of the update at 3, and 8.0, exactly one observation from the update at 7.
    # 0 and 10 are the ends, and the collision near the first update of the path, 0.9, has no other.
    found = aligned([[3.0, 7.0], [5.0]], [[0.0, 0.9, 2.5, 5.0, 8.0, 10.0], [1.0]])
    assert (found.num_collisions, found.num_updates) == (5, 3)
    assert found.recall.value == 2 / 5
    assert found.precision.value == 2 / 3


def test_near_is_one_observation_in_the_unit_of_the_model() -> None:
    # 0.15 + 0.05 is not 0.2 in floating point: the rounding must not count.
    updates, times = [[0.15], [0.15]], [[0.05 + 0.15], [0.201]]
    found = aligned(updates, times, end=1.0, unit=0.05)
    assert found.recall.value == 0.5


def test_trajectories_do_not_see_each_other() -> None:
    found = aligned([[9.9], [5.0]], [[5.0], [0.1]])
    assert found.recall.value == found.precision.value == 0


def test_time_has_no_origin() -> None:
    updates, times = [[3.0, 7.0], [5.0]], [[2.5, 5.0], [6.5]]
    era = 2.0**30
    later = aligned(
        [[time + era for time in row] for row in updates],
        [[time + era for time in row] for row in times],
        start=era,
        end=era + 10,
    )
    assert later == aligned(updates, times)


@settings(max_examples=40)
@given(data=st.data(), batch=st.integers(1, 4))
def test_shares_agree_with_counting_pair_by_pair(data: st.DataObject, batch: int) -> None:
    # Quarters are exact in floating point, so the brute-force comparison has no rounding either.
    moments = st.lists(st.integers(1, 39).map(lambda n: n / 4), max_size=5, unique=True).map(sorted)
    rows = st.lists(moments, min_size=batch, max_size=batch)
    updates, times = data.draw(rows), data.draw(rows)
    found = aligned(updates, times)

    def share(of: list[list[float]], near: list[list[float]]) -> float:
        hits = [
            any(abs(one - other) <= 1 for other in others)
            for ones, others in zip(of, near, strict=True)
            for one in ones
        ]
        return np.mean(hits).item() if hits else math.nan

    np.testing.assert_allclose(found.recall.value, share(times, updates))
    np.testing.assert_allclose(found.precision.value, share(updates, times))


def test_chance_is_the_share_of_the_time_near_a_collision() -> None:
    # One update, one collision: near with probability 2/10 in the middle, 1.5/10 close to the end.
    middle = aligned([[3.0]] * 2000, [[5.0]] * 2000)
    assert abs(middle.random_recall.value - 0.2) < 0.01
    assert middle.random_precision == middle.random_recall
    assert middle.recall.value == 0
    border = aligned([[3.0]] * 2000, [[9.5]] * 2000)
    assert abs(border.random_recall.value - 0.15) < 0.01


def test_nothing_to_find_and_nothing_found() -> None:
    quiet = aligned([[3.0], [4.0]], [[], []])
    assert math.isnan(quiet.recall.value)
    assert quiet.precision.value == quiet.random_precision.value == 0
    single_segments = aligned([[], []], [[3.0], [4.0]])
    assert single_segments.recall.value == single_segments.random_recall.value == 0
    assert math.isnan(single_segments.precision.value)
