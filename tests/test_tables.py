"""Tables in and out: pandas, polars and pyarrow, every kind of time, every broken rule."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import linear_pcode, random_batch
from skipstone import InvalidInput, Sequences

LIBRARIES = ("pandas", "polars", "pyarrow")
NOW = 1_700_000_000_000_000_000
"""Nanoseconds since 1970, far beyond what a float64 holds exactly."""


def frame(library: str, columns: dict[str, Any]) -> Any:
    """A frame of a library from pyarrow's arrays or lists, whose dtypes all three keep."""
    table = pa.table(columns)
    if library == "pandas":
        return table.to_pandas()
    return pl.from_arrow(table) if library == "polars" else table


def as_lists(table: Any) -> dict[str, list[Any]]:
    """Columns as lists, stamps as integers in nanoseconds."""
    arrow = table if isinstance(table, pa.Table) else None
    if arrow is None:
        arrow = pa.table(table) if isinstance(table, pl.DataFrame) else pa.Table.from_pandas(table)
    columns = {}
    for name in arrow.column_names:
        column = arrow[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
        columns[name] = column.to_pylist()
    return columns


def schema(table: Any) -> list[str]:
    if isinstance(table, pa.Table):
        return [str(kind) for kind in table.schema.types]
    kinds = table.dtypes if isinstance(table, pl.DataFrame) else list(table.dtypes)
    return [str(kind) for kind in kinds]


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


def forecast(library: str, zone: str | None = "Europe/Berlin", **options: Any) -> tuple[Any, Any]:
    """Two logs with different starts and ends, and a path that moves by 1 a second."""
    seconds = [100, 101, 500, 501]
    table = frame(
        library,
        {
            "who": ["a", "a", "b", "b"],
            "t": pa.array([10**6 * s for s in seconds], pa.timestamp("us", zone)),
            "height": [0.0, 1.0, 10.0, 20.0],
        },
    )
    data = Sequences.from_table(table, id="who", time="t", values="height", dtype=torch.float64)
    until = data.ends + torch.tensor([2.0, 3.0])
    return data, linear_pcode(rate=1.0, step=1.5).rollout(data.tail(1), until=until, **options)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("every", [timedelta(seconds=1), np.timedelta64(1, "s"), 1, 1.0])
def test_a_path_becomes_a_table(library: str, every: Any) -> None:
    data, path = forecast(library)
    table = path.to_table(every=every)
    assert type(table) is type(data.to_table())
    assert schema(table) == schema(data.to_table())
    columns = as_lists(table)
    assert columns["who"] == ["a", "a", "b", "b", "b"]
    assert [t // 10**9 for t in columns["t"]] == [102, 103, 502, 503, 504]
    assert columns["height"] == pytest.approx([2, 3, 21, 22, 23])


def test_a_path_can_be_asked_for_stamps() -> None:
    _, path = forecast("polars", zone=None)
    context, _ = forecast("polars", zone=None)
    moment = datetime(1970, 1, 1, 0, 8, 22)
    assert context.model_times(moment).tolist() == [402, 2]
    alone = linear_pcode(1.0, 1.5).rollout(context[1].tail(1), until=context[1].model_times(moment))
    for stamps in (moment, np.datetime64("1970-01-01T00:08:22"), pd.Timestamp(moment)):
        assert alone.evaluate(stamps).item() == pytest.approx(21)
    for stamps in (
        [moment],
        pl.Series([moment]),
        pd.Series([moment]),
        pa.chunked_array([[moment]]),
    ):
        assert alone.evaluate(stamps).shape == (1, 1, 1)
        assert alone.to_table(stamps)["height"].to_list() == pytest.approx([21])
    for stamps, message in [
        (moment.replace(tzinfo=UTC), "have no time zone, and stamps must not have one"),
        (timedelta(1), "stamps must be datetimes, as the times of this table; got datetime.timed"),
        (moment, "trajectory 0 covers [1970-01-01T00:01:41.000000, 1970-01-01T00:01:43.000000]"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            path.evaluate(stamps)
    zoned = forecast("pandas")[1]
    with pytest.raises(InvalidInput, match="have the time zone Europe/Berlin, and stamps must not"):
        zoned.evaluate(moment)
    with pytest.raises(InvalidInput, match="numbers, as the times of this table"):
        linear_pcode(1.0, 3.0).rollout(
            Sequences.from_array(np.zeros((1, 1, 1))), until=2.0
        ).evaluate(moment)


def test_bad_requests_for_a_table_are_explained() -> None:
    _, path = forecast("polars")
    for options, message in [
        ({}, "either `every`, a length of time, or `times`; got neither."),
        ({"times": 1.0, "every": 1.0}, "got both."),
        ({"every": 2.5}, "every must fit into each trajectory; it is 2.5 in model time, and "
         "trajectory 0 lasts 2."),
        ({"every": 0}, "every must be above 0; got 0."),
        ({"every": "1h"}, "every must fit into each trajectory; it is 3600 in model time"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=re.escape(message)):
            path.to_table(**options)


def test_times_between_two_ticks_are_refused_where_ticks_are_coarse() -> None:
    for stamps, message in [
        (pa.array([1, 2], pa.date32()), "holds whole days; got a time between two of them, 1.5"),
        (pa.array([1, 2]), "holds whole numbers; got a time between two of them, 2.5 in model time"
         ". Ask for whole ones, or convert the column before from_table: to floats."),
        (pa.array([1, 2], pa.timestamp("s")), "holds whole s; got a time between two"),
    ]:  # fmt: skip
        data = Sequences.from_table(
            pa.table({"t": stamps, "x": [0.0, 1.0]}), time="t", values="x", dtype=torch.float64
        )
        path = linear_pcode(1.0, 1.0).rollout(data.tail(1), until=data.ends + 1)
        with pytest.raises(InvalidInput, match=re.escape(message)):
            path.to_table(every=0.5)
        assert path.to_table(every=1.0).num_rows == 1
        assert repr(path)


def test_dates_can_be_asked_for_by_date() -> None:
    table = pa.table({"t": pa.array([1, 2], pa.date32()), "x": [0.0, 1.0]})
    data = Sequences.from_table(table, time="t", values="x", dtype=torch.float64)
    path = linear_pcode(1.0, 1.0).rollout(data.tail(1), until=data.model_times(date(1970, 1, 5)))
    out = path.to_table([date(1970, 1, 4), date(1970, 1, 5)])
    assert out.column_names == ["t", "x"]
    assert out["t"].to_pylist() == [date(1970, 1, 4), date(1970, 1, 5)]
    assert out["x"].to_pylist() == pytest.approx([2, 3])


def test_reprs_are_short_and_safe() -> None:
    evil = "<script>alert(1)</script>"
    rows = {"id": [evil, "b\n", "c" * 99, "d"], "t": [1, 1, 1, 1], "<b>": [1.0, 2.0, 3.0, 4.0]}
    data = Sequences.from_table(pa.table(rows), id="id", time="t", values="<b>")
    assert repr(data) == (
        "Sequences(batch=4, observations=1, dim=1, control=0, dtype=torch.float32, device=cpu, "
        "ids=[<script>alert(1)</scrip…, b�, ccccccccccccccccccccccc…, … 4 in all], "
        "features=[<b>], times=[1, 1])"
    )
    html = data._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    _, path = forecast("polars")
    assert repr(path) == (
        "Path(batch=2, times=[1970-01-01T00:01:41.000000, 1970-01-01T00:08:24.000000] UTC, "
        "updates per row=1.5, ids=[a, b], features=[height])"
    )
    assert "<table>" in path._repr_html_()
