"""Whether updates happen at collisions: when they happen, and how often they are near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from skipstone.drawing.labels import key, label_at, legend_below
from skipstone.drawing.style import FAINT, GREY, INK, new_figure, styled
from skipstone.errors import InvalidInput
from skipstone.paper.examples import Example
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.groups import OURS, across_seeds, bars, by_task, comparable
from skipstone.paper.measured import Measured
from skipstone.paper.tasks.base import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = MODEL_STYLES[OURS]

_SCORES = {
    "recall": "collisions that have an update near",
    "precision": "updates that have a collision near",
}

# A distance this much above one observation, relative to it, is rounding.
_SLACK = 1e-6


@styled
def updates_and_collisions(
    examples: Sequence[Example], measured: Sequence[Measured] = ()
) -> Figure:
    """Updates of the PC-ODE and true collisions on lines of time, a panel for each task.

    Beside them the shares of one that are near the other in all test data, and by chance.
    """
    rasters: dict[str, list[Example]] = {}
    for example in examples:
        if OURS in example.predictions:
            rasters.setdefault(example.task, []).append(example)
    scores = by_task(comparable([run for run in measured if _has_scores(run)]))
    # With pictures of some tasks, numbers of others would only distract.
    tasks = list(rasters or scores)
    if not tasks:
        raise InvalidInput(
            f"there must be a {OURS} of balls that collide, for example of billiards1d; got none."
        )
    figure = new_figure(8.2, 0.5 + 2.1 * len(tasks))
    panels = figure.subplots(len(tasks), 2, squeeze=False, width_ratios=[2.4, 1])
    for task, (raster, score) in zip(tasks, panels, strict=True):
        raster.set_title(task, fontweight="bold")
        _paint_raster(raster, rasters.get(task, []))
        _paint_scores(score, scores.get(task, []))
    panels[-1, 0].set_xlabel("time, observations since the context")
    _legend(figure)
    return figure


def _has_scores(run: Measured) -> bool:
    alignment = run.evaluation["alignment"]
    return run.model == OURS and bool(alignment) and alignment["num_collisions"] > 0


def _paint_raster(axes: Axes, examples: Sequence[Example]) -> None:
    """A row for each trajectory."""
    axes.set_visible(bool(examples))
    if not examples:
        return
    for row, example in enumerate(examples):
        _paint_row(axes, example, -row)
        axes.set_xlim(0, (example.times[-1] - example.times[CONTEXT - 1]) / example.spacing)
    axes.set(ylim=(0.6 - len(examples), 0.6), yticks=[])
    axes.spines["left"].set_visible(False)


def _paint_row(axes: Axes, example: Example, height: float) -> None:
    """One trajectory: neighbourhoods of collisions shaded, updates within them filled."""
    start, end = example.times[CONTEXT - 1], example.times[-1]
    happened = example.events.times
    happened = happened[(happened > start) & (happened < end)]
    # The first update is there whatever the model does.
    updates, collisions = (
        (times - start) / example.spacing
        for times in (example.predictions[OURS].knots[1:], happened)
    )
    near = _near(updates, collisions)
    axes.barh(np.full(len(collisions), height), 2, 0.62, left=collisions - 1, color=FAINT, lw=0)
    axes.vlines(collisions, height - 0.31, height + 0.31, color=INK, lw=1)
    for chosen, fill in ((near, _STYLE.colour), (~near, "white")):
        heights = np.full(int(chosen.sum()), height)
        axes.plot(updates[chosen], heights, linestyle="", zorder=4, **_dot(fill))


def _dot(fill: str) -> dict[str, Any]:
    """How an update is marked."""
    edge = {"markeredgecolor": _STYLE.colour, "markersize": 4.5}
    return {"marker": _STYLE.marker, "markerfacecolor": fill, **edge}


def _near(
    updates: Float[np.ndarray, " updates"], collisions: Float[np.ndarray, " collisions"]
) -> Bool[np.ndarray, " updates"]:
    """Which updates have a collision within one observation, as an evaluation counts them."""
    return np.any(np.abs(updates[:, None] - collisions) <= 1 + _SLACK, axis=1)


def _paint_scores(axes: Axes, runs: Sequence[Measured]) -> None:
    """Recall and precision, each on a line from its value by chance."""
    axes.set_visible(bool(runs))
    if not runs:
        return
    for height, (name, words) in zip((1.0, 0.0), _SCORES.items(), strict=True):
        score, chance = (
            across_seeds([run.evaluation["alignment"][found] for run in runs])
            for found in (name, f"random_{name}")
        )
        axes.plot([100 * chance.value, 100 * score.value], [height] * 2, color=FAINT, lw=5)
        for one, colour, marker in ((chance, GREY, "|"), (score, _STYLE.colour, _STYLE.marker)):
            axes.errorbar(
                100 * one.value,
                height,
                xerr=100 * np.array(bars([one])),
                fmt=marker,
                color=colour,
                markersize=8,
                markeredgewidth=2 if marker == "|" else 0,
                elinewidth=1,
            )
            # The smaller share is named at its left.
            smaller = one is (chance if score.value >= chance.value else score)
            place = {"ha": "right" if smaller else "left", "va": "center"}
            point, text = (100 * one.value, height), f"{100 * one.value:.0f} %"
            label_at(axes, point, text, colour, (-8 if smaller else 8, 0), **place)
        axes.text(0, height + 0.42, words, fontsize=8)
    axes.set(xlim=(0, 100), ylim=(-0.6, 1.7), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter("{x:.0f} %")


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    handles = [
        key("collision", INK, marker="|", markersize=8),
        Patch(facecolor=FAINT, label="within one observation of it"),
        key("update near one", _STYLE.colour, **_dot(_STYLE.colour)),
        key("update elsewhere", _STYLE.colour, **_dot("white")),
        key("by chance", GREY, marker="|", markersize=8, markeredgewidth=2),
    ]
    legend_below(figure, handles)
