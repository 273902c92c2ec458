"""Stamps and lengths as text: what is read, what is refused, and where they are understood."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skipstone import RNN, InvalidInput, Sequences
from skipstone.tables.texts import parse_length, parse_stamps

offsets = st.none() | st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@given(
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    offsets,
    st.sampled_from(["T", " "]),
)
def test_stamps_are_read_as_python_reads_them(moment: datetime, zone: Any, between: str) -> None:
    stamp = moment.replace(tzinfo=zone)
    (found,), zoned = parse_stamps([stamp.isoformat(between)])
    assert zoned == (zone is not None)
    expected = stamp if zone is None else stamp.astimezone(UTC).replace(tzinfo=None)
    assert found == np.datetime64(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-06-01", np.datetime64("2026-06-01", "D")),
        ("2026-06-01T12:30", np.datetime64("2026-06-01T12:30", "us")),
        ("2026-06-01 12:30:00.123456789", np.datetime64("2026-06-01T12:30:00.123456789", "ns")),
        ("2026-06-01T12:30Z", np.datetime64("2026-06-01T12:30", "us")),
        ("2026-06-01T12:30-0330", np.datetime64("2026-06-01T16:00", "us")),
        ("2026-06-01T12:30+02", np.datetime64("2026-06-01T10:30", "us")),
    ],
)
def test_stamps_keep_their_precision(text: str, expected: np.datetime64) -> None:
    (found,), _ = parse_stamps([text])
    assert found == expected
    assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["01/02/2024"], "must be ISO 8601, such as 2026-06-01, 2026-06-01T12:30"),
        (["2024-01-01", "soon"], "got 'soon' in row 1"),
        (["2024-01-01T10:00Z", "2024-01-01T10:00"], "all have an offset from UTC, or none"),
        (["2024-02-30"], "must be days and hours that exist"),
    ],
)
def test_other_texts_are_explained(texts: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        parse_stamps(texts)


def test_lengths() -> None:
    assert parse_length("6h") == (6.0, "h")
    assert parse_length(" 1.5 D") == (1.5, "D")
    assert parse_length("2d") == (2.0, "D")
    assert parse_length("3") == (3.0, "")
    with pytest.raises(InvalidInput, match="a number with a unit, such as 6h"):
        parse_length("an hour")


@pytest.fixture
def rooms() -> Sequences:
    rows = [
        {"room": room, "time": datetime(2026, 1, 1, first + h), "x": float(h)}
        for room, first in (("a", 0), ("b", 3))
        for h in range(6)
    ]
    return Sequences.from_table(pl.DataFrame(rows), id="room", time="time", values="x", unit="h")


def test_a_rollout_ends_at_a_moment(rooms: Sequences) -> None:
    """However it is written, it is the same moment for rooms that began at different hours."""
    model = RNN.for_data(rooms, hidden=4)
    end = datetime(2026, 1, 2)
    for until in (end, "2026-01-02", "2026-01-02T00:00", np.datetime64(end), date(2026, 1, 2)):
        path = model.rollout(rooms.tail(4), until=until)
        assert path.end.tolist() == [24.0, 21.0]
    table = path.to_table(every="90min")
    assert table["time"][0] == datetime(2026, 1, 1, 6, 30)
    assert torch.equal(path.evaluate("2026-01-01T12:00"), path.evaluate(datetime(2026, 1, 1, 12)))
    with pytest.raises(
        InvalidInput,
        match=r"ends at 2026-01-01T05:00:00.000000 and until is 2026-01-01T00:00:00.000000",
    ):
        model.rollout(rooms.tail(4), until="2026-01-01")
    with pytest.raises(
        InvalidInput,
        match=re.escape(
            "trajectory 1 covers [2026-01-01T08:00:00.000000, 2026-01-02T00:00:00.000000] and was "
            "asked for 2026-01-01T06:00:00.000000."
        ),
    ):
        path.evaluate("2026-01-01T06:00")
    with pytest.raises(InvalidInput, match="have no time zone, and stamps must not have one"):
        model.rollout(rooms.tail(4), until="2026-01-02T00:00Z")
    with pytest.raises(InvalidInput, match="a unit of time must be"):
        path.to_table(every="2weeks")


def test_numbers_have_no_stamps() -> None:
    data = Sequences.from_array(torch.zeros(2, 6, 1))
    model = RNN.for_data(data, hidden=4)
    with pytest.raises(InvalidInput, match="stamps must be numbers, as the times of this table"):
        model.rollout(data.tail(4), until="2026-01-02")
    path = model.rollout(data.tail(4), until=9)
    with pytest.raises(InvalidInput, match="every must be a number for these times; got '1h'"):
        path.to_table(every="1h", like="polars")
    assert len(path.to_table(every="2", like="polars")) == 4
