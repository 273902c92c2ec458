"""Figures about examples: what models predict, and when they update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.drawing.style import INK, look, new_figure
from skipstone.errors import InvalidInput
from skipstone.paper.examples import Example
from skipstone.paper.figures.painting import (
    SHOWN,
    TRUTH,
    count_updates,
    model_colour,
    paint_prediction,
    paint_steps,
    paint_truth,
    prepare_panel,
    prepare_steps,
    updates_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def hero(example: Example) -> Figure:
    """What each model makes of the same balls, below a strip of its steps: figure 1 of the
    paper."""
    titles = [title for title in SHOWN if title in example.predictions]
    if not titles:
        raise InvalidInput(f"there must be a prediction of {' or '.join(SHOWN)} to draw; got none.")
    with look():
        figure = new_figure(2.7 * len(titles), 3.55)
        rows = figure.subplots(2, len(titles), squeeze=False, height_ratios=[1, 10])
        for (strip, panel), title in zip(rows.T, titles, strict=True):
            count = count_updates(example.predictions[title])
            strip.set_title(title, color=model_colour(title), fontweight="bold")
            strip.set_title(updates_text(count), loc="right", color=model_colour(title))
            prepare_steps(strip, example)
            paint_steps(strip, example, title)
            prepare_panel(panel, example)
            paint_truth(panel, example)
            paint_prediction(panel, example, title)
        _hero_legend(figure)
        figure.canvas.draw()
    return figure


def _hero_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "marker": "o"}
    handles = [
        Line2D([], [], color=TRUTH, lw=4, label="what happens"),
        Line2D([], [], color=INK, markersize=3, label="given", **dot),
        Line2D([], [], color="#777777", markersize=4.5, label="cell update", **dot),
        Line2D([], [], color=INK, linestyle="", marker="|", markersize=6, label="collision"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
