from typing import Any

import numpy as np
import pytest
from starts import random_start

from skipstone.paper.tasks.billiards import simulate
from skipstone.paper.tasks.events import Events


@pytest.fixture
def events() -> Any:
    return simulate(*random_start(6), duration=1.0).events


def test_rows_are_grouped_by_trajectory_and_ordered_in_time(events: Any) -> None:
    assert events.batch == 6
    assert events.counts.sum() == len(events) > 6
    assert (np.diff(events.trajectories) >= 0).all()
    for row in range(6):
        assert (np.diff(events[row].times) >= 0).all()


def test_parts_joined_again_are_the_whole(events: Any) -> None:
    joined = Events.concat([events[:2], events[2:3], events[3:]])
    for name in ["offsets", *Events.column_names()]:
        np.testing.assert_array_equal(getattr(joined, name), getattr(events, name))


def test_one_trajectory_counts_from_either_end(events: Any) -> None:
    np.testing.assert_array_equal(events[-1].times, events[5].times)
    with pytest.raises(IndexError, match="trajectory 6 of 6"):
        events[6]
    with pytest.raises(IndexError, match="step 1"):
        events[::2]
    assert events[3:2].batch == 0


def test_until_cuts_each_trajectory_at_its_own_end(events: Any) -> None:
    ends = np.linspace(0, 1, 6)
    cut = events.until(ends)
    for row, end in enumerate(ends):
        times = events[row].times
        np.testing.assert_array_equal(cut[row].times, times[times <= end])
    np.testing.assert_array_equal(events.delayed(ends)[4].times, events[4].times + ends[4])


def test_no_events() -> None:
    none = Events.none(3)
    assert (none.batch, len(none), none.counts.tolist()) == (3, 0, [0, 0, 0])
