"""Tables in files: every library that can read them sees the same sequences."""

from __future__ import annotations

import importlib.util
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from skipstone import InvalidInput
from skipstone.own_data import tablefiles
from skipstone.own_data.tablefiles import TableColumns, read_frame, split_names, write_frame

COLUMNS = TableColumns("time", ("a", "b"), id="id")


def write(path: Path, times: list[str]) -> Path:
    rows = [f"r,{time},{i}.5,{-i}" for i, time in enumerate(times)]
    path.write_text("\n".join(["id,time,a,b", *rows]) + "\n")
    return path


def only(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no other library was installed."""
    usual = importlib.util.find_spec

    def find(name: str, *rest: Any) -> Any:
        others = {"polars", "pandas", "pyarrow"} - {library}
        return None if name in others else usual(name, *rest)

    monkeypatch.setattr(tablefiles.importlib.util, "find_spec", find)


TIMES = [
    (["2026-01-01T10:00", "2026-01-01T11:30"], 5400.0, datetime(2026, 1, 1, 11, 30)),
    (["2026-01-01 10:00:00.25", "2026-01-01 10:00:01"], 0.75, datetime(2026, 1, 1, 10, 0, 1)),
    (["2026-03-29T00:00:00+01:00", "2026-03-29T05:00:00+02:00"], 14_400.0, None),
    (["2026-01-01", "2026-01-03"], 2.0, date(2026, 1, 3)),
    (["3", "5"], 5.0, 5),
    (["3.5", "5"], 5.0, 5.0),
]


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
@pytest.mark.parametrize(("texts", "last", "stamp"), TIMES)
def test_every_library_reads_the_same(
    library: str,
    texts: list[str],
    last: float,
    stamp: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(library, monkeypatch)
    data = COLUMNS.read(write(tmp_path / "t.csv", texts))
    assert data.ends.tolist() == [last]
    assert data.values[0].tolist() == [[0.5, 0.0], [1.5, -1.0]]
    assert data.about.library == library
    back = data.to_table(like="polars")
    if stamp is not None:
        assert back["time"][-1] == stamp
    else:
        assert back["time"][-1].isoformat() == "2026-03-29T03:00:00+00:00"


def test_nanoseconds_are_kept(tmp_path: Path) -> None:
    times = ["2026-01-01T10:00:00.000000001", "2026-01-01T10:00:00.000000008"]
    data = COLUMNS.read(write(tmp_path / "t.csv", times))
    assert data.ends.tolist() == [7e-9]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    data = COLUMNS.read(write(tmp_path / "first.csv", ["2026-01-01T10:00", "2026-01-01T11:30"]))
    write_frame(data.to_table(), tmp_path / name)
    again = COLUMNS.read(tmp_path / name)
    assert torch.equal(again.times, data.times)
    assert torch.equal(again.values, data.values)
    assert list(again.ids) == ["r"]  # pyright: ignore
    assert again.clock.like(data.clock)


def test_names_may_be_joined_by_commas() -> None:
    columns = ["a", "b", "north, south"]
    assert split_names(["a,b"], columns) == ["a", "b"]
    assert split_names(["a", "north, south"], columns) == ["a", "north, south"]
    assert split_names(["a, x"], columns) == ["a", "x"]


def test_columns_survive_json() -> None:
    assert TableColumns.from_dict({**COLUMNS.to_dict(), "values": ["a", "b"]}) == COLUMNS


def test_what_cannot_be_read_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_text("no")
    for name, message in [
        ("t.xlsx", "a table must be a .csv or a .parquet file; got"),
        ("none.csv", "there must be a table to read; there is no file"),
        ("t.parquet", "must be a .parquet table;"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            read_frame(tmp_path / name)
    file = write(tmp_path / "t.csv", ["2026-01-01T10:00", "01/02/2026"])
    with pytest.raises(InvalidInput, match="times as text must be ISO 8601"):
        COLUMNS.read(file)
    with pytest.raises(InvalidInput, match=r"t\.csv: the table has no column 'c'"):
        TableColumns("time", ("c",)).read(write(tmp_path / "t.csv", ["1", "2"]))
    only("none of them", monkeypatch)
    with pytest.raises(InvalidInput, match=r"read by polars or pandas or pyarrow, and none is"):
        read_frame(file)


def test_a_row_without_a_time_is_named(tmp_path: Path) -> None:
    pl.DataFrame(
        {"id": ["r", "r"], "time": ["2026-01-01", None], "a": [1, 2], "b": [1, 2]}
    ).write_csv(tmp_path / "t.csv")
    with pytest.raises(InvalidInput, match="each row must have a time; row 1 has none"):
        COLUMNS.read(tmp_path / "t.csv")
