"""Paths as tables: stamps, intervals between rows, and what is refused."""

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

from helpers import linear_pcode
from skipstone import InvalidInput, Sequences
from table_frames import LIBRARIES, as_lists, frame, schema


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
