"""The frontier: the error that a PC-ODE reaches with steps of a mean length, beside the RNN's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skipstone.drawing.labels import label_at
from skipstone.drawing.style import faded, log_ticks, panel_grid, styled
from skipstone.errors import InvalidInput
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.figures.studies import draw_points
from skipstone.paper.frontier import Frontier, frontiers
from skipstone.paper.groups import OURS
from skipstone.paper.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IN_A_ROW = 3
"""Most panels in a row."""


@styled
def error_against_step(measured: Sequence[Measured]) -> Figure:
    """Error of rollouts against mean step for PC-ODEs that were trained for different ones, and
    the error of the RNN of the same budget as a line across: a panel for each task."""
    found = frontiers(measured)
    if not found:
        raise InvalidInput(
            f"there must be an RNN and two {OURS}s of one task and budget that differ in "
            "target_step or tolerance; got none."
        )
    figure, panels = panel_grid(len(found), min(len(found), _IN_A_ROW), (2.9, 2.5))
    for panel, (task, frontier) in zip(panels, found.items(), strict=True):
        _paint_frontier(panel, frontier)
        panel.set_title(task, fontweight="bold")
    for panel in panels[::_IN_A_ROW]:
        panel.set_ylabel("sample MSE")
    return figure


def _paint_frontier(axes: Axes, frontier: Frontier) -> None:
    axes.set(xscale="log", yscale="log", xlabel="mean step, observations")
    steps, errors = frontier.column("mean_step"), frontier.column("sample_mse")
    draw_points(axes, [one.value for one in steps], errors, OURS)
    style, error = MODEL_STYLES["RNN"], frontier.baseline_error
    axes.axhline(error.value, color=style.colour, linestyle=style.line, zorder=1)
    axes.axhspan(error.low, error.high, color=faded(style.colour, 0.15), lw=0, zorder=0)
    axes.set_xlim(left=min(0.9, 0.9 * steps[0].value), right=1.25 * max(2.0, steps[-1].value))
    axes.margins(y=0.15)
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
    label_at(axes, (0.99, error.value), "RNN", style.colour, (0, 2), **place)
    last = (steps[-1].value, errors[-1].value)
    label_at(axes, last, OURS, MODEL_STYLES[OURS].colour, (-6, 4), ha="right", va="bottom")
