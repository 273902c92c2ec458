"""`plot`: sequences and paths over time, whatever they are of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from skipstone.drawing.labels import key, legend_below
from skipstone.drawing.panels import draw_updates
from skipstone.drawing.style import PALETTE, panel_grid, styled
from skipstone.errors import InvalidInput, require_kind, require_number
from skipstone.path import Path
from skipstone.sequences import Sequences
from skipstone.tables.clock import NANOSECONDS
from skipstone.tables.summary import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOMENTS = 400
"""Times at which a path is drawn, beside its knots."""


@styled
def plot(
    thing: Any,
    observed: Sequences | None = None,
    most: int = 6,
    interval: float | None = None,
) -> Figure:
    """Draw sequences or a path over time: a panel for each of the first `most`, a line per feature.

    Of a path, dots are the cell's updates, and `interval`, a coverage such as 0.9, adds bands if
    the model was calibrated. `observed` are sequences with one row for each of its rows, drawn as
    crosses: the context, or what happened in the end.
    """
    require_number("most, the number of panels,", most, 1, whole=True)
    require_kind("what is drawn must be Sequences or a Path", thing, (Sequences, Path))
    if observed is not None:
        require_kind("observed must be Sequences", observed, Sequences)
    if interval is not None and not isinstance(thing, Path):
        raise InvalidInput("intervals are those of a Path; got Sequences. Leave interval out.")
    if observed is not None and len(observed) != len(thing):
        raise InvalidInput(
            f"observed must have a row for each of the {len(thing)} that are drawn; got "
            f"{len(observed)}."
        )
    count = min(most, len(thing))
    figure, panels = panel_grid(count, min(count, 2), (3.6, 2.0), header=0.4)
    names: list[str] = []
    for row, axes in enumerate(panels):
        if isinstance(thing, Path):
            names = _draw_path(axes, thing, row, interval)
        else:
            names = _draw_sequence(axes, thing, row, marker=".", markersize=3)
        if observed is not None:
            _draw_sequence(axes, observed, row, marker="x", markersize=4, linestyle="")
        if thing.ids is not None:
            # A dollar sign would begin a formula.
            axes.set_title(listed([thing.ids[row]]).replace("$", r"\$"))
        if thing.clock.kind in ("datetime", "date"):
            _few_dates(axes)
    shown = names[: len(PALETTE)]
    handles = [key(name.replace("$", r"\$"), PALETTE[i]) for i, name in enumerate(shown)]
    legend_below(figure, handles)
    return figure


def _few_dates(axes: Axes) -> None:
    """Short labels that do not run into each other."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    # With fewer at most, there are ranges for which matplotlib finds none and warns.
    locator = AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _draw_sequence(axes: Axes, sequences: Sequences, row: int, **options: Any) -> list[str]:
    """Observations of one sequence; return the names of its features."""
    length = int(sequences.lengths[row])
    times = _moments(sequences, sequences.times[row, :length].cpu().numpy(), row)
    columns = sequences.about.columns(sequences.values[row, :length])
    for i, numbers in enumerate(columns.values()):
        axes.plot(times, numbers, color=PALETTE[i % len(PALETTE)], **options)
    return list(columns)


def _draw_path(axes: Axes, path: Path, row: int, interval: float | None) -> list[str]:
    """One trajectory of a path with its updates; return the names of its features."""
    knots = path.knots.detach()[row]
    knots = knots[knots.isfinite()]
    grid = torch.linspace(0, 1, MOMENTS, dtype=path.end.dtype, device=path.end.device)
    start, end = path.start.detach(), path.end.detach()
    times = start[:, None] + grid * (end - start)[:, None]
    at_knots = start[:, None].expand(-1, len(knots)).clone()
    at_knots[row] = knots
    with torch.no_grad():
        values, updates = path.evaluate(times)[row], path.evaluate(at_knots)[row]
    columns, dots = path.about.columns(values), path.about.columns(updates)
    x, marks = (_moments(path, part.cpu().numpy(), row) for part in (times[row], knots))
    bands = {} if interval is None else _bands(path, times, row, interval)
    for i, (name, numbers) in enumerate(columns.items()):
        colour = PALETTE[i % len(PALETTE)]
        axes.plot(x, numbers, color=colour)
        if name in bands:
            axes.fill_between(x, *bands[name], color=colour, alpha=0.2, linewidth=0)
        draw_updates(axes, marks, dots[name], [colour] * len(marks))
    return list(columns)


def _bands(
    path: Path, times: Tensor, row: int, coverage: float
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Lower and upper bounds of one trajectory, by feature."""
    with torch.no_grad():
        lower, upper = (bound[row] for bound in path.interval(times, coverage))
    high = path.about.columns(upper)
    return {name: (low, high[name]) for name, low in path.about.columns(lower).items()}


def _moments(thing: Sequences | Path, times: np.ndarray, row: int) -> np.ndarray:
    """Times as the table's stamps; datetimes are drawn in UTC, durations in model time."""
    clock = thing.clock
    if clock.origins is None or clock.kind == "duration":
        return times
    if clock.kind == "integer":
        return clock.origins[row] + times
    if clock.tick not in ("ns", "us"):
        # A path also goes between two days, or two seconds.
        ticks = NANOSECONDS[clock.tick] // NANOSECONDS["us"]
        clock = replace(clock, kind="datetime", tick="us", origins=clock.origins * ticks)
    return clock.stamps(times, np.full(len(times), row))
