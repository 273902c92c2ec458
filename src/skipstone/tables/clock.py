"""`Clock`: how model time, a float, maps to the time stamps of a user's table and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int, Shaped

from skipstone.errors import InvalidInput, require_choice, require_number
from skipstone.tables.texts import parse_length, parse_stamps

Kind = Literal["number", "integer", "datetime", "date", "duration"]
"""What stamps are."""

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "D": 86_400 * 10**9,
}
"""Units of time. Each one divides the next, so that conversions are whole numbers."""

LARGE = 2**32
"""Integers beyond this are counted from each sequence's first. Up to here a float64 still tells
apart moments a millionth of a tick apart, so that paths lose nothing."""

# Stamps this fine are rounded to their tick; a coarser stamp between two ticks is an error.
_FINE = ("ns", "us")

# Share of a tick that is rounding.
_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Clock:
    """How model time maps to the stamps of a table.

    Model time counts `unit`s since the sequence's origin. Datetimes, dates, durations and integers
    beyond 2**32 have an origin, each sequence's first stamp in the table, which is subtracted
    between integers. Other numbers are model time as they are.

    Stamps come back exactly if they lie less than 2**52 ticks after their origin: 52 days for
    nanoseconds, 142 years for microseconds. Later ones are exact to a part in 2**53.
    """

    kind: Kind = "number"
    """What stamps are: numbers, integers, datetimes, dates or durations."""
    origins: Int[np.ndarray, " batch"] | None = None
    """Model time 0 of each sequence, in ticks (of datetimes: since 1970, UTC). None: all 0."""
    tick: str = ""
    """Resolution of stamps; empty for numbers."""
    unit: str = ""
    """Unit of model time; empty for numbers."""
    zone: str | None = None
    """Time zone of datetimes."""

    def pick(self, index: Any) -> Clock:
        """The clock of some of the sequences."""
        return self if self.origins is None else replace(self, origins=self.origins[index])

    def like(self, other: Clock) -> bool:
        """Whether the model times of both mean the same, but for their origins."""
        same = (self.kind, self.tick, self.unit, self.zone)
        return same == (other.kind, other.tick, other.unit, other.zone) and (
            (self.origins is None) == (other.origins is None)
        )

    def times(
        self, ticks: Shaped[np.ndarray, " rows"], sequence: Int[np.ndarray, " rows"]
    ) -> Float[np.ndarray, " rows"]:
        """Model times of stamps in ticks, each of a row's own sequence."""
        if self.origins is not None:
            ticks = ticks - self.origins[sequence]
        many, one = self._ratio()
        return ticks.astype(np.float64) * many / one

    def stamps(
        self, times: Float[np.ndarray, " rows"], sequence: Int[np.ndarray, " rows"]
    ) -> Shaped[np.ndarray, " rows"]:
        """Stamps of model times, as an array of floats, integers, datetime64 or timedelta64.

        Datetimes are in UTC. Times between two ticks are rounded; see `require_whole`.
        """
        if self.kind == "number":
            return times
        many, one = self._ratio()
        # Whole units and the rest apart, so that the rest keeps its precision.
        whole = np.floor(times)
        rest = (times - whole) * one if many == 1 else times / many
        ticks = np.rint(rest).astype(np.int64)
        if many == 1:
            ticks = ticks + whole.astype(np.int64) * one
        if self.origins is not None:
            ticks = ticks + self.origins[sequence]
        dtype = {"integer": "int64", "duration": f"timedelta64[{self.tick}]"}
        return ticks.astype(dtype.get(self.kind, f"datetime64[{self.tick}]"))

    def reaches(self, row: int, time: float) -> bool:
        """Whether a model time of one sequence has a stamp."""
        if self.origins is None:
            return False
        many, one = self._ratio()
        return abs(float(self.origins[row]) + time / many * one) < 2.0**62

    def require_whole(self, times: Float[np.ndarray, " rows"]) -> None:
        """Raise where rounding to a tick would tell another time than was asked for."""
        if self.kind == "number" or self.tick in _FINE:
            return
        many, one = self._ratio()
        rest = (times - np.floor(times)) * one if many == 1 else times / many
        between = np.abs(rest - np.rint(rest)) > _ROUNDING
        if between.any():
            raise InvalidInput(
                f"the time column of this table holds whole {self._ticks()}; got a time between "
                f"two of them, {times[between][0]:.13g} in model time. Ask for whole ones, or "
                f"convert the column before from_table: {self._finer()}."
            )

    def to_model(self, stamps: Any) -> Float[np.ndarray, "*rows_times"]:
        """Model times of one stamp, `(batch,)`, or of several, `(batch, time)`.

        `batch` is 1 where there are no origins, which means that all sequences share them.
        """
        ticks, scale = self._read(stamps)
        origins = np.zeros(1, dtype=object) if self.origins is None else self.origins.astype(object)
        # Python's integers do not overflow, and dividing two of them rounds only once.
        since = np.asarray(ticks, dtype=object)[None] * scale
        start = origins.reshape(-1, *[1] * (since.ndim - 1))
        if self.unit:
            since = (since - start * NANOSECONDS[self.tick]) / NANOSECONDS[self.unit]
        else:
            since = since - start
        return since.astype(np.float64)

    def length(self, name: str, value: Any) -> float:
        """A length of time in model time: a number is that already, a timedelta or a text such as
        `6h` is converted."""
        if isinstance(value, str):
            number, unit = parse_length(value)
            if unit and self.unit:
                require_choice("a unit of time", unit, NANOSECONDS)
                number = number * NANOSECONDS[unit] / NANOSECONDS[self.unit]
            value = number if self.unit or not unit else value
        if self.unit and isinstance(value, timedelta | np.timedelta64):
            value = _nanoseconds(value) / NANOSECONDS[self.unit]
        unit = f"a timedelta or a number of {self.unit}" if self.unit else "a number"
        if isinstance(value, timedelta | np.timedelta64 | str):
            raise InvalidInput(f"{name} must be {unit} for these times; got {value!r}.")
        require_number(name, value, above=0)
        return float(value)

    def _read(self, stamps: Any) -> tuple[Any, int]:
        """Stamps as whole numbers, and the nanoseconds of one (1 for numbers)."""
        if self.kind in ("number", "integer"):
            array = np.asarray(stamps)
            if array.dtype.kind not in "iuf":
                raise InvalidInput(
                    f"stamps must be numbers, as the times of this table; got {stamps!r}."
                )
            return array.astype(object), 1
        if _is_text(stamps):
            texts = np.atleast_1d(np.asarray(stamps, dtype=object))
            moments = parse_stamps([str(text) for text in texts])
            self._require_alike("datetime", moments.zoned, stamps)
            tick = np.datetime_data(moments.stamps.dtype)[0]
            ticks = moments.stamps.astype(np.int64).astype(object).reshape(np.shape(stamps))
            return ticks, NANOSECONDS[tick]
        series = nw.from_native(stamps, series_only=True, allow_series=True, pass_through=True)
        if isinstance(series, nw.Series):
            ticks, found = read_stamps(series)
            self._require_alike(found.kind, found.zone is not None, stamps)
            return ticks.astype(object), NANOSECONDS.get(found.tick, 1)
        array = np.asarray(stamps)
        if array.dtype.kind in "mM":
            array = np.array([*array.reshape(-1)], dtype=object).reshape(array.shape)
        elif array.dtype.kind != "O":
            self._require_alike("number", False, stamps)
        for stamp in array.reshape(-1):
            self._require_alike(_kind_of(stamp), getattr(stamp, "tzinfo", None) is not None, stamp)
        return np.frompyfunc(_nanoseconds, 1, 1)(array), 1

    def _require_alike(self, kind: str, zoned: bool, arrived: Any) -> None:
        """Raise unless a stamp is of this clock's kind, with a time zone where it has one."""
        moments = ("datetime", "date")
        if kind != self.kind and not (kind in moments and self.kind in moments):
            raise InvalidInput(
                f"stamps must be {self.kind}s, as the times of this table; got {arrived!r}."
            )
        if zoned != (self.zone is not None):
            has = f"the time zone {self.zone}" if self.zone else "no time zone"
            own = "have none" if self.zone else "have one"
            raise InvalidInput(
                f"the times of this table have {has}, and stamps must not {own}; got {arrived!r}. "
                + ("Give it one." if self.zone else "Remove it.")
            )

    def _ratio(self) -> tuple[int, int]:
        """Units per tick and ticks per unit; one of them is 1."""
        if not self.unit:
            return 1, 1
        tick, unit = NANOSECONDS[self.tick], NANOSECONDS[self.unit]
        return max(tick // unit, 1), max(unit // tick, 1)

    def _ticks(self) -> str:
        return {"date": "days", "integer": "numbers"}.get(self.kind, self.tick)

    def _finer(self) -> str:
        return "to floats" if self.kind == "integer" else "to a resolution of microseconds"


def read_stamps(series: nw.Series[Any]) -> tuple[Shaped[np.ndarray, " rows"], Clock]:
    """The stamps of a column in ticks, and a clock of its kind, still without origins and unit."""
    dtype = series.dtype
    if dtype.is_float():
        return series.to_numpy().astype(np.float64), Clock()
    if dtype.is_integer():
        # Some libraries have integers of 128 bits, which numpy has not.
        furthest = max(map(abs, (series.min(), series.max()))) if len(series) else 0
        if furthest > np.iinfo(np.int64).max:
            raise InvalidInput(
                f"integer times must be below 2**63; got {furthest}. Subtract a start first."
            )
        return series.cast(nw.Int64).to_numpy().astype(np.int64), Clock("integer")
    if isinstance(dtype, nw.Date):
        days = series.to_numpy().astype("datetime64[D]")
        return days.astype(np.int64), Clock("date", tick="D", unit="D")
    if isinstance(dtype, nw.Datetime):
        zone = dtype.time_zone
        if zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        moments = series.to_numpy().astype(f"datetime64[{dtype.time_unit}]")
        return moments.astype(np.int64), Clock(
            "datetime", tick=dtype.time_unit, unit="s", zone=zone
        )
    if isinstance(dtype, nw.Duration):
        lengths = series.to_numpy().astype(f"timedelta64[{dtype.time_unit}]")
        return lengths.astype(np.int64), Clock("duration", tick=dtype.time_unit, unit="s")
    raise InvalidInput(
        f"times must be datetimes, dates, durations, integers or floats; column {series.name!r} "
        f"holds {dtype}. {_how_to_parse(series)}"
    )


def with_unit(clock: Clock, unit: str | None) -> Clock:
    """The same clock with a unit of model time of one's own."""
    if unit is None:
        return clock
    require_choice("unit", unit, NANOSECONDS)
    if not clock.unit:
        raise InvalidInput(
            f"unit is for datetimes, dates and durations; these times are {clock.kind}s and are "
            f"taken as they are, but unit is {unit!r}. Leave it out."
        )
    return replace(clock, unit=unit)


def joined(clocks: list[Clock]) -> Clock:
    """One clock for sequences that are put together."""
    first = clocks[0]
    for other in clocks[1:]:
        if not first.like(other):
            raise InvalidInput(
                "batches to join must have times of one kind; got "
                f"{_describe(first)} and {_describe(other)}. Convert the columns first."
            )
    if first.origins is None:
        return first
    return replace(first, origins=np.concatenate([clock.origins for clock in clocks]))  # pyright: ignore


def is_stamp(value: Any) -> bool:
    """Whether this is a datetime, date or duration, also as text, or an array, list or column of
    them."""
    if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64 | str):
        return True
    if isinstance(value, list | tuple):
        return len(value) > 0 and is_stamp(value[0])
    series = nw.from_native(value, series_only=True, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.dtype.is_temporal()
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "mMU" or (
            value.dtype.kind == "O" and value.size > 0 and is_stamp(value.flat[0])
        )
    return False


def _is_text(stamps: Any) -> bool:
    if isinstance(stamps, list | tuple):
        return len(stamps) > 0 and _is_text(stamps[0])
    return isinstance(stamps, str) or (
        isinstance(stamps, np.ndarray) and stamps.size > 0 and isinstance(stamps.flat[0], str)
    )


def _kind_of(stamp: Any) -> str:
    if isinstance(stamp, datetime | np.datetime64):
        return "datetime"
    if isinstance(stamp, date):
        return "date"
    return "duration" if isinstance(stamp, timedelta | np.timedelta64) else "number"


def _nanoseconds(stamp: Any) -> int:
    """Nanoseconds since 1970 of a moment, or of a length of time."""
    # pandas has nanoseconds in its own subclasses of datetime and timedelta.
    for convert in ("to_datetime64", "to_timedelta64"):
        stamp = getattr(stamp, convert)() if hasattr(stamp, convert) else stamp
    if isinstance(stamp, np.datetime64 | np.timedelta64):
        unit, count = np.datetime_data(stamp.dtype)
        if unit not in ("ns", "us", "ms", "s", "m", "h", "D", "W"):
            raise InvalidInput(f"stamps must have a unit from days to nanoseconds; got {stamp!r}.")
        size = {"m": NANOSECONDS["min"], "W": 7 * NANOSECONDS["D"]}
        return int(stamp.astype(np.int64)) * count * (size.get(unit) or NANOSECONDS[unit])
    if isinstance(stamp, datetime):
        start = datetime(1970, 1, 1, tzinfo=None if stamp.tzinfo is None else UTC)
        stamp = stamp - start
    elif isinstance(stamp, date):
        return (stamp - date(1970, 1, 1)).days * NANOSECONDS["D"]
    return stamp // timedelta(microseconds=1) * 1000


def _describe(clock: Clock) -> str:
    zone = f" in {clock.zone}" if clock.zone else ""
    return f"{clock.kind}s{f' [{clock.tick}]' if clock.tick else ''}{zone}"


def _how_to_parse(series: nw.Series[Any]) -> str:
    library = series.implementation.name.lower()
    ways = {
        "pandas": "Parse it with pandas.to_datetime(column).",
        "polars": "Parse it with column.str.to_datetime() or cast it.",
        "pyarrow": "Cast it with column.cast(pyarrow.timestamp('us')).",
    }
    return ways.get(library, "Convert it first.")
