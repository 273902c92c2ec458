"""Success of planned shots against the number of rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.drawing.labels import label_ends
from skipstone.drawing.style import GREY, faded, look, new_figure, series_styles
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.pool.experiment import SIMULATOR, in_the_paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_success(content: dict[str, Any]) -> Figure:
    """Success rate against the number of rollouts: the paper's planning figure."""
    curves = [result for result in content["results"] if in_the_paper(result)]
    styles = series_styles([curve["contestant"] for curve in curves], MODEL_STYLES)
    with look():
        figure = new_figure(5.2, 3.4)
        axes = figure.subplots()
        ends = []
        for curve in curves:
            style = styles[curve["contestant"]]
            low, value, high = (
                [100 * point[key] for point in curve["success"]] for key in ("low", "value", "high")
            )
            axes.fill_between(curve["rollouts"], low, high, color=faded(style.colour, 0.15), lw=0)
            axes.plot(
                *(curve["rollouts"], value),
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markersize=4,
            )
            label = curve["contestant"]
            if label != SIMULATOR:
                label += f"\n{curve['updates']:.1f} updates"
            ends.append((value[-1], label, style.colour))
        lowest = 100 * curves[0]["success"][0]["value"]
        axes.axhline(lowest, color=GREY, lw=0.8, linestyle=":")
        axes.text(curves[0]["rollouts"][-1], lowest + 1.5, "a random shot", color=GREY, ha="right")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, 102)
        axes.set_xlabel("rollouts to plan a shot")
        axes.set_ylabel("shots that succeed, %")
        label_ends(axes, ends)
        figure.canvas.draw()
    return figure
