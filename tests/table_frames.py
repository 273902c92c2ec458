"""Frames of three libraries, for tests of tables."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

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
