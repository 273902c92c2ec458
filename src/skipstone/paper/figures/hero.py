"""The first figure: what models predict of two balls, and when they update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.drawing.labels import key, legend_below
from skipstone.drawing.panels import prepare_steps
from skipstone.drawing.style import INK, new_figure, styled
from skipstone.paper.examples import Example
from skipstone.paper.figures import painting

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def hero(example: Example) -> Figure:
    """Each model's prediction of the same balls, below a strip of its steps: figure 1 of the
    paper."""
    titles = painting.shown_models(example)
    figure = new_figure(2.7 * len(titles), 3.55)
    rows = figure.subplots(2, len(titles), squeeze=False, height_ratios=[1, 10])
    for (strip, panel), title in zip(rows.T, titles, strict=True):
        painting.name_panel(strip, example, title)
        prepare_steps(strip, example.moments[-1])
        painting.paint_steps(strip, example, title)
        painting.prepare_example(panel, example)
        painting.paint_truth(panel, example)
        painting.paint_prediction(panel, example, title)
    legend_below(
        figure,
        [
            key("what happens", painting.TRUTH, lw=4),
            key("given", INK, marker="o", markersize=3),
            key("cell update", "#777777", marker="o", markersize=4.5),
            key("collision", INK, marker="|", markersize=6),
        ],
    )
    return figure
