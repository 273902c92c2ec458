"""Time stamps and lengths of time that are written as text: ISO 8601, and `90min` or `6h`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from skipstone.errors import InvalidInput

_STAMP = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<clock>\d\d:\d\d(?::\d\d(?:\.(?P<fraction>\d{1,9}))?)?))?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?"
)

_LENGTH = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[A-Za-z]*)")


class Moments(NamedTuple):
    """Stamps that were read from text."""

    stamps: Shaped[np.ndarray, " rows"]
    """As datetime64, in days if all are dates, else in micro- or nanoseconds; UTC if zoned."""
    zoned: bool
    """Whether they have an offset from UTC."""


def parse_stamps(texts: Sequence[str]) -> Moments:
    """Dates or datetimes in ISO 8601, all with an offset or all without.

    Nothing else is guessed: 01/02/2024 is two different days.
    """
    found = [_STAMP.fullmatch(text.strip()) for text in texts]
    for row, (text, match) in enumerate(zip(texts, found, strict=True)):
        if match is None:
            raise InvalidInput(
                "times as text must be ISO 8601, such as 2026-06-01, 2026-06-01T12:30 or "
                f"2026-06-01T12:30:00.5+02:00; got {text!r}{_place(row, texts)}."
            )
    matches = [match for match in found if match is not None]
    zoned = matches[0]["zone"] is not None
    for row, match in enumerate(matches):
        if (match["zone"] is not None) != zoned:
            raise InvalidInput(
                "times must all have an offset from UTC, or none; got "
                f"{texts[0]!r} and {texts[row]!r}{_place(row, texts)}."
            )
    dates = all(match["clock"] is None for match in matches) and not zoned
    fine = any(len(match["fraction"] or "") > 6 for match in matches)
    tick = "D" if dates else "ns" if fine else "us"
    plain = [f"{match['day']}T{match['clock'] or '00:00'}" for match in matches]
    try:
        stamps = np.array(plain, dtype=f"datetime64[{tick}]")
    except ValueError as error:
        raise InvalidInput(f"times must be days and hours that exist; {error}.") from None
    if zoned:
        offsets = [_offset(match["zone"]) for match in matches]
        stamps = stamps - np.array(offsets, dtype="timedelta64[m]")
    return Moments(stamps, zoned)


def parse_length(text: str) -> tuple[float, str]:
    """A length of time as a number and its unit, empty for a plain number: `6h`, `1.5`."""
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"a length of time must be a number with a unit, such as 6h or 90min; got {text!r}."
        )
    return float(match["number"]), "D" if match["unit"] == "d" else match["unit"]


def _offset(zone: str) -> int:
    """Minutes ahead of UTC."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    return -minutes if zone[0] == "-" else minutes


def _place(row: int, texts: Sequence[str]) -> str:
    return "" if len(texts) == 1 else f" in row {row}"
