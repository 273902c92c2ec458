"""`plot` shows every feature at its own stamps, and the cell's updates."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import matplotlib.dates as mdates
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch

from helpers import linear_pcode, random_batch
from skipstone import InvalidInput, Sequences, calibrate


def line_values(axes: Any, line: int) -> list[float]:
    return [float(value) for value in axes.lines[line].get_ydata()]


def test_sequences_are_drawn_one_panel_each() -> None:
    data = random_batch(0, [3, 5, 4]).named(ids=["a$b$", "<i>", "c"], features=["x", "y_$1"])
    figure = data.plot(most=2)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == [r"a\$b\$", "<i>"]
    assert line_values(panels[1], 0) == data.values[1, :5, 0].tolist()
    assert len(np.asarray(panels[0].lines[0].get_xdata())) == 3


def test_a_path_is_drawn_with_updates_and_observations() -> None:
    stamps = [datetime(2026, 3, 1, 12) + timedelta(hours=h) for h in range(3)]
    table = pl.DataFrame({"t": stamps, "x": [0.0, 1.0, 2.0]})
    data = Sequences.from_table(table, time="t", values="x", unit="h", dtype=torch.float64)
    path = linear_pcode(rate=1.0, step=1.5).rollout(data.tail(1), until=data.ends + 3)
    (axes,) = path.plot(observed=data).axes
    assert line_values(axes, 0)[-1] == pytest.approx(5)
    last = mdates.date2num(np.asarray(axes.lines[0].get_xdata())[-1])
    assert last == pytest.approx(mdates.date2num(stamps[-1] + timedelta(hours=3)))
    assert line_values(axes, 1) == [0, 1, 2]
    assert len(np.asarray(axes.collections[0].get_offsets())) == int(path.num_updates[0])


@pytest.mark.parametrize(
    "stamps",
    [
        pa.array([1, 2, 4], pa.date32()),
        pa.array([1, 2, 4], pa.duration("s")),
        pa.array([1, 2, 4], pa.timestamp("s", "Asia/Tokyo")),
        pa.array([10**18, 10**18 + 1, 10**18 + 2]),
    ],
)
def test_every_kind_of_time_can_be_drawn(stamps: pa.Array) -> None:
    table = pa.table({"t": stamps, "x": [0.0, 1.0, 2.0]})
    data = Sequences.from_table(table, time="t", values="x", dtype=torch.float64)
    path = linear_pcode(1.0, 1.0).rollout(data.tail(1), until=data.ends + 1.5)
    x = path.plot().axes[0].lines[0].get_xdata()
    # Between two days, too.
    assert stamps.type == pa.int64() or len(np.unique(np.asarray(x))) > 100
    assert data.plot().axes


@pytest.mark.parametrize("hours", [0.001, 0.01, 0.1, 1, 2.9, 12, 60, 71, 400, 2000, 20_000, 99_999])
def test_dates_of_any_range_have_labels(hours: float) -> None:
    """Warnings are errors in tests, so matplotlib finds a spacing for each of them."""
    stamps = [datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12) + timedelta(hours=hours)]
    table = pl.DataFrame({"t": stamps, "x": [0.0, 1.0]})
    (axes,) = Sequences.from_table(table, time="t", values="x").plot().axes
    assert 2 <= len(axes.get_xticks()) <= 9


def test_bad_plots_are_explained() -> None:
    data = random_batch(0, [3, 3])
    with pytest.raises(InvalidInput, match=re.escape("each of the 2 that are drawn; got 1.")):
        data.plot(observed=data[0])


def test_a_band_is_the_interval() -> None:
    data = Sequences.from_array(torch.zeros(30, 6, 1, dtype=torch.float64))
    model = calibrate(linear_pcode(rate=1.0, step=1.5), data)
    path = model.rollout(data.head(1), until=4.0)
    (axes,) = path.plot(interval=0.5, most=1).axes
    shapes = [np.asarray(each.get_paths()[0].vertices) for each in axes.collections]
    (band,) = [shape for shape in shapes if len(shape) > 100]
    lower, upper = path.interval(4.0, 0.5)
    ends = band[band[:, 0] == band[:, 0].max()][:, 1]
    assert {ends.min(), ends.max()} == {lower[0].item(), upper[0].item()}
    with pytest.raises(InvalidInput, match="intervals are those of a Path"):
        data.plot(interval=0.5)
