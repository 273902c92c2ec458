"""The rows of a table by sequence, and the rules that they must keep."""

from __future__ import annotations

from numbers import Number
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from skipstone.errors import InvalidInput
from skipstone.tables.about import as_ids


class Rows(NamedTuple):
    """Rows of a table, those of a sequence together and in order."""

    row: Int[np.ndarray, " rows"]
    """Where each was in the table."""
    sequence: Int[np.ndarray, " rows"]
    """Which sequence it belongs to."""
    ids: Shaped[np.ndarray, " batch"] | None
    """The id of each sequence."""

    def place(self, at: int) -> str:
        """A row as an error names it."""
        row = f"row {self.row[at]}"
        return row if self.ids is None else f"id {self.ids[self.sequence[at]]!r}, {row}"

    @property
    def or_name_ids(self) -> str:
        """A second cure where times go back or repeat: several sequences in a table without ids."""
        several = "; or, if rows are of several sequences, name the column that says which: id=..."
        return several if self.ids is None else ""

    def keep(self, at: Int[np.ndarray, " kept"]) -> Rows:
        """Some of the rows."""
        return Rows(self.row[at], self.sequence[at], self.ids)


def group_rows(table: nw.DataFrame[Any], id: str | None) -> Rows:
    """The rows of each id together, ids in the order in which they appear."""
    if id is None:
        return Rows(np.arange(len(table)), np.zeros(len(table), dtype=np.int64), None)
    column = table[id]
    number: dict[Any, int] = {}
    names = column.to_list()
    missing = column.is_null().to_numpy() | np.array([_is_nan(name) for name in names], dtype=bool)
    if missing.any():
        raise InvalidInput(
            f"each row must have an id; row {missing.argmax()} has none in column {id!r}. Drop it, "
            "or fill it in."
        )
    try:
        given = (number.setdefault(name, len(number)) for name in names)
        codes = np.fromiter(given, dtype=np.int64, count=len(names))
    except TypeError:
        raise InvalidInput(
            f"ids must be texts, numbers or moments; column {id!r} holds {column.dtype}. Make one "
            "text of what tells sequences apart."
        ) from None
    row = codes.argsort(kind="stable")
    return Rows(row, codes[row], as_ids(number))


def _is_nan(name: Any) -> bool:
    return isinstance(name, Number) and bool(name != name)


def read_times(table: nw.DataFrame[Any], time: str, rows: Rows) -> nw.Series[Any]:
    """The column of times, checked to be complete."""
    column = table[time]
    missing = column.is_null().to_numpy()
    if column.dtype.is_float():
        missing = missing | ~np.isfinite(column.fill_null(0.0).to_numpy())
    if missing.any():
        at = int(missing[rows.row].argmax())
        raise InvalidInput(
            f"each row must have a finite time; {rows.place(at)} has "
            f"{column.to_list()[rows.row[at]]} in column {time!r}. Drop it, or fill it in."
        )
    return column


def read_numbers(
    table: nw.DataFrame[Any], name: str, rows: Rows, missing: bool
) -> Float[np.ndarray, " rows"]:
    """A column of numbers in the order of `rows`; with `missing`, NaN where there is none."""
    column = table[name]
    if not column.dtype.is_numeric():
        raise InvalidInput(
            f"values and controls must be numbers; column {name!r} holds {column.dtype}. Convert "
            "it to floats first, or leave it out."
        )
    full = column.cast(nw.Float64).fill_null(float("nan")).to_numpy()[rows.row]
    bad = np.isinf(full) if missing else ~np.isfinite(full)
    if bad.any():
        at = int(bad.argmax())
        rule = "values must be finite or missing" if missing else "controls must be finite"
        raise InvalidInput(
            f"{rule}; {rows.place(at)} has {full[at]} in column {name!r}. "
            + ("Write NaN for what was not observed." if missing else "Fill it in.")
        )
    return full


def check_order(
    ticks: Shaped[np.ndarray, " rows"], rows: Rows, stamps: nw.Series[Any], strict: bool
) -> Bool[np.ndarray, " rows"]:
    """Where a row repeats the time before it; raise where time goes back, or repeats if strict."""
    same = np.append(False, rows.sequence[1:] == rows.sequence[:-1])
    back = same & np.append(False, ticks[1:] < ticks[:-1])
    if back.any():
        at = int(back.argmax())
        raise InvalidInput(
            f"times must increase within an id; {rows.place(at)} has {_shown(stamps, rows, at)} "
            f"after {_shown(stamps, rows, at - 1)} in row {rows.row[at - 1]}. "
            f"Sort it: {_how_to_sort(stamps)}{rows.or_name_ids}."
        )
    repeated = same & np.append(False, ticks[1:] == ticks[:-1])
    if strict and repeated.any():
        at = int(repeated.argmax())
        raise InvalidInput(
            f"an id must have one row at a time; {rows.place(at)} has "
            f"{_shown(stamps, rows, at)}, as row {rows.row[at - 1]}. Drop one, or say which counts:"
            f' duplicates="first", "last" or "mean"{rows.or_name_ids}.'
        )
    return repeated


def check_distinct(times: Float[np.ndarray, " rows"], rows: Rows, stamps: nw.Series[Any]) -> None:
    """Raise where stamps so far from their origin are the same as floats."""
    same = np.append(False, rows.sequence[1:] == rows.sequence[:-1])
    stuck = same & np.append(False, times[1:] <= times[:-1])
    if stuck.any():
        at = int(stuck.argmax())
        raise InvalidInput(
            "stamps this close must be near the start of their sequence; "
            f"{rows.place(at)} has {_shown(stamps, rows, at)}, which a float64 cannot tell from "
            "the time before. Cut the table into shorter sequences, with ids of their own."
        )


def _shown(stamps: nw.Series[Any], rows: Rows, at: int) -> str:
    return str(stamps[int(rows.row[at])])


def _how_to_sort(stamps: nw.Series[Any]) -> str:
    way = {
        "pandas": "frame.sort_values({!r})",
        "polars": "frame.sort({!r})",
        "pyarrow": "table.sort_by({!r})",
    }
    return way.get(stamps.implementation.name.lower(), "by column {!r}").format(stamps.name)
