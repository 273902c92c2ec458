"""One task in one row, as the paper shows it: samples, steps during training, error and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skipstone.drawing.style import (
    GREY,
    MODEL_STYLES,
    faded,
    label_below,
    label_ends,
    label_points,
    log_ticks,
    look,
    new_figure,
)
from skipstone.errors import InvalidInput
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.examples import Example
from skipstone.paper.figures.painting import (
    PALEST,
    count_updates,
    model_colour,
    paint_film,
    paint_prediction,
    paint_truth,
    prepare_panel,
    updates_text,
)
from skipstone.paper.figures.panels import strengths
from skipstone.paper.groups import (
    OURS,
    across_seeds,
    bars,
    by_model,
    columns,
    comparable,
    measure,
)
from skipstone.paper.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINES = {"film": ("RNN", "ODE-RNN", "latent ODE"), "": ("ODE-RNN", "RNN", "latent ODE")}
"""Whose sample stands beside the PC-ODE's, the first that there is. As in the paper, the RNN's on
images, where the ODE-RNN is worse."""


# Room for names below the lowest point and above the highest, as a share of the axis.
_FLOOR = 0.12
# A mean step that is seen to be longer than one.
_NEXT = 1.05


def task_summary(example: Example, runs: Sequence[Measured]) -> Figure:
    """Samples of a baseline and of the PC-ODE, mean step during training, and error against mean
    step: a row of figures 2 and 4 of the paper. Several seeds are drawn as mean and range."""
    runs = comparable([run for run in runs if run.task == example.task])
    titles = _samples(example)
    if not runs and not titles:
        raise InvalidInput(
            f"there must be a run or a prediction of {example.task} to draw; got neither."
        )
    wide = {"time": 1.5, "film": 1.9}.get(example.scene.kind, 1.0)
    widths = [wide] * len(titles) + [1.15, 1.25] * bool(runs)
    with look():
        figure = new_figure(2.55 * sum(widths), 2.7)
        panels = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
        for panel, title in zip(panels, titles, strict=False):
            _paint_sample(panel, example, title)
        if runs:
            _paint_steps_in_training(panels[-2], runs)
            _paint_error_against_step(panels[-1], runs)
        figure.suptitle(example.task, x=0.005, ha="left", fontsize=12, fontweight="bold")
        figure.canvas.draw()
    return figure


def _samples(example: Example) -> list[str]:
    """Whose samples are shown."""
    order = BASELINES.get(example.scene.kind, BASELINES[""])
    baseline = [title for title in order if title in example.predictions][:1]
    return baseline + [OURS] * (OURS in example.predictions)


def _paint_sample(axes: Axes, example: Example, title: str) -> None:
    count = count_updates(example.predictions[title])
    axes.set_title(f"{title}, {updates_text(count)}", color=model_colour(title))
    if example.scene.kind == "film":
        paint_film(axes, example, title)
        return
    prepare_panel(axes, example)
    paint_truth(axes, example)
    paint_prediction(axes, example, title)
    if example.scene.kind == "time":
        axes.set_xlabel("time")


def _paint_steps_in_training(axes: Axes, runs: Sequence[Measured]) -> None:
    ends = []
    for title, seeds in by_model(runs).items():
        style = MODEL_STYLES[title]
        steps, lengths = _validations(seeds, "mean_step")
        if not steps:
            continue
        low, value, high = columns(lengths)
        if len(seeds) > 1:
            axes.fill_between(steps, low, high, color=faded(style.colour, 0.2), lw=0)
        axes.plot(
            steps, value, color=style.colour, linestyle=style.line, marker=style.marker, ms=3.5
        )
        ends.append((value[-1], title, style.colour))
    axes.set_ylim(0, 1.1 * max(1.0, axes.get_ylim()[1]))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=3)
    axes.set_title("mean step")
    axes.set_xlabel("training steps")
    label_ends(axes, ends)


def _paint_error_against_step(axes: Axes, runs: Sequence[Measured]) -> None:
    models = by_model(runs)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for title, seeds in models.items():
        _paint_constant_steps(axes, seeds)
        _paint_progress(axes, title, seeds)
    for title, seeds in models.items():
        style = MODEL_STYLES[title]
        step, error = measure(seeds, "mean_step"), measure(seeds, "sample_mse")
        axes.errorbar(
            step.value,
            error.value,
            xerr=bars([step]),
            yerr=bars([error]),
            fmt=style.marker,
            color=style.colour,
            markersize=8,
            markeredgecolor="white",
            markeredgewidth=0.8,
            elinewidth=1,
            zorder=5,
            label=title,
        )
    axes.set_title("error against step")
    axes.set_xlabel("mean step, observations")
    axes.set_ylabel("sample MSE")
    # Models that all step by one would leave an axis of no length.
    shortest, longest = axes.get_xlim()
    axes.set_xlim(min(shortest, 0.85), max(longest, 2.0))
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    _name_points(axes, models)


def _paint_constant_steps(axes: Axes, seeds: Sequence[Measured]) -> None:
    curves = [run.evaluation["constant_steps"] for run in seeds]
    if not all(curves):
        return
    points = list(zip(*curves, strict=False))
    x = [across_seeds([point["mean_step"] for point in seed]).value for seed in points]
    y = [across_seeds([point["sample_mse"] for point in seed]).value for seed in points]
    # Steps beyond half of what there is to predict all end up with the same two updates.
    curve = [(x[i], y[i]) for i in range(len(x)) if i == 0 or x[i] > 1.01 * x[i - 1]]
    axes.plot(*zip(*curve, strict=True), color=GREY, lw=1.2, marker=".", markersize=4, zorder=1)
    top = max(curve, key=lambda point: point[1])
    late = top == curve[-1]
    axes.annotate(
        "constant steps",
        top,
        xytext=(0, 5),
        textcoords="offset points",
        color=GREY,
        ha="right" if late else "center",
        va="bottom",
        fontsize=8,
    )


def _paint_progress(axes: Axes, title: str, seeds: Sequence[Measured]) -> None:
    """The validations of a training, from light to dark, and a line to where it ended."""
    style = MODEL_STYLES[title]
    steps, lengths = _validations(seeds, "mean_step")
    _, errors = _validations(seeds, "validation_error")
    if not steps:
        return
    x, y = ([one.value for one in column] for column in (lengths, errors))
    final = measure(seeds, "mean_step").value, measure(seeds, "sample_mse").value
    axes.plot([*x, final[0]], [*y, final[1]], color=faded(style.colour, 0.3), lw=1, zorder=2)
    ages = strengths(np.array(steps), steps[-1], PALEST)
    axes.scatter(
        *(x, y),
        s=16,
        marker=style.marker,
        c=[faded(style.colour, age) for age in ages],
        lw=0,
        zorder=3,
    )


def _name_points(axes: Axes, models: dict[str, list[Measured]]) -> None:
    """Names beside the points where trainings ended: of models that step by one, to the right and
    above each other; of one that chooses its steps, below, clear of its training."""
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** _FLOOR, high * (high / low) ** _FLOOR)
    beside = []
    for title, seeds in models.items():
        step, error = measure(seeds, "mean_step").value, measure(seeds, "sample_mse").value
        colour = MODEL_STYLES[title].colour
        if step < _NEXT:
            beside.append((error, title, colour))
        else:
            label_below(axes, (step, error), title, colour)
    label_points(axes, 1.0, beside)


def _validations(seeds: Sequence[Measured], name: str) -> tuple[list[float], list[Estimate]]:
    """The training steps that all seeds were validated at, and a number at each of them."""
    trainings = [{row["step"]: row[name] for row in run.training} for run in seeds]
    steps = sorted(set.intersection(*(set(training) for training in trainings)))
    at = [[training[step] for training in trainings] for step in steps]
    return steps, [across_seeds([Estimate(value, value, value) for value in row]) for row in at]
