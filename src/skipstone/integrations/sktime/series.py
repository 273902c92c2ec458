"""Rows of sktime as sequences and back, under the names that they have there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.sequences import Sequences

FEWEST = 3
"""Observations that a frequency can be told from."""

Frame = pd.DataFrame  # Of one series, by time, or of several, by instance and time.


def align_columns(frame: Frame, names: pd.Index, what: str) -> Frame:
    """A frame with its columns in the order of `names`; raise if it has others.

    Columns that were never named have a place alone, and are taken in their order.
    """
    if list(frame.columns) == list(names):
        return frame
    if frame.shape[1] == len(names):
        if set(frame.columns) == set(names):
            return frame.reindex(columns=names)
        if any(list(each) == list(range(len(each))) for each in (frame.columns, names)):
            return frame.set_axis(names, axis=1)
    raise InvalidInput(
        f"{what} must have the columns that the model was trained on, {list(names)}, in any order; "
        f"it has {list(frame.columns)}. Select or rename them."
    )


def sequences_of(y: Frame, X: Frame | None = None) -> Sequences:
    """Rows of sktime as sequences, in the order in which instances appear.

    In sktime `X[t]` belongs to `y[t]`; here a control holds from its row on. So that of a row is
    the `X` of the next one.
    """
    rows, several = instance_rows(y.index, y.index), isinstance(y.index, pd.MultiIndex)
    columns = [y[name].to_numpy(dtype=np.float64) for name in y.columns]
    names = ["instance", "time", *y.columns]
    if X is not None:
        own = _controls(X, y.index, rows)
        names, columns = [*names, *X.columns], [*columns, *own.T]
    # The user's own names, for errors; all are different.
    names = _texts(names)
    ids = np.array(_texts(_instances(y.index)), dtype=object)[rows] if several else rows
    filled = [ids, _stamps(y.index.get_level_values(-1)), *columns]
    frame = pd.DataFrame(dict(zip(names, filled, strict=True)))
    first = 2 + y.shape[1]
    return Sequences.from_table(
        frame,
        id=names[0] if several else None,
        time=names[1],
        values=names[2:first],
        controls=names[first:] or None,
    )


def _controls(X: Frame, index: pd.Index, rows: np.ndarray) -> np.ndarray:
    """Controls of each row, checked: the `X` of the next one, and at the end of a series its last.

    The `X` of a series' first row is never read.
    """
    own = X.reindex(index).to_numpy(dtype=np.float64)
    same = np.append(False, rows[1:] == rows[:-1])
    single = np.bincount(rows)[rows] == 1
    bad = ~np.isfinite(own) & (same | single)[:, None]
    if bad.any():
        row, column = (int(at[0]) for at in np.nonzero(bad))
        *instance, time = index[row] if isinstance(index, pd.MultiIndex) else (index[row],)
        where = f"{'/'.join(map(str, instance))!r} has" if instance else "it has"
        raise InvalidInput(
            f"X must be finite; {where} {own[row, column]} at {time} in column "
            f"{X.columns[column]!r}. Fill it in."
        )
    following = np.append(np.arange(1, len(rows)), len(rows) - 1)
    last = np.append(~same[1:], True)
    return own[np.where(last, np.arange(len(rows)), following)]


def _texts(names: Iterable[Any]) -> list[str]:
    """Names as texts that differ."""
    names = ["/".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in names]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({at})" for at, name in enumerate(names)]


def later_controls(
    context: Sequences, seen: pd.Index, later: Frame, unit: float
) -> tuple[Sequences, Any]:
    """A context whose last control is the first of the later ones, and the others, each from the
    row before its own on. Past its last one a control holds."""
    assert context.controls is not None
    rows, values = instance_rows(seen, later.index), later.to_numpy(dtype=np.float64)
    stamps = _stamps(later.index.get_level_values(-1))
    latest, moments, held = context.controls.clone(), [], []
    for row in range(len(context)):
        own = rows == row
        at = context.clock.pick([row]).to_model(stamps[own])[0]
        after = at > float(context.ends[row])
        at, control = at[after], torch.as_tensor(values[own][after]).to(latest)
        if len(at):
            latest[row, -1] = control[0]
        moments.append(at[:-1])
        held.append(control[1:])
    context = context.replaced(context.values, latest)
    longest = max(len(at) for at in moments)
    if longest == 0:
        return context, None
    for row, at in enumerate(moments):
        missing = longest - len(at)
        start = at[-1] if len(at) else float(context.ends[row])
        last = held[row][-1:] if len(at) else latest[row, -1:]
        moments[row] = np.concatenate([at, start + unit * np.arange(1, missing + 1)])
        held[row] = torch.cat([held[row], last.expand(missing, -1)])
    return context, (torch.as_tensor(np.stack(moments)), torch.stack(held))


def instance_rows(seen: pd.Index, index: pd.Index) -> np.ndarray:
    """The sequence of each row of an index, -1 for an instance that was not seen."""
    if not isinstance(seen, pd.MultiIndex):
        return np.zeros(len(index), dtype=np.int64)
    return _instances(seen).get_indexer(index.droplevel(-1))


def _instances(seen: pd.Index) -> pd.Index:
    return seen.droplevel(-1).unique()


def _stamps(times: pd.Index) -> Any:
    """Stamps as tables have them: periods are counted, one after another."""
    periods = isinstance(times, pd.PeriodIndex)
    return times.asi8 if periods else times.to_series(index=range(len(times)))


def moments_after(seen: pd.Index, fh: Any, frequency: Any) -> list[pd.Index]:
    """The moments of a horizon, for each instance: steps count from its own end, by its own
    frequency, or by `frequency` where it is too short to have one."""
    rows, times = instance_rows(seen, seen), seen.get_level_values(-1)
    several = isinstance(seen, pd.MultiIndex)
    names = _texts(_instances(seen)) if several else [""]
    cuts = [0, *(np.flatnonzero(np.diff(rows)) + 1), len(rows)]
    own = [times[begin:end] for begin, end in pairwise(cuts)]
    wanted, found = fh.to_pandas(), []
    steps = fh.is_relative and not isinstance(wanted, pd.TimedeltaIndex)
    frequencies: list[Any] = [None] * len(names)
    if steps and isinstance(times, pd.DatetimeIndex):
        frequencies = _frequencies(own, frequency)
    for name, mine, each in zip(names, own, frequencies, strict=True):
        of = f" of {name!r}" if several else ""
        if steps and isinstance(mine, pd.DatetimeIndex) and each is None:
            raise InvalidInput(
                f"a horizon in steps needs a time index with a frequency; that{of or ' of y'} has "
                f"none, and fh is {list(wanted)}. If only rows are missing, fill them in: "
                "y.asfreq('h'). Or give moments, ForecastingHorizon(moments, is_relative=False), "
                "or lengths of time, pandas.to_timedelta([6, 12], unit='h')."
            )
        horizon = type(fh)(wanted, is_relative=fh.is_relative, freq=each)
        moments = horizon.to_absolute_index(mine[-1:])
        if (first := moments.min()) <= mine[-1]:
            raise NotImplementedError(
                f"a horizon must lie after the data, which{of} end at {mine[-1]}; fh has {first}."
            )
        found.append(moments)
    return found


def _frequencies(own: list[pd.DatetimeIndex], common: Any) -> list[Any]:
    """The frequency of each index, None where there is none."""
    found = [_frequency(times) for times in own]
    usual = next((each for each in (common, *found) if each is not None), None)
    return [
        usual if each is None and len(times) < FEWEST else each
        for each, times in zip(found, own, strict=True)
    ]


def _frequency(times: pd.DatetimeIndex) -> Any:
    return times.freq or (pd.infer_freq(times) if len(times) >= FEWEST else None)


def model_times(context: Sequences, moments: list[pd.Index]) -> Float[Tensor, "batch time"]:
    """Moments of each instance in model time."""
    clock, rows = context.clock, range(len(context))
    found = [clock.pick([row]).to_model(_stamps(moments[row]))[0] for row in rows]
    return torch.as_tensor(np.stack(found)).to(context.times)


def framed(
    values: Float[Tensor, "batch time columns"],
    seen: pd.Index,
    moments: list[pd.Index],
    columns: Any,
) -> Frame:
    """Predictions as rows of sktime: the moments, of each instance in turn."""
    index = moments[0]
    if isinstance(seen, pd.MultiIndex):
        keys = [each if isinstance(each, tuple) else (each,) for each in _instances(seen)]
        pairs = zip(keys, moments, strict=True)
        index = pd.MultiIndex.from_tuples(
            [(*key, moment) for key, own in pairs for moment in own], names=seen.names
        )
    rows = values.flatten(0, 1).cpu().double().numpy()
    return pd.DataFrame(rows, index=index, columns=columns)
