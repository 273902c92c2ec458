"""Frames of pandas, polars and pyarrow in and out. None of them is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int
from narwhals.exceptions import NarwhalsError

from skipstone.errors import InvalidInput, did_you_mean, require_choice, require_kind
from skipstone.tables.about import About, as_names
from skipstone.tables.clock import LARGE, Clock, read_stamps, with_unit
from skipstone.tables.rows import (
    Rows,
    check_distinct,
    check_order,
    group_rows,
    read_numbers,
    read_times,
)

DUPLICATES = ("error", "first", "last", "mean")
"""What to do with several rows of one id at one time."""

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries whose frames can be asked for by name."""


class Columns(NamedTuple):
    """What a table holds, padded at the end to the longest sequence."""

    times: Float[np.ndarray, "batch time"]
    values: Float[np.ndarray, "batch time dim"]
    controls: Float[np.ndarray, "batch time control"] | None
    mask: Bool[np.ndarray, "batch time"]
    about: About


def read_table(
    frame: Any,
    id: str | None,
    time: str,
    values: str | Sequence[str],
    controls: str | Sequence[str] | None,
    duplicates: str,
    unit: str | None,
) -> Columns:
    """Sequences of a table in long format, one row per observation; see `Sequences.from_table`."""
    require_choice("duplicates", duplicates, DUPLICATES)
    table = _as_frame(frame)
    features, inputs = _as_names(values), _as_names(controls)
    for name, column in {"id": id, "time": time}.items():
        if column is not None or name == "time":
            require_kind(f"{name} must be the name of a column, a text", column, str)
    if not features:
        raise InvalidInput("values must name at least one column; got none.")
    _check_names(table, [*([] if id is None else [id]), time, *features, *inputs])
    if len(table) == 0:
        raise InvalidInput("the table must have at least one row; this one is empty.")
    rows = group_rows(table, id)
    stamps = read_times(table, time, rows)
    ticks, clock = read_stamps(stamps)
    ticks, clock = ticks[rows.row], with_unit(clock, unit)
    columns = [read_numbers(table, name, rows, name in features) for name in (*features, *inputs)]
    numbers = np.stack(columns, axis=1)
    repeated = check_order(ticks, rows, stamps, duplicates == "error")
    if repeated.any():
        numbers, keep = _merge(numbers, repeated, duplicates)
        ticks, rows = ticks[keep], rows.keep(keep)
    clock = _with_origins(clock, ticks, rows)
    times = clock.times(ticks, rows.sequence)
    check_distinct(times, rows, stamps)
    about = About(
        rows.ids,
        tuple(features),
        tuple(inputs) or None,
        clock,
        id,
        time,
        table.implementation.name.lower(),
        None if id is None else table[id].dtype,
    )
    mask, (clocked, padded) = _pad(rows.sequence, times[:, None], numbers)
    dim = len(features)
    later = padded[..., dim:] if inputs else None
    return Columns(clocked[..., 0], padded[..., :dim], later, mask, about)


def write_table(
    about: About,
    sequence: Int[np.ndarray, " rows"],
    times: Float[np.ndarray, " rows"],
    columns: dict[str, np.ndarray],
    like: Any = None,
) -> Any:
    """A frame with a row for each time, its sequence's id in front and columns of values behind."""
    library = _library(like, about.library)
    about.clock.require_whole(times)
    series = []
    try:
        if about.id_name is not None:
            series.append(_id_series(about, sequence, library))
        series.append(_time_series(about, sequence, times, library))
        for name, numbers in columns.items():
            series.append(nw.new_series(name, np.ascontiguousarray(numbers), backend=library))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{library} must be installed to make its frames; it is not. Install it, or ask for "
            f"another: like={' or '.join(map(repr, LIBRARIES))}."
        ) from error
    # Not `from_dict`, which loses the time zones of pandas.
    return series[0].to_frame().with_columns(*series[1:]).to_native()


def _as_frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except NarwhalsError as error:
        raise InvalidInput(f"each column must have a name of its own; {error}") from None
    except TypeError:
        lazy = hasattr(frame, "collect")
        raise InvalidInput(
            "a table must be a frame of pandas, polars or pyarrow; got "
            f"{type(frame).__name__}. "
            + ("Call .collect() first." if lazy else "For arrays use Sequences.from_lists.")
        ) from None


def _as_names(names: str | Sequence[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(as_names("columns", names))


def _check_names(table: nw.DataFrame[Any], names: list[str]) -> None:
    for name in names:
        if name in table.columns:
            continue
        index = nw.maybe_get_index(table)
        if index is not None and name in getattr(index, "names", ()):
            raise InvalidInput(
                f"{name!r} must be a column; it is the index of this frame. Use "
                "frame.reset_index()."
            )
        raise InvalidInput(f"the table has no column {name!r}. {did_you_mean(name, table.columns)}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput(
            f"each column must be named once, as id, time, values or controls; {twice[0]!r} is "
            "named twice."
        )


def _merge(
    numbers: Float[np.ndarray, "rows columns"], repeated: Bool[np.ndarray, " rows"], rule: str
) -> tuple[Float[np.ndarray, "kept columns"], Int[np.ndarray, " kept"]]:
    """One row for each time: its numbers by the rule, and where its time is."""
    first = np.flatnonzero(~repeated)
    if rule == "first":
        return numbers[first], first
    if rule == "last":
        return numbers[np.append(first[1:], len(numbers)) - 1], first
    seen = np.isfinite(numbers)
    counts = np.add.reduceat(seen, first, dtype=np.int64)
    sums = np.add.reduceat(np.where(seen, numbers, 0.0), first)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0), first


def _with_origins(clock: Clock, ticks: np.ndarray, rows: Rows) -> Clock:
    """The clock with each sequence's first stamp as its origin, where stamps need one."""
    if clock.kind == "number":
        return clock
    if clock.kind == "integer" and int(ticks.max()) <= LARGE and int(ticks.min()) >= -LARGE:
        return clock
    first = np.append(True, rows.sequence[1:] != rows.sequence[:-1])
    return replace(clock, origins=ticks[first])


def _pad(
    sequence: Int[np.ndarray, " rows"], *arrays: np.ndarray
) -> tuple[Bool[np.ndarray, "batch time"], list[np.ndarray]]:
    """Rows as (batch, time, ...), zero where there are none, and where there are some."""
    lengths = np.bincount(sequence)
    within = np.arange(len(sequence)) - np.repeat(lengths.cumsum() - lengths, lengths)
    padded = []
    for array in arrays:
        wide = np.zeros((len(lengths), int(lengths.max()), array.shape[1]))
        wide[sequence, within] = array
        padded.append(wide)
    return np.arange(lengths.max()) < lengths[:, None], padded


def _library(like: Any, came_in: str | None) -> Any:
    """The name of the library whose frame is wanted; a literal to narwhals, so not typed."""
    if like is None:
        if came_in is None:
            raise InvalidInput(
                "these sequences did not come from a table, so `like` must say what to make; "
                'use like="pandas", "polars" or "pyarrow".'
            )
        return came_in
    if isinstance(like, str):
        require_choice("like", like, LIBRARIES)
        return like
    return _as_frame(like).implementation.name.lower()


def _id_series(about: About, sequence: np.ndarray, library: Any) -> nw.Series[Any]:
    name = about.id_name or "id"
    if about.ids is None:
        return nw.new_series(name, sequence, backend=library)
    dtype = about.id_dtype
    if dtype is None or dtype in (nw.Object, nw.Unknown) or not dtype.is_numeric():
        # Text and the like are recognised; categories of another frame would not fit.
        dtype = None
    return nw.new_series(name, list(about.ids[sequence]), dtype, backend=library)


def _time_series(
    about: About, sequence: np.ndarray, times: np.ndarray, library: Any
) -> nw.Series[Any]:
    clock, name = about.clock, about.time_name
    stamps = clock.stamps(times, sequence)
    if clock.kind in ("number", "integer"):
        return nw.new_series(name, stamps, backend=library)
    tick = clock.tick
    if clock.kind == "date":
        return nw.new_series(name, stamps.tolist(), nw.Date, backend=library)
    if tick == "s" and library == "polars":
        # The coarsest that polars has.
        tick = "ms"
        stamps = stamps.astype(f"{stamps.dtype.name.partition('[')[0]}[ms]")
    series = nw.new_series(name, stamps.astype(np.int64), backend=library)
    if clock.kind == "duration":
        return series.cast(nw.Duration(tick))  # pyright: ignore[reportArgumentType]
    series = series.cast(nw.Datetime(tick))  # pyright: ignore[reportArgumentType]
    if clock.zone is None:
        return series
    return series.dt.replace_time_zone("UTC").dt.convert_time_zone(clock.zone)
