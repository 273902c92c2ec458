"""Figures about many runs: sizes of models, horizons, sampling rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from skipstone.drawing.style import (
    GREY,
    INK,
    MODEL_STYLES,
    faded,
    label_ends,
    log_ticks,
    look,
    new_figure,
)
from skipstone.errors import InvalidInput
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.groups import (
    OURS,
    across_seeds,
    bars,
    by_model,
    by_task,
    columns,
    comparable,
    grouped,
    measure,
)
from skipstone.paper.measured import Measured
from skipstone.paper.tasks.registry import find_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "os^Dv*P"
"""One for each task in the figure of capacities."""

_IN_A_ROW = 4
"""Most panels in a row of small multiples."""


def capacity(measured: Sequence[Measured]) -> Figure:
    """Mean step of the PC-ODE against its hidden size, a line for each task that has runs of
    several sizes: the paper's figure of capacity."""
    ours = [run for run in measured if run.model == OURS and _only_size(run)]
    lines = {
        task: sizes
        for task, runs in by_task(ours).items()
        if len(sizes := grouped(runs, lambda run: run.hidden)) > 1
    }
    if not lines:
        raise InvalidInput(
            f"there must be {OURS} runs of one task that differ in hidden size; got none."
        )
    with look():
        figure = new_figure(4.6, 3.2)
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        ends = []
        for marker, (task, sizes) in zip(_MARKERS, lines.items(), strict=False):
            hidden = sorted(sizes)
            steps = [measure(sizes[size], "mean_step") for size in hidden]
            _line(axes, hidden, steps, OURS, marker=marker, line="-")
            ends.append((steps[-1].value, task, INK))
            _ceiling(axes, sizes[hidden[-1]][0])
        axes.set_xticks(sorted({size for sizes in lines.values() for size in sizes}), minor=False)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_xlabel("hidden units")
        axes.set_ylabel("mean step, observations")
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.locator_params(axis="y", integer=True)
        label_ends(axes, ends, apart=0.07)
        figure.canvas.draw()
    return figure


def _ceiling(axes: Axes, run: Measured) -> None:
    """A line where one step is the whole rollout."""
    most = len(run.evaluation["horizon_mse"])
    axes.axhline(most, color=GREY, lw=0.8, linestyle=":", zorder=0)
    place = {"xytext": (2, 3), "textcoords": "offset points", "va": "bottom"}
    across = axes.get_yaxis_transform()
    text = "one step is all there is"
    axes.annotate(text, (0, most), xycoords=across, color=GREY, fontsize=8, **place)


def _only_size(run: Measured) -> bool:
    return run.varied <= {"hidden"}


def error_by_horizon(measured: Sequence[Measured]) -> Figure:
    """Error of rollouts against how far ahead they predict, a panel for each task."""
    tasks = by_task(comparable(measured))
    if not tasks:
        raise InvalidInput("there must be measured runs to draw errors by horizon of; got none.")
    with look():
        rows = -(-len(tasks) // _IN_A_ROW)
        across = -(-len(tasks) // rows)
        figure = new_figure(2.9 * across, 2.4 * rows)
        panels = figure.subplots(rows, across, squeeze=False)
        for panel, (task, runs) in zip(panels.flat, tasks.items(), strict=False):
            _paint_horizon(panel, task, runs)
        for spare in panels.flat[len(tasks) :]:
            spare.set_visible(False)
        for panel in panels[:, 0]:
            panel.set_ylabel("MSE of rollouts")
        figure.canvas.draw()
    return figure


def _paint_horizon(axes: Axes, task: str, runs: Sequence[Measured]) -> None:
    axes.set_yscale("log")
    ends = []
    for title, seeds in by_model(runs).items():
        style = MODEL_STYLES[title]
        curves = zip(*(run.evaluation["horizon_mse"] for run in seeds), strict=True)
        errors = [across_seeds(at_horizon) for at_horizon in curves]
        ahead = np.arange(1, len(errors) + 1)
        low, value, high = columns(errors)
        axes.fill_between(ahead, low, high, color=faded(style.colour, 0.2), lw=0)
        axes.plot(ahead, value, color=style.colour, linestyle=style.line)
        ends.append((value[-1], title, style.colour))
    axes.set_title(task, fontweight="bold")
    axes.set_xlabel("observations ahead")
    log_ticks(axes.yaxis)
    label_ends(axes, ends)


def cost_against_sampling_rate(measured: Sequence[Measured], task: str = "billiards1d") -> Figure:
    """What it costs to look at the same balls more often: updates per rollout against the number
    of observations, beside the errors. Runs of the task that differ in spacing."""
    free = {"finer", "hidden", "steps"}
    runs = _of_one_budget([run for run in measured if run.task == task and run.varied <= free])
    if len({run.spacing for run in runs}) < 2:
        raise InvalidInput(
            f"there must be runs of {task} that differ in spacing; got {len(runs)} of one spacing."
            if runs
            else f"there must be runs of {task} that differ in spacing; got none."
        )
    with look():
        figure = new_figure(7.6, 3.0)
        cost, error = figure.subplots(1, 2)
        for axes, name in ((cost, "updates"), (error, "sample_mse")):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            if axes is cost:
                _paint_collisions(axes, runs)
            _paint_rates(axes, task, runs, name)
            axes.set_xlabel("observations, relative to the usual")
        cost.set_ylabel("updates per rollout")
        error.set_ylabel("sample MSE")
        figure.canvas.draw()
    return figure


def _of_one_budget(runs: Sequence[Measured]) -> list[Measured]:
    """The runs that got what those of the finest sampling got: they decide what all can have."""
    if not runs:
        return []
    finest = min(runs, key=lambda run: run.spacing)
    return [run for run in runs if run.budget == finest.budget]


def _paint_rates(axes: Axes, task: str, runs: Sequence[Measured], name: str) -> None:
    ends = []
    for title, seeds in by_model(runs).items():
        points = list(_by_rate(task, seeds, name))
        _line(axes, [rate for rate, _ in points], [value for _, value in points], title)
        ends.append((points[-1][1].value, title, MODEL_STYLES[title].colour))
    axes.set_xticks(sorted({_rate(task, run) for run in runs}), minor=False)
    axes.xaxis.set_major_formatter("{x:g}×")
    log_ticks(axes.yaxis)
    label_ends(axes, ends)


def _by_rate(task: str, seeds: Sequence[Measured], name: str) -> Iterator[tuple[float, Estimate]]:
    rates = grouped(seeds, lambda run: _rate(task, run))
    for rate in sorted(rates):
        yield rate, measure(rates[rate], name)


def _rate(task: str, run: Measured) -> float:
    """Observations in the place of each one of the task's."""
    return round(find_task(task).options.spacing / run.spacing, 6)


def _paint_collisions(axes: Axes, runs: Sequence[Measured]) -> None:
    """How many collisions a rollout has to predict, which no sampling rate changes."""
    counts = [
        run.evaluation["alignment"]["num_collisions"] / run.evaluation["num_trajectories"]
        for run in runs
        if run.evaluation["alignment"]
    ]
    if not counts:
        return
    height = float(np.mean(counts))
    axes.axhline(height, color=GREY, lw=1, linestyle=":", zorder=1)
    axes.annotate(
        f"{height:.1f} collisions",
        (0.02, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, -3),
        textcoords="offset points",
        ha="left",
        va="top",
        color=GREY,
        fontsize=8,
    )
    # Room for it, away from updates, of which there are rather more than collisions.
    axes.update_datalim([(1.0, height / 1.6)])


def _line(
    axes: Axes,
    x: Sequence[float],
    estimates: Sequence[Estimate],
    title: str,
    marker: str = "",
    line: object = None,
) -> None:
    """Values with their intervals, in the style of a model."""
    style = MODEL_STYLES[title]
    axes.errorbar(
        x,
        [one.value for one in estimates],
        yerr=bars(estimates),
        color=style.colour,
        linestyle=line or style.line,
        marker=marker or style.marker,
        markersize=5,
        elinewidth=1,
        capsize=2,
    )
