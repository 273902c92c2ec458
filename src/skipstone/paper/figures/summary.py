"""One task in one row, as the paper shows it: samples, steps during training, error and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skipstone.drawing.labels import heading, label_at, label_ends, label_points
from skipstone.drawing.panels import draw_curve, fading
from skipstone.drawing.style import GREY, faded, log_ticks, new_figure, styled
from skipstone.errors import InvalidInput
from skipstone.evaluation.estimate import Estimate
from skipstone.paper.examples import Example
from skipstone.paper.figures import painting
from skipstone.paper.figures.models import MODEL_STYLES, model_colour
from skipstone.paper.groups import OURS, across_seeds, bars, by_model, columns, comparable, measure
from skipstone.paper.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINES = {"film": ("RNN", "ODE-RNN", "latent ODE"), "": ("ODE-RNN", "RNN", "latent ODE")}
"""Baselines by kind of scene, the first that there is stands beside the PC-ODE. As in the paper it
is the RNN on images, where the ODE-RNN is worse."""

STEPLESS = "latent ODE"
"""The model that reads nothing after its context."""

# Room for names below the lowest point and above the highest, as a share of the axis.
_FLOOR = 0.12
# Mean steps up to this one count as steps of one.
_NEXT = 1.05


@styled
def task_summary(example: Example, runs: Sequence[Measured]) -> Figure:
    """Samples of a baseline and of the PC-ODE, mean step during training, and error against mean
    step: a row of figures 2 and 4 of the paper. Several seeds are drawn as mean and range. The
    latent ODE, which takes no steps, is left out."""
    runs = comparable([run for run in runs if run.task == example.task and run.model != STEPLESS])
    titles = _samples(example)
    if not runs and not titles:
        raise InvalidInput(
            f"there must be a run or a prediction of {example.task} to draw; got neither."
        )
    wide = {"time": 1.5, "film": 1.9}.get(example.scene.kind, 1.0)
    widths = [wide] * len(titles) + [1.15, 1.25] * bool(runs)
    figure = new_figure(2.55 * sum(widths), 2.7)
    panels = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for panel, title in zip(panels, titles, strict=False):
        _paint_sample(panel, example, title)
    if runs:
        _paint_steps_in_training(panels[-2], runs)
        _paint_error_against_step(panels[-1], runs)
    heading(figure, example.task)
    return figure


def _samples(example: Example) -> list[str]:
    """Models whose samples are shown."""
    order = BASELINES.get(example.scene.kind, BASELINES[""])
    baseline = [title for title in order if title in example.predictions][:1]
    return baseline + [OURS] * (OURS in example.predictions)


def _paint_sample(axes: Axes, example: Example, title: str) -> None:
    axes.set_title(f"{title}, {painting.updates_text(example, title)}", color=model_colour(title))
    if example.scene.kind == "film":
        painting.paint_film(axes, example, title)
        return
    painting.prepare_example(axes, example)
    painting.paint_truth(axes, example)
    painting.paint_prediction(axes, example, title)
    if example.scene.kind == "time":
        axes.set_xlabel("time")


def _paint_steps_in_training(axes: Axes, runs: Sequence[Measured]) -> None:
    ends = []
    for title, seeds in by_model(runs).items():
        style = MODEL_STYLES[title]
        steps, lengths = _validations(seeds, "mean_step")
        if steps:
            draw_curve(axes, steps, columns(lengths), style, marker=style.marker, markersize=3.5)
            ends.append((lengths[-1].value, title, style.colour))
    axes.set_ylim(0, 1.1 * max(1.0, axes.get_ylim()[1]))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=3)
    axes.set(title="mean step", xlabel="training steps")
    label_ends(axes, ends)


def _paint_error_against_step(axes: Axes, runs: Sequence[Measured]) -> None:
    models = by_model(runs)
    axes.set(xscale="log", yscale="log")
    for title, seeds in models.items():
        _paint_constant_steps(axes, seeds)
        _paint_progress(axes, title, seeds)
    for title, seeds in models.items():
        style = MODEL_STYLES[title]
        step, error = measure(seeds, "mean_step"), measure(seeds, "sample_mse")
        axes.errorbar(
            *(step.value, error.value),
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
    axes.set(title="error against step", xlabel="mean step, observations", ylabel="sample MSE")
    # Models that all step by one would leave an axis of no length.
    shortest, longest = axes.get_xlim()
    axes.set_xlim(min(shortest, 0.85), max(longest, 2.0))
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    _name_points(axes, models)


def _paint_constant_steps(axes: Axes, seeds: Sequence[Measured]) -> None:
    """Error against mean step of rollouts with constant steps, if they were measured."""
    curves = [run.evaluation["constant_steps"] for run in seeds]
    if not all(curves):
        return
    points = list(zip(*curves, strict=False))
    x, y = (
        [across_seeds([point[name] for point in seeds]).value for seeds in points]
        for name in ("mean_step", "sample_mse")
    )
    # Steps beyond half of what there is to predict all end up with the same two updates.
    curve = [(x[i], y[i]) for i in range(len(x)) if i == 0 or x[i] > 1.01 * x[i - 1]]
    axes.plot(*zip(*curve, strict=True), color=GREY, lw=1.2, marker=".", markersize=4, zorder=1)
    top = max(curve, key=lambda point: point[1])
    align = "right" if top == curve[-1] else "center"
    label_at(axes, top, "constant steps", GREY, (0, 5), ha=align, va="bottom")


def _paint_progress(axes: Axes, title: str, seeds: Sequence[Measured]) -> None:
    """The validations of a training, from light to dark, and a line to where it ended."""
    style = MODEL_STYLES[title]
    steps, lengths = _validations(seeds, "mean_step")
    _, errors = _validations(seeds, "validation_error")
    # Validations are in scaled units.
    variance = seeds[0].variance
    if not steps:
        return
    x, y = [one.value for one in lengths], [variance * one.value for one in errors]
    final = measure(seeds, "mean_step").value, measure(seeds, "sample_mse").value
    axes.plot([*x, final[0]], [*y, final[1]], color=faded(style.colour, 0.3), lw=1, zorder=2)
    shades = fading(style.colour, np.array(steps), painting.PALEST)
    axes.scatter(x, y, s=16, marker=style.marker, c=shades, lw=0, zorder=3)


def _name_points(axes: Axes, models: dict[str, list[Measured]]) -> None:
    """Label the points where trainings ended.

    Models that step by one are labelled to the right; the others below, clear of their training.
    """
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** _FLOOR, high * (high / low) ** _FLOOR)
    beside = []
    for title, seeds in models.items():
        step, error = measure(seeds, "mean_step").value, measure(seeds, "sample_mse").value
        colour = model_colour(title)
        if step < _NEXT:
            beside.append((error, title, colour))
        else:
            label_at(axes, (step, error), title, colour, (-5, -7), va="top", zorder=6)
    label_points(axes, 1.0, beside)


def _validations(seeds: Sequence[Measured], name: str) -> tuple[list[float], list[Estimate]]:
    """The training steps that all seeds were validated at, and a number at each of them."""
    trainings = [{row["step"]: row[name] for row in run.training} for run in seeds]
    steps = sorted(set.intersection(*(set(training) for training in trainings)))
    at = [[training[step] for training in trainings] for step in steps]
    return steps, [across_seeds([Estimate(value, value, value) for value in row]) for row in at]
