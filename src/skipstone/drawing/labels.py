"""Text in figures: labels of lines and points, and legends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.drawing.style import faded

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Label = tuple[float, str, str]
"""The y of what is labelled, the text, and its colour."""

TOP = 0.97
"""Highest place of a label, as a share of the axes' height."""


def label_ends(axes: Axes, ends: Sequence[Label], apart: float = 0.11) -> None:
    """Label lines at their right ends, in place of a legend.

    Labels that would overlap move `apart`, a share of the axes' height. Call it when the scale and
    the limits are set.
    """
    for at, height, text, colour in _placed(axes, ends, apart):
        leader = {"arrowstyle": "-", "color": faded(colour, 0.6), "lw": 0.7}
        axes.annotate(
            text,
            (1.0, at),
            xycoords="axes fraction",
            xytext=(1.05, height),
            textcoords="axes fraction",
            # To the middle of the text's left edge, so that no leader crosses a label.
            arrowprops={**leader, "relpos": (0.0, 0.5), "shrinkA": 0, "shrinkB": 1},
            color=colour,
            va="center",
            fontsize=8,
            annotation_clip=False,
        )


def label_points(axes: Axes, x: float, points: Sequence[Label], apart: float = 0.09) -> None:
    """Label points that all have the same x, to their right."""
    for _, height, text, colour in _placed(axes, points, apart):
        at = {"xycoords": ("data", "axes fraction"), "va": "center", "zorder": 6}
        label_at(axes, (x, height), text, colour, (8, 0), **at)


def label_at(
    axes: Axes,
    point: tuple[float, float],
    text: str,
    colour: str,
    offset: tuple[float, float],
    **options: Any,
) -> None:
    """Label one point, `offset` typographic points away from it."""
    axes.annotate(
        text, point, xytext=offset, textcoords="offset points", color=colour, fontsize=8, **options
    )


def heading(figure: Figure, text: str) -> None:
    """A bold title at the left of a figure."""
    figure.suptitle(text, x=0.005, ha="left", fontsize=12, fontweight="bold")


def key(label: str, colour: Any, **options: Any) -> Line2D:
    """One entry of a legend: a line, or a symbol if there is a `marker`."""
    from matplotlib.lines import Line2D

    line = {"linestyle": ""} if "marker" in options else {}
    return Line2D([], [], label=label, color=colour, **line, **options)


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """A legend in one row below all panels."""
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)


def _placed(
    axes: Axes, labels: Sequence[Label], apart: float
) -> Iterator[tuple[float, float, str, str]]:
    """Labels from the lowest up: where they belong, and where they stand to be apart, as shares of
    the axes' height. They move as little as needed, and stay below the top."""
    axes.get_ylim()  # Limits that follow the data are only found when asked for.
    placed = sorted(
        (_height(axes, y), text, colour) for y, text, colour in labels if np.isfinite(y)
    )
    heights: list[float] = []
    for at, _, _ in placed:
        heights.append(max(at, heights[-1] + apart) if heights else at)
    over = max(0.0, heights[-1] - TOP) if heights else 0.0
    for height, (at, text, colour) in zip(heights, placed, strict=True):
        yield at, height - over, text, colour


def _height(axes: Axes, value: float) -> float:
    """Where a value is, as a share of the axes' height."""
    scale = axes.yaxis.get_transform()
    low, high, at = scale.transform(np.array([*axes.get_ylim(), value]))
    return float((at - low) / (high - low))
