"""Times of arrays that a float64 would round: datetimes, durations and large integers.

They are counted from each sequence's first, which is subtracted between integers, as in tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from skipstone.checking import as_array, as_entries, require_dense
from skipstone.errors import LARGEST, InvalidInput, shortened
from skipstone.tables.clock import LARGE, Clock

_EXACT = ("ns", "us", "ms", "s")


def counted(times: Any) -> tuple[Any, Clock | None]:
    """Times `(batch, time)` as model times, and their clock; plain numbers as they are, and None.

    Integers up to 2**32 are plain numbers.
    """
    found = _read_ticks(times)
    if found is None or not _needs_origins(*found):
        return times, None
    ticks, clock = found
    if ticks.ndim != 2 or not ticks.size:
        return ticks.astype(np.float64), None  # Of a shape that will be refused.
    return _elapsed(ticks, ticks[:, :1], clock), replace(clock, origins=ticks[:, 0].copy())


def counted_rows(times: Iterable[Any] | None) -> tuple[list[Any] | None, Clock | None]:
    """The same for a list of times `(time,)`, a row for each sequence."""
    if times is None:
        return None, None
    rows = as_entries("times", times)
    found = [_read_ticks(row) for row in rows]
    known = [each for each in found if each is not None]
    if not any(_needs_origins(*each) for each in known):
        return rows, None
    kinds = {(clock.kind, clock.tick) for _, clock in known}
    if len(known) < len(found) or len(kinds) > 1:
        raise InvalidInput(
            "times must be of one kind in all sequences, datetimes of one unit or integers; they "
            "are of several. Convert them first."
        )
    if any(ticks.ndim != 1 or not ticks.size for ticks, _ in known):
        return [ticks.astype(np.float64) for ticks, _ in known], None  # They will be refused.
    clock = replace(known[0][1], origins=np.array([ticks[0] for ticks, _ in known]))
    return [_elapsed(ticks, ticks[:1], clock) for ticks, _ in known], clock


def _needs_origins(ticks: Int[np.ndarray, ...], clock: Clock) -> bool:
    large = ticks.size > 0 and (int(ticks.max()) > LARGE or int(ticks.min()) < -LARGE)
    return clock.kind != "integer" or large


def _elapsed(ticks: Int[np.ndarray, ...], origin: Int[np.ndarray, ...], clock: Clock) -> np.ndarray:
    """Model times since an origin. What lies out of reach, in padding perhaps, is infinite."""
    far = np.abs(ticks.astype(np.float64) - origin.astype(np.float64)) >= 2.0**62
    elapsed = np.where(far, 0, ticks - np.where(far, 0, origin))
    flat = replace(clock, origins=None).times(elapsed.reshape(-1), np.zeros(elapsed.size, np.int64))
    return np.where(far, np.inf, flat.reshape(ticks.shape))


def _read_ticks(times: Any) -> tuple[Int[np.ndarray, ...], Clock] | None:
    """Whole ticks and a clock without origins; None for other numbers, and for what is none."""
    if isinstance(times, Tensor):
        require_dense(times, "times")
        whole = not (times.is_floating_point() or times.is_complex() or times.element_size() < 8)
        return (times.cpu().numpy(), Clock("integer")) if whole else None
    array = as_array(times, "times")
    if array.dtype.kind == "O" and array.size:
        array = _of_objects(array)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
            raise InvalidInput(
                f"integer times must be below 2**63; got {array.max()}. Subtract a start first."
            )
        return array.astype(np.int64), Clock("integer")
    if array.dtype.kind in "mM":
        return _of_stamps(array)
    return None


def _of_stamps(array: np.ndarray) -> tuple[Int[np.ndarray, ...], Clock]:
    """Ticks of datetime64 or timedelta64, in the coarsest unit of ours that is exact."""
    kind, (unit, _) = array.dtype.kind, np.datetime_data(array.dtype)
    if np.isnat(array).any():
        raise InvalidInput("times must be finite; one is NaT. Leave that observation out.")
    if unit in ("Y", "M", "W", "D") and kind == "M":
        return array.astype("datetime64[D]").astype(np.int64), Clock("date", tick="D", unit="D")
    if unit in ("Y", "M", "ps", "fs", "as", "generic"):
        raise InvalidInput(
            f"times must have a unit from weeks to nanoseconds; got {array.dtype}. Convert them, "
            "for example with .astype('datetime64[ns]')."
        )
    tick = unit if unit in _EXACT else "s"
    if kind == "M":
        ticks, clock = array.astype(f"datetime64[{tick}]"), Clock("datetime", tick=tick, unit="s")
    else:
        ticks, clock = array.astype(f"timedelta64[{tick}]"), Clock("duration", tick=tick, unit="s")
    return ticks.astype(np.int64), clock


def _of_objects(array: np.ndarray) -> np.ndarray:
    """Datetimes of Python and of pandas, without time zone, as datetime64; integers as int64."""
    first = array.flat[0]
    if all(isinstance(each, Integral) and not isinstance(each, bool) for each in array.flat):
        largest = max(array.flat, key=abs)
        if abs(int(largest)) > LARGEST:
            raise InvalidInput(
                f"integer times must lie within 64 bits; got {shortened(largest)}. Subtract a "
                "start first."
            )
        return array.astype(np.int64)
    if not isinstance(first, datetime):
        return array
    if any(getattr(each, "tzinfo", None) is not None for each in array.flat):
        raise InvalidInput(
            f"times in an array must have no time zone; got {shortened(first)}. Convert them to "
            "UTC and drop it, or use Sequences.from_table, which keeps it."
        )
    fine = any(getattr(each, "nanosecond", 0) for each in array.flat)
    try:
        return array.astype(f"datetime64[{'ns' if fine else 'us'}]")
    except (ValueError, TypeError):
        raise InvalidInput("times must all be datetimes; some here are not.") from None
