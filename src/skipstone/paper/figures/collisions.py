"""Do updates happen where something happens? A picture of it, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from skipstone.drawing.style import FAINT, GREY, INK, MODEL_STYLES, look, new_figure
from skipstone.errors import InvalidInput
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.examples import Example
from skipstone.paper.groups import OURS, across_seeds, bars, by_task, comparable
from skipstone.paper.measured import Measured
from skipstone.paper.tasks.base import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCORES = {
    "recall": "collisions that have an update near",
    "precision": "updates that have a collision near",
}

# A distance this much above one observation, relative to it, is rounding.
_SLACK = 1e-6


def updates_and_collisions(
    examples: Sequence[Example], measured: Sequence[Measured] = ()
) -> Figure:
    """The PC-ODE's updates and the true collisions of some trajectories on lines of time, a panel
    for each task, beside the shares of one that are near the other in all test data, and what
    they would be by chance."""
    rasters = _rasters(examples)
    scores = by_task(comparable([run for run in measured if _has_scores(run)]))
    # With pictures of some tasks, numbers of others would only distract.
    tasks = list(rasters or scores)
    if not tasks:
        raise InvalidInput(
            f"there must be a {OURS} of balls that collide, for example of billiards1d; got none."
        )
    with look():
        figure = new_figure(8.2, 0.5 + 2.1 * len(tasks))
        panels = figure.subplots(len(tasks), 2, squeeze=False, width_ratios=[2.4, 1])
        for task, (raster, score) in zip(tasks, panels, strict=True):
            raster.set_title(task, fontweight="bold")
            _paint_raster(raster, rasters.get(task, []))
            _paint_scores(score, scores.get(task, []))
        panels[-1, 0].set_xlabel("time, observations since the context")
        _legend(figure)
        figure.canvas.draw()
    return figure


def _has_scores(run: Measured) -> bool:
    alignment = run.evaluation["alignment"]
    return run.model == OURS and bool(alignment) and alignment["num_collisions"] > 0


def _rasters(examples: Sequence[Example]) -> dict[str, list[Example]]:
    groups: dict[str, list[Example]] = {}
    for example in examples:
        if OURS in example.predictions:
            groups.setdefault(example.task, []).append(example)
    return groups


def _paint_raster(axes: Axes, examples: Sequence[Example]) -> None:
    if not examples:
        axes.set_visible(False)
        return
    for row, example in enumerate(examples):
        _paint_row(axes, example, -row)
    last = examples[0]
    axes.set_xlim(0, (last.times[-1] - last.times[CONTEXT - 1]) / _spacing(last))
    axes.set_ylim(0.6 - len(examples), 0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _paint_row(axes: Axes, example: Example, height: float) -> None:
    """One trajectory: what is near a collision shaded, each update filled if it is there."""
    start, spacing = example.times[CONTEXT - 1], _spacing(example)
    ends = example.times[-1]
    happened = example.events.times
    collisions = (happened[(happened > start) & (happened < ends)] - start) / spacing
    # The first update is there whatever the model does.
    updates = (example.predictions[OURS].knots[1:] - start) / spacing
    near = _near(updates, collisions)
    axes.barh(np.full(len(collisions), height), 2, 0.62, left=collisions - 1, color=FAINT, lw=0)
    axes.vlines(collisions, height - 0.31, height + 0.31, color=INK, lw=1)
    style = MODEL_STYLES[OURS]
    for chosen, fill in ((near, style.colour), (~near, "white")):
        axes.plot(
            updates[chosen],
            np.full(int(chosen.sum()), height),
            style.marker,
            markersize=4.5,
            markerfacecolor=fill,
            markeredgecolor=style.colour,
            zorder=4,
        )


def _near(
    updates: Float[np.ndarray, " updates"], collisions: Float[np.ndarray, " collisions"]
) -> Bool[np.ndarray, " updates"]:
    """Which updates have a collision within one observation, as an evaluation counts them."""
    if not len(collisions):
        return np.zeros(len(updates), dtype=bool)
    return np.abs(updates[:, None] - collisions).min(axis=1) <= 1 + _SLACK


def _spacing(example: Example) -> float:
    return float(np.median(np.diff(example.times)))


def _paint_scores(axes: Axes, runs: Sequence[Measured]) -> None:
    """Recall and precision, each on a line from what they would be by chance."""
    if not runs:
        axes.set_visible(False)
        return
    style = MODEL_STYLES[OURS]
    for height, (name, words) in zip((1.0, 0.0), _SCORES.items(), strict=True):
        score, chance = (
            across_seeds([run.evaluation["alignment"][key] for run in runs])
            for key in (name, f"random_{name}")
        )
        axes.plot([100 * chance.value, 100 * score.value], [height] * 2, color=FAINT, lw=5)
        for one, colour, marker in ((chance, GREY, "|"), (score, style.colour, style.marker)):
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
        higher = score.value >= chance.value
        _name(axes, score, height, style.colour, right=higher)
        _name(axes, chance, height, GREY, right=not higher)
        axes.text(0, height + 0.42, words, fontsize=8)
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.6, 1.7)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter("{x:.0f} %")


def _name(axes: Axes, share: Estimate, height: float, colour: str, right: bool) -> None:
    axes.annotate(
        f"{100 * share.value:.0f} %",
        (100 * share.value, height),
        xytext=(8 if right else -8, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
        color=colour,
    )


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = MODEL_STYLES[OURS].colour
    dot: dict[str, Any] = {
        "linestyle": "",
        "marker": "o",
        "markersize": 4.5,
        "markeredgecolor": colour,
    }
    handles = [
        Line2D([], [], linestyle="", marker="|", color=INK, markersize=8, label="collision"),
        Patch(facecolor=FAINT, label="within one observation of it"),
        Line2D([], [], markerfacecolor=colour, label="update near one", **dot),
        Line2D([], [], markerfacecolor="white", label="update elsewhere", **dot),
        Line2D(
            [], [], linestyle="", marker="|", color=GREY, markersize=8, label="by chance", mew=2
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
