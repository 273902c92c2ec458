"""Figures about many runs: sizes of models, horizons, sampling rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.drawing.labels import label_at, label_ends
from skipstone.drawing.panels import draw_curve
from skipstone.drawing.style import GREY, INK, log_ticks, new_figure, panel_grid, styled
from skipstone.errors import InvalidInput
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.figures.models import MODEL_STYLES, model_colour
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


@styled
def capacity(measured: Sequence[Measured]) -> Figure:
    """Mean step of the PC-ODE against its hidden size, a line for each task that has runs of
    several sizes: the paper's figure of capacity."""
    lines = _by_size([run for run in measured if run.model == OURS])
    if not lines:
        raise InvalidInput(
            f"there must be {OURS} runs of one task that differ in hidden size; got none."
        )
    figure = new_figure(4.6, 3.2)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    ends = []
    for marker, (task, sizes) in zip(_MARKERS, lines.items(), strict=False):
        hidden = sorted(sizes)
        steps = [measure(sizes[size], "mean_step") for size in hidden]
        draw_points(axes, hidden, steps, OURS, marker=marker)
        ends.append((steps[-1].value, task, INK))
        _ceiling(axes, sizes[hidden[-1]][0], steps[-1].value)
    axes.set_xticks(sorted({size for sizes in lines.values() for size in sizes}), minor=False)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set(xlabel="hidden units", ylabel="mean step, observations")
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.locator_params(axis="y", integer=True)
    label_ends(axes, ends, apart=0.07)
    return figure


def _by_size(runs: Sequence[Measured]) -> dict[str, dict[int, list[Measured]]]:
    """The runs of each task by hidden size: those that differ in nothing else but their seed, and
    have the most sizes."""
    found = {}
    for task, same_task in by_task(runs).items():
        studies = grouped(same_task, _all_but_size).values()
        sizes = max((grouped(same, lambda run: run.hidden) for same in studies), key=len)
        if len(sizes) > 1:
            found[task] = sizes
    return found


def _all_but_size(run: Measured) -> tuple[Any, ...]:
    """What a run differs in from its preset, besides its size."""
    options = [item for item in run.options.items() if item[0] != "hidden"]
    return run.budget[1], run.spacing, tuple(sorted(options))


def _ceiling(axes: Axes, run: Measured, longest: float) -> None:
    """A line where one step is the whole rollout, if steps come near it."""
    most = len(run.evaluation["horizon_mse"])
    if longest < most / 2:
        return
    axes.axhline(most, color=GREY, lw=0.8, linestyle=":", zorder=0)
    place = {"xycoords": axes.get_yaxis_transform(), "va": "bottom"}
    label_at(axes, (0, most), "one step is all there is", GREY, (2, 3), **place)


@styled
def error_by_horizon(measured: Sequence[Measured]) -> Figure:
    """Error of rollouts against how far ahead they predict, a panel for each task."""
    tasks = by_task(comparable(measured))
    if not tasks:
        raise InvalidInput("there must be measured runs to draw errors by horizon of; got none.")
    across = -(-len(tasks) // -(-len(tasks) // _IN_A_ROW))
    figure, panels = panel_grid(len(tasks), across, (2.9, 2.4))
    for panel, (task, runs) in zip(panels, tasks.items(), strict=True):
        _paint_horizon(panel, task, runs)
    for panel in panels[::across]:
        panel.set_ylabel("MSE of rollouts")
    return figure


def _paint_horizon(axes: Axes, task: str, runs: Sequence[Measured]) -> None:
    axes.set_yscale("log")
    ends = []
    for title, seeds in by_model(runs).items():
        curves = zip(*(run.evaluation["horizon_mse"] for run in seeds), strict=True)
        errors = [across_seeds(at_horizon) for at_horizon in curves]
        draw_curve(axes, np.arange(1, len(errors) + 1), columns(errors), MODEL_STYLES[title])
        ends.append((errors[-1].value, title, model_colour(title)))
    axes.set_title(task, fontweight="bold")
    axes.set_xlabel("observations ahead")
    log_ticks(axes.yaxis)
    label_ends(axes, ends)


@styled
def cost_against_sampling_rate(measured: Sequence[Measured], task: str = "billiards1d") -> Figure:
    """Updates per rollout against the number of observations of the same balls, beside the errors.
    Runs of the task that differ in spacing."""
    free = {"finer", "hidden", "steps"}
    runs = _of_one_budget([run for run in measured if run.task == task and run.varied <= free])
    if len({run.spacing for run in runs}) < 2:
        got = f"{len(runs)} of one spacing" if runs else "none"
        raise InvalidInput(f"there must be runs of {task} that differ in spacing; got {got}.")
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
    return figure


def _of_one_budget(runs: Sequence[Measured]) -> list[Measured]:
    """The runs with the units and steps of those of the finest sampling, which have the least."""
    finest = min(runs, key=lambda run: run.spacing, default=None)
    return [run for run in runs if finest and run.budget == finest.budget]


def _paint_rates(axes: Axes, task: str, runs: Sequence[Measured], name: str) -> None:
    ends = []
    for title, seeds in by_model(runs).items():
        rates = sorted(grouped(seeds, lambda run: _rate(task, run)).items())
        values = [measure(same, name) for _, same in rates]
        draw_points(axes, [rate for rate, _ in rates], values, title)
        ends.append((values[-1].value, title, model_colour(title)))
    axes.set_xticks(sorted({_rate(task, run) for run in runs}), minor=False)
    axes.xaxis.set_major_formatter("{x:g}×")
    log_ticks(axes.yaxis)
    label_ends(axes, ends)


def _rate(task: str, run: Measured) -> float:
    """Sampling rate, as a multiple of the task's own."""
    return round(find_task(task).options.spacing / run.spacing, 6)


def _paint_collisions(axes: Axes, runs: Sequence[Measured]) -> None:
    """A line at the number of collisions in a rollout, which no sampling rate changes."""
    counts = [
        run.evaluation["alignment"]["num_collisions"] / run.evaluation["num_trajectories"]
        for run in runs
        if run.evaluation["alignment"]
    ]
    if not counts:
        return
    height = float(np.mean(counts))
    axes.axhline(height, color=GREY, lw=1, linestyle=":", zorder=1)
    place = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "top"}
    label_at(axes, (0.02, height), f"{height:.1f} collisions", GREY, (0, -3), **place)
    # Room for the label, away from updates, of which there are rather more than collisions.
    axes.update_datalim([(1.0, height / 1.6)])


def draw_points(
    axes: Axes, x: Sequence[float], estimates: Sequence[Estimate], title: str, **options: Any
) -> None:
    """Values with their intervals, in the style of a model."""
    style = MODEL_STYLES[title]
    axes.errorbar(
        x,
        [one.value for one in estimates],
        yerr=bars(estimates),
        **{"linestyle": style.line, "marker": style.marker, "color": style.colour, **options},
        markersize=5,
        elinewidth=1,
        capsize=2,
    )
