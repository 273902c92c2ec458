"""Windows never cross gaps, splits never leak, and names go along with everything."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import random_batch
from skipstone import InvalidInput, Sequences


def log(gaps: list[list[float]], ids: list[str] | None = None) -> Sequences:
    """Sequences with these gaps between observations; values number all observations."""
    times = [np.cumsum([0.0, *row]) for row in gaps]
    starts = np.cumsum([0] + [len(row) for row in times])
    values = [
        start + np.arange(len(row))[:, None] for start, row in zip(starts, times, strict=False)
    ]
    return Sequences.from_lists(values, times).named(ids=ids)


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0, 9.0]), max_size=14), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from([None, 1.0, 2.0, 8.0]),
)
def test_windows_are_all_that_fit_between_gaps(
    gaps: list[list[float]], length: int, stride: int, max_gap: float | None
) -> None:
    data = log(gaps)
    wanted, number = [], 0
    for row in gaps:
        pieces = [[number]]
        for gap in row:
            number += 1
            if max_gap is not None and gap > max_gap:
                pieces.append([])
            pieces[-1].append(number)
        number += 1
        for piece in pieces:
            starts = range(0, len(piece) - length + 1, stride)
            wanted += [piece[start : start + length] for start in starts]
    if not wanted:
        with pytest.raises(InvalidInput, match=f"a window has {length} observations; the longest"):
            data.windows(length, stride, max_gap)
        return
    windows = data.windows(length, stride, max_gap)
    assert windows.values[..., 0].long().tolist() == wanted
    assert windows.mask.all()
    if max_gap is not None:
        assert (windows.times.diff(dim=1) <= max_gap).all()


def test_windows_stand_side_by_side_unless_told_otherwise() -> None:
    windows = log([[1.0] * 6], ids=["a"]).windows(3)
    assert windows.values[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert windows.times.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert list(windows.ids) == ["a", "a"]  # pyright: ignore[reportArgumentType]


def test_a_gap_is_ten_times_the_usual_time_unless_told_otherwise() -> None:
    data = log([[1.0, 1.0, 10.0, 1.0, 11.0, 1.0, 1.0]])
    assert data.windows(4).values[..., 0].tolist() == [[0, 1, 2, 3]]
    assert data.windows(3).values[..., 0].tolist() == [[0, 1, 2], [5, 6, 7]]
    crossing = data.windows(8, max_gap=math.inf)
    assert crossing.values[..., 0].tolist() == [list(range(8))]
    assert len(log([[], []]).windows(1)) == 2  # One observation each, and no time between any.


def test_gaps_of_datetimes_are_timedeltas() -> None:
    start = datetime(2026, 1, 1)
    stamps = [start + timedelta(minutes=m) for m in (0, 5, 10, 40, 45, 50)]
    table = pl.DataFrame({"t": stamps, "x": np.arange(6.0)})
    data = Sequences.from_table(table, time="t", values="x", unit="min")
    for gap in (timedelta(minutes=10), 10, np.timedelta64(10, "m")):
        assert data.windows(3, 1, gap).values[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    before, after = data.split_by_time(stamps[2])
    assert before.to_table()["t"].to_list() == stamps[:2]
    assert after.to_table()["t"].to_list() == stamps[2:]


def test_a_long_log_takes_no_time() -> None:
    rows = 50_000
    table = pl.DataFrame({"t": np.arange(rows), "x": np.random.default_rng(0).normal(size=rows)})
    began = time.perf_counter()
    windows = Sequences.from_table(table, time="t", values="x").windows(50, stride=5, max_gap=1)
    assert len(windows) == (rows - 50) // 5 + 1
    assert time.perf_counter() - began < 5  # A twentieth of that, on an idle machine.


@given(st.lists(st.sampled_from("abcdef"), min_size=6, max_size=30), st.integers(0, 9))
def test_no_id_is_on_both_sides_of_a_split(ids: list[str], seed: int) -> None:
    data = log([[1.0]] * len(ids), ids)
    if len(set(ids)) < 2:
        with pytest.raises(InvalidInput, match="stay together, and each part must get at least"):
            data.split([0.5, 0.5], seed)
        return
    one, two = data.split([0.5, 0.5], seed)
    assert not set(one.ids) & set(two.ids)  # pyright: ignore[reportArgumentType]
    found = torch.cat([one.values, two.values]).flatten().tolist()
    assert sorted(found) == data.values.flatten().tolist()


def test_windows_of_one_log_cannot_be_split_by_chance() -> None:
    windows = log([[1.0] * 30]).windows(5, 1)
    with pytest.raises(InvalidInput, match=re.escape("27 sequences of 1 id split by")):
        windows.split([0.9, 0.1], seed=0)


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0]), max_size=9), min_size=1, max_size=4),
    st.floats(0, 10),
)
def test_a_split_by_time_cuts(gaps: list[list[float]], at: float) -> None:
    data = log(gaps, [str(row) for row in range(len(gaps))])
    early = (data.times < at) & data.mask
    if not early.any() or not (data.mask & ~early).any():
        with pytest.raises(InvalidInput, match="there must be observations before and after"):
            data.split_by_time(at)
        return
    before, after = data.split_by_time(at)
    assert (before.times < at).all()
    assert (after.times >= at).all()
    both = torch.cat([before.values[before.mask], after.values[after.mask]]).flatten()
    assert sorted(both.tolist()) == data.values[data.mask].flatten().tolist()
    first = {one: row for row, one in enumerate(data.ids)}  # pyright: ignore[reportArgumentType]
    for row, one in enumerate(after.ids):  # pyright: ignore[reportArgumentType]
        source = data.values[first[one]].flatten().tolist()
        assert set(after.values[row][after.mask[row]].flatten().tolist()) <= set(source)


STAMPED = Sequences.from_table(
    pl.DataFrame(
        {
            "who": [who for who in "abc" for _ in range(4)],
            "at": [10**18 * (1 + k) + i for k in range(3) for i in range(4)],
            "x": np.arange(12.0),
            "u": np.arange(12.0),
        }
    ),
    id="who",
    time="at",
    values="x",
    controls="u",
)


@pytest.mark.parametrize(
    ("act", "rows"),
    [
        (lambda s: s[1], [4, 5, 6, 7]),
        (lambda s: s[[2, 0]], [8, 9, 10, 11, 0, 1, 2, 3]),
        (lambda s: s[1:], [4, 5, 6, 7, 8, 9, 10, 11]),
        (lambda s: s[torch.tensor([True, False, True])], [0, 1, 2, 3, 8, 9, 10, 11]),
        (lambda s: s.head(2), [0, 1, 4, 5, 8, 9]),
        (lambda s: s.tail(1), [3, 7, 11]),
        (lambda s: s.select(s.values[..., 0] % 2 == 1), [1, 3, 5, 7, 9, 11]),
        (lambda s: s.to("cpu", torch.float64), [*range(12)]),
        (lambda s: s.split([0.67, 0.33])[1], [8, 9, 10, 11]),
        (lambda s: s.windows(3, 1), [0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10, 9, 10, 11]),
        (lambda s: s.split_by_time(2)[0], [0, 1, 4, 5, 8, 9]),
        (lambda s: Sequences.concat([s[2], s[0].head(2)]), [8, 9, 10, 11, 0, 1]),
        (lambda s: s.named(ids="xyz").named(ids="abc"), [*range(12)]),
    ],
)
def test_names_and_stamps_go_along(act: Callable[[Sequences], Sequences], rows: list[int]) -> None:
    """Each row's id, stamp, value and control still belong together after anything."""
    changed = act(STAMPED)
    table = changed.to_table()
    assert table.columns == ["who", "at", "x", "u"]
    assert table["x"].to_list() == table["u"].to_list() == rows
    assert table["who"].to_list() == ["abc"[row // 4] for row in rows]
    assert table["at"].to_list() == [10**18 * (1 + row // 4) + row % 4 for row in rows]
    assert (changed.features, changed.control_names) == (("x",), ("u",))


def test_names_that_do_not_fit_are_explained() -> None:
    batch = random_batch(0, [3, 4])
    other = batch.named(features=["x", "y"])
    for act, message in [
        (lambda: batch.named(ids=["a"]), "ids must be 2 here, one each; got 1."),
        (lambda: batch.named(features=["x", "x"]), "each column must have a name of its own"),
        (lambda: batch.named(ids=[["a"], "b"]), "ids must be hashable; got ['a']. Use text."),
        (lambda: Sequences.concat([batch, batch.named(ids="ab")]), "must all have ids, or none"),
        (
            lambda: Sequences.concat([other, batch.named(features=["y", "x"])]),
            "must have the same features; got ['x', 'y'] and ['y', 'x']",
        ),
        (
            lambda: Sequences.concat([STAMPED, random_batch(0, [3], 1, 1).named(ids="a")]),
            "must have times of one kind; got integers and numbers",
        ),
        (lambda: batch.windows(0), "length, the observations of a window, must be at least 1"),
        (lambda: batch.windows(2, 0), "stride, the observations from window to window, must be"),
        (
            lambda: batch.windows(9),
            "a window has 9 observations; the longest stretch",
        ),
        (lambda: batch.windows(2, 1, timedelta(1)), "max_gap must be a number for these times"),
        (lambda: batch.split_by_time(-1), "none is before -1."),
        (lambda: batch.split_by_time(99), "all are before 99."),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            act()
    assert Sequences.concat([batch, other]).features == ("x", "y")
    assert batch.named(ids=[(1, 2), (3, 4)])[1].ids[0] == (3, 4)  # pyright: ignore
