"""Tables in: pandas, polars and pyarrow, every kind of time, every broken rule."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_batch
from skipstone import InvalidInput, Sequences
from table_frames import LIBRARIES, NOW, as_lists, frame, schema


@st.composite
def logs(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Interleaved rows of a few ids; ticks increase within each."""
    ids = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True))
    order = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=20))
    now = {one: draw(st.integers(0, 10**6)) for one in ids}
    ticks = []
    for one in order:
        now[one] += draw(st.sampled_from([1, 1000, 1001, 86_400 * 10**9]))
        ticks.append(now[one])
    numbers = st.floats(-1e300, 1e300, allow_subnormal=False)
    values = draw(st.lists(numbers, min_size=len(order), max_size=len(order)))
    return {"who": order, "ticks": ticks, "x": values, "n": list(range(len(order)))}


def grouped(log: dict[str, list[Any]], times: list[Any]) -> dict[str, list[Any]]:
    """Rows as they come back: those of an id together, ids in the order of appearance."""
    first = {one: i for i, one in reversed(list(enumerate(log["who"])))}
    rows = sorted(range(len(times)), key=lambda row: first[log["who"][row]])
    pick = {"who": log["who"], "t": times, "x": log["x"], "n": log["n"]}
    return {name: [column[row] for row in rows] for name, column in pick.items()}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@settings(max_examples=25)
@given(log=logs(), unit=st.sampled_from(["ns", "us", "s", "h", "D", None]))
def test_nanoseconds_and_ids_come_back_exactly(
    library: str, zone: str | None, log: dict[str, list[Any]], unit: str | None
) -> None:
    ticks = [NOW + tick for tick in log["ticks"]]
    stamps = pa.array(ticks, pa.timestamp("ns", zone))
    table = frame(library, {"who": log["who"], "t": stamps, "x": log["x"], "n": log["n"]})
    data = Sequences.from_table(
        table, id="who", time="t", values=["x"], controls="n", unit=unit, dtype=torch.float64
    )
    back = data.to_table()
    assert type(back) is type(table)
    assert schema(back)[:3] == schema(table)[:3]
    assert as_lists(back) == grouped(log, ticks)
    assert list(data.ids) == list(dict.fromkeys(log["who"]))  # pyright: ignore
    assert (data.times[:, 0] == 0).all()


@pytest.mark.parametrize("library", LIBRARIES)
@settings(max_examples=25)
@given(log=logs(), start=st.sampled_from([0, -5, 2**31, NOW, -NOW]))
def test_integers_come_back_exactly(library: str, log: dict[str, list[Any]], start: int) -> None:
    ticks = [start + tick for tick in log["ticks"]]
    table = frame(library, {"who": log["who"], "t": ticks, "x": log["x"], "n": log["n"]})
    data = Sequences.from_table(table, id="who", time="t", values=["x", "n"], dtype=torch.float64)
    assert as_lists(data.to_table()) == grouped(log, ticks)
    small = max(map(abs, ticks)) <= 2**32
    assert (data.clock.origins is None) == small
    if small:
        assert data.times[0, 0] == ticks[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_microseconds_a_microsecond_apart_survive(library: str) -> None:
    ticks = [NOW + 1000 * i for i in range(5)]
    table = frame(library, {"t": pa.array(ticks, pa.timestamp("ns")), "x": [1.0] * 5})
    data = Sequences.from_table(table, time="t", values="x")
    assert data.times[0].tolist() == [0.0, 1e-6, 2e-6, 3e-6, 4e-6]
    assert as_lists(data.to_table()) == {"t": ticks, "x": [1.0] * 5}
    assert data.ids is None


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("stamps", "times"),
    [
        (pa.array([0.5, 1.75, 4.0]), [0.5, 1.75, 4.0]),
        (pa.array([0.5, 1.75, 4.0], pa.float32()), [0.5, 1.75, 4.0]),
        (pa.array([3, 5, 9], pa.int16()), [3, 5, 9]),
        (pa.array([1, 2, 4], pa.date32()), [0, 1, 3]),
        (pa.array([1000, 2000, 4500], pa.duration("ms")), [0, 1, 3.5]),
        (pa.array([10, 20, 45], pa.timestamp("s")), [0, 10, 35]),
        (pa.array([10, 20, 45], pa.timestamp("ms", "Asia/Tokyo")), [0, 0.01, 0.035]),
    ],
    ids=["float", "single", "integer", "date", "duration", "seconds", "zone"],
)
def test_every_kind_of_time(library: str, stamps: pa.Array, times: list[float]) -> None:
    table = frame(library, {"t": stamps, "x": [1.0, 2.0, 3.0]})
    if library == "pandas" and pa.types.is_date(stamps.type):
        table["t"] = table["t"].astype("date32[pyarrow]")
    data = Sequences.from_table(table, time="t", values="x")
    assert data.times[0].tolist() == times
    back = data.to_table()
    assert as_lists(back)["t"] == as_lists(table)["t"]
    if stamps.type not in (pa.float32(), pa.int16()):  # Numbers come back in 64 bits.
        assert schema(back)[0] == schema(table)[0]
    for other in LIBRARIES:
        as_other = as_lists(data.to_table(like=other))["t"]
        assert [str(one) for one in as_other] == [str(one) for one in as_lists(table)["t"]]


def test_frames_of_another_library_can_be_asked_for() -> None:
    table = frame("pandas", {"id": [7, 7, 3], "t": pa.array([1, 2, 1], pa.timestamp("s")), "x": [
        1.0, 2.0, 3.0]})  # fmt: skip
    data = Sequences.from_table(table, id="id", time="t", values="x")
    for like in ("polars", pl.DataFrame()):
        back = data.to_table(like=like)
        assert back["id"].to_list() == [7, 7, 3]
        assert back["t"].dtype == pl.Datetime("ms")
        assert back["t"][1] == datetime(1970, 1, 1, 0, 0, 2)
    assert isinstance(data.to_table(like="pyarrow"), pa.Table)
    with pytest.raises(InvalidInput, match=re.escape('like must be "pandas", "polars" or "pyarr')):
        data.to_table(like="numpy")
    plain = random_batch(0, [2, 3], control=1)
    assert plain.to_table(like="polars").columns == ["id", "time", "x0", "x1", "u0"]
    assert plain.to_table(like="polars")["id"].to_list() == [0, 0, 1, 1, 1]
    with pytest.raises(InvalidInput, match="did not come from a table, so `like` must say"):
        plain.to_table()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("rule", "x"), [("first", [1, 4, 5]), ("last", [3, 4, 5]), ("mean", [2, 4, 5])]
)
def test_duplicates(library: str, rule: str, x: list[float]) -> None:
    rows = {"id": ["a", "b", "a", "a", "b"], "t": [1, 1, 1, 1, 2], "x": [1, 4, 2, 3, 5]}
    data = Sequences.from_table(
        frame(library, rows), id="id", time="t", values="x", duplicates=rule
    )
    assert as_lists(data.to_table()) == {"id": ["a", "b", "b"], "t": [1, 1, 2], "x": x}


def test_ids_and_numbers_of_every_dtype() -> None:
    x = [1, 2, 3]
    for table in (
        pd.DataFrame({"id": pd.Categorical(["b", "a", "b"]), "t": [1, 1, 2], "x": x}),
        pd.DataFrame({"id": pd.Series(["b", "a", "b"], dtype=object), "t": [1, 1, 2], "x": x}),
        pd.DataFrame({"id": ["b", "a", "b"], "t": [1, 1, 2], "x": pd.array(x, dtype="Int64")}),
        pd.DataFrame({"id": ["b", "a", "b"], "t": pd.array([1, 1, 2], dtype="Int64"), "x": x}),
        pl.DataFrame({"id": ["b", "a", "b"], "t": [1, 1, 2], "x": x}).cast({"id": pl.Categorical}),
        pl.DataFrame({"id": ["b", "a", "b"], "t": [1, 1, 2], "x": x}).cast({"x": pl.Decimal(9, 2)}),
        pl.DataFrame({"id": ["b", "a", "b"], "t": [1, 1, 2], "x": x}).cast({"x": pl.UInt8}),
    ):
        data = Sequences.from_table(table, id="id", time="t", values="x")
        assert list(data.ids) == ["b", "a"]  # pyright: ignore[reportArgumentType]
        assert data.values.dtype == torch.float32
        assert data.values[0].flatten().tolist() == [1, 3]
        assert list(data.to_table()["id"]) == ["b", "b", "a"]
    mixed = pd.DataFrame({"id": [(1, 2), "a", (1, 2)], "t": [1, 1, 2], "x": x})
    back = Sequences.from_table(mixed, id="id", time="t", values="x").to_table()
    assert list(back["id"]) == [(1, 2), (1, 2), "a"]
    small = pl.DataFrame({"id": x, "t": x, "x": x}).cast({"id": pl.UInt8})
    back = Sequences.from_table(small, id="id", time="t", values="x").to_table()
    assert back.schema["id"] == pl.UInt8


def test_offsets_are_time_zones() -> None:
    table = pd.DataFrame(
        {"t": pd.to_datetime(["2026-01-01T00:00+01:00", "2026-01-01T01:30+01:00"]), "x": [1.0, 2.0]}
    )
    data = Sequences.from_table(table, time="t", values="x", unit="h")
    assert data.times[0].tolist() == [0, 1.5]
    pd.testing.assert_frame_equal(data.to_table(), table, check_dtype=False)
    # The clock goes from 2 to 3 that night.
    night = pd.to_datetime(["2026-03-29T01:00", "2026-03-29T03:30"]).tz_localize("Europe/Berlin")
    data = Sequences.from_table(table.assign(t=night), time="t", values="x", unit="h")
    assert data.times[0].tolist() == [0, 1.5]


GOOD = {"id": ["a", "b", "a"], "t": [1.0, 1.0, 2.0], "x": [1.0, 2.0, 3.0]}
BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"t": [2.0, 1.0, 1.5]}, {}, "times must increase within an id; id 'a', row 2 has 1.5 after "
     "2.0 in row 0. Sort it: {sort}."),
    ({"t": [2.0, 1.0, 2.0]}, {}, "an id must have one row at a time; id 'a', row 2 has 2.0, as row "
     '0. Drop one, or say which counts: duplicates="first", "last" or "mean".'),
    ({"t": [2.0, 1.0, 1.5]}, {"id": None}, "Sort it: {sort}; or, if rows are of several sequences, "
     "name the column that says which: id=..."),
    ({"t": [1.0, 1.0, 1.5]}, {"id": None}, '"mean"; or, if rows are of several sequences, name the '
     "column that says which: id=..."),
    ({"x": [1.0, None, 3.0]}, {}, "all values of sequence 1 are NaN. Drop it."),
    ({"x": [1.0, None, 3.0], "y": [1.0, 2.0, 3.0]}, {"values": "y", "controls": "x"},
     "controls must be finite; id 'b', row 1 has nan in column 'x'. Fill it in."),
    ({"x": [1.0, 2.0, float("inf")]}, {}, "id 'a', row 2 has inf in column 'x'"),
    ({"t": [1.0, None, 3.0]}, {}, "each row must have a finite time; id 'b', row 1 has"),
    ({"id": ["a", None, "a"]}, {}, "each row must have an id; row 1 has none in column 'id'."),
    ({"x": ["1", "2", "3"]}, {}, "values and controls must be numbers; column 'x' holds String."),
    ({"x": [True, False, True]}, {}, "column 'x' holds Boolean."),
    ({"t": ["1", "2", "3"]}, {}, "times must be datetimes, dates, durations, integers or floats; "
     "column 't' holds String."),
    ({}, {"values": "X"}, "the table has no column 'X'. "),
    ({}, {"time": "tt"}, "the table has no column 'tt'. Did you mean t?"),
    ({}, {"values": []}, "values must name at least one column; got none."),
    ({}, {"controls": "x"}, "'x' is named twice."),
    ({}, {"duplicates": "mode"}, 'duplicates must be "error", "first", "last" or "mean"'),
    ({}, {"unit": "s"}, "unit is for datetimes, dates and durations; these times are numbers and "
     "are taken as they are, but unit is 's'. Leave it out."),
]  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("columns", "options", "message"), BAD, ids=range(len(BAD)))
def test_bad_tables_are_explained(
    library: str, columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    sort = {
        "pandas": "frame.sort_values('t')",
        "polars": "frame.sort('t')",
        "pyarrow": "table.sort_by('t')",
    }[library]
    arguments = {"id": "id", "time": "t", "values": "x", **options}
    with pytest.raises(InvalidInput, match=re.escape(message.format(sort=sort))):
        Sequences.from_table(frame(library, {**GOOD, **columns}), **arguments)


@pytest.mark.parametrize("library", LIBRARIES)
def test_empty_tables_and_single_rows(library: str) -> None:
    with pytest.raises(InvalidInput, match="at least one row; this one is empty"):
        Sequences.from_table(
            frame(library, {"t": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}),
            time="t",
            values="x",
        )
    data = Sequences.from_table(frame(library, GOOD), id="id", time="t", values="x")
    assert data.lengths.tolist() == [2, 1]


def test_what_is_no_table_is_explained() -> None:
    for thing, message in [
        ({"t": [1]}, "must be a frame of pandas, polars or pyarrow; got dict. For arrays use"),
        (pl.DataFrame({"t": [1]}).lazy(), "got LazyFrame. Call .collect() first."),
        (pd.DataFrame([[1, 2]], columns=["t", "t"]), "each column must have a name of its own"),
        (pd.DataFrame({"x": [1]}, index=pd.Index([1], name="t")), "'t' must be a column; it is "
         "the index of this frame. Use frame.reset_index()."),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=re.escape(message)):
            Sequences.from_table(thing, time="t", values="x")


def test_stamps_that_floats_cannot_tell_apart_are_refused() -> None:
    table = frame("polars", {"t": [NOW, 2 * NOW, 2 * NOW + 1], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(InvalidInput, match=re.escape("row 2 has 3400000000000000001, which a flo")):
        Sequences.from_table(table, time="t", values="x")


def test_integers_of_128_bits_are_times_like_others() -> None:
    def table(first: int) -> pl.DataFrame:
        times = pl.Series([first + 5 * step for step in range(3)], dtype=pl.Int128)
        return pl.DataFrame({"t": times, "x": [1.0, 2.0, 3.0]})

    read = Sequences.from_table(table(1_700_000_000_000_000_000), time="t", values=["x"])
    assert read.times.tolist() == [[0.0, 5.0, 10.0]]
    for first in (10**25, -(10**25)):
        with pytest.raises(InvalidInput, match=r"integer times must be below 2\*\*63; got 100000"):
            Sequences.from_table(table(first), time="t", values=["x"])


def test_ids_that_cannot_be_compared_are_explained() -> None:
    columns: dict[str, Any] = {"t": [1, 2], "x": [1.0, 2.0]}
    frame = pl.DataFrame({**columns, "id": [[1], [2]]})
    with pytest.raises(InvalidInput, match=r"ids must be texts, numbers or moments; column 'id'"):
        Sequences.from_table(frame, id="id", time="t", values=["x"])
    nullable = pd.DataFrame({**columns, "id": pd.array([1, None], dtype="Int64")})
    with pytest.raises(InvalidInput, match="each row must have an id; row 1 has none"):
        Sequences.from_table(nullable, id="id", time="t", values=["x"])
