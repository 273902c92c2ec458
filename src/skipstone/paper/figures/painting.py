"""An `Example` in a panel: what happens faint below, what a model predicts on top of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from skipstone.drawing.style import GREY, INK, bare, faded, series_styles
from skipstone.paper.examples import Example, Prediction
from skipstone.paper.figures.panels import (
    fading_line,
    film_row,
    plane_limits,
    prepare_plane,
    prepare_time,
    show_image,
    strengths,
)
from skipstone.paper.tasks.base import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH = "#D2D2D2"
"""The line of what happens: broad, and just dark enough to be followed."""

SHOWN = ("RNN", "ODE-RNN", "PC-ODE")
"""Whose predictions are shown side by side, from left to right."""

FLASH = 1.5
"""How long an update is seen to flash in a video, in observations."""

FRAMES = 6
"""Images of a film in one panel."""

# Moments that are drawn, and moments that are not, of a dashed line.
_DASH, _GAP = 3, 2

PALEST = 0.25
"""How strong a colour is where time, or training, begins."""

# Times this much later than a moment are rounding.
_SLACK = 1e-9


def count_updates(prediction: Prediction, until: float = np.inf) -> int:
    """Cell updates up to a moment."""
    return int((prediction.knots <= until + _SLACK).sum())


def updates_text(count: int) -> str:
    """A number of updates in words."""
    return "1 update" if count == 1 else f"{count} updates"


def model_colour(title: str) -> str:
    """The colour of one model."""
    return series_styles([title])[title].colour


def prepare_panel(axes: Axes, example: Example) -> None:
    """Axes for an example: time, the plane, or an image."""
    if example.scene.kind == "time":
        prepare_time(axes, float(example.moments[-1]))
    elif example.scene.kind == "plane":
        points = example.track.reshape(-1, 2)
        prepare_plane(axes, example.scene, *plane_limits(example.scene, points))
    else:
        prepare_plane(axes, example.scene, np.zeros(2), np.ones(2))


def paint_truth(axes: Axes, example: Example, until: float = np.inf, colour: str = TRUTH) -> None:
    """The true path of every ball as far as it has come, and black dots for the observations that
    models are given."""
    shown = example.moments <= until + _SLACK
    times = example.moments[shown]
    for path in _balls(example, example.track[shown]):
        axes.plot(*_places(times, path), color=colour, lw=3.5, zorder=1)
        _paint_ball(axes, example, path, colour, filled=True)
    given = slice(0, int((example.times[:CONTEXT] <= until + _SLACK).sum()))
    for path in _balls(example, example.values[given]):
        axes.plot(*_places(example.times[given], path), "o", color=INK, markersize=3, zorder=7)


def paint_prediction(axes: Axes, example: Example, title: str, until: float = np.inf) -> None:
    """A model's path as far as it has come: dashed, from light to dark in the plane, with a dot on
    every ball where the cell updates."""
    prediction, colour = example.predictions[title], model_colour(title)
    shown = prediction.times <= until + _SLACK
    knots = prediction.knots[: count_updates(prediction, until)]
    times = prediction.times[shown]
    for path in _balls(example, prediction.values[shown]):
        if example.scene.kind == "time":
            axes.plot(times, path[:, 0], color=colour, lw=1.2, linestyle=(0, (2.5, 1.2)), zorder=3)
        elif len(path):
            dashes = _dashes(len(path))
            fading_line(axes, times, path, colour, width=1.4, palest=PALEST, drawn=dashes)
            _paint_ball(axes, example, path, colour, filled=False)
    if len(knots):
        strong = strengths(knots, min(until, float(prediction.times[-1])), PALEST)
        if example.scene.kind == "time":
            strong = np.ones_like(knots)
        colours = [faded(colour, age) for age in strong]
        for path in _balls(example, prediction.at(knots)):
            places = _places(knots, path)
            axes.scatter(*places, s=16, c=colours, edgecolors="white", linewidths=0.4, zorder=6)


def _paint_ball(
    axes: Axes, example: Example, path: Float[np.ndarray, "moments axis"], colour: str, filled: bool
) -> None:
    """The ball itself where its path ends, on a table."""
    from matplotlib.patches import Circle

    radius = example.scene.radius
    if radius is None or example.scene.kind != "plane" or not len(path):
        return
    fill = (*faded(colour, 0.8), 0.7) if filled else "none"
    edge = "none" if filled else colour
    axes.add_patch(Circle(path[-1], radius, facecolor=fill, edgecolor=edge, lw=1.1, zorder=2))


def paint_steps(axes: Axes, example: Example, title: str, until: float = np.inf) -> None:
    """The steps of a model on a line of time: a bar from each update to the next, dark and light
    in turns; before them the given observations, above them a tick for every collision."""
    prediction, colour = example.predictions[title], model_colour(title)
    knots = prediction.knots[: count_updates(prediction, until)]
    end = min(until, float(prediction.times[-1]))
    if len(knots):
        widths = np.diff(np.append(knots, end))
        shades = [faded(colour, 1.0 if turn % 2 == 0 else 0.4) for turn in range(len(knots))]
        axes.bar(knots, 0.5, widths, align="edge", color=shades, lw=0)
    seen = example.times[:CONTEXT]
    seen = seen[seen <= until + _SLACK]
    axes.plot(seen, np.full(len(seen), 0.25), "o", color=INK, markersize=2.5, clip_on=False)
    paint_collisions(axes, example, until)


def paint_collisions(axes: Axes, example: Example, until: float = np.inf) -> None:
    """A tick for every collision, on axes for steps."""
    happened = example.events.times[example.events.times <= until]
    axes.vlines(happened, 0.66, 1.0, color=INK, lw=0.9)


def prepare_steps(axes: Axes, example: Example) -> None:
    """Axes for `paint_steps`."""
    axes.set_xlim(0, float(example.moments[-1]))
    axes.set_ylim(0, 1)
    bare(axes)


def paint_now(axes: Axes, example: Example, title: str | None, moment: float) -> None:
    """How far things have come: what happens (for None), or what a model predicts of it."""
    if example.scene.kind == "film":
        pixels = example.track[np.searchsorted(example.moments, moment + _SLACK) - 1]
        if title is not None and moment >= example.predictions[title].times[0]:
            pixels = np.clip(example.predictions[title].at(np.array([moment]))[0], 0, 1)
        show_image(axes, pixels)
    else:
        paint_truth(axes, example, moment, GREY if title is None else TRUTH)
        if title is not None:
            paint_prediction(axes, example, title, moment)


def paint_flash(axes: Axes, example: Example, title: str, moment: float) -> None:
    """A halo around the balls where the last update was, that soon fades; of an image, a frame."""
    prediction, colour = example.predictions[title], model_colour(title)
    done = prediction.knots[: count_updates(prediction, moment)]
    spacing = (example.times[-1] - example.times[0]) / (len(example.times) - 1)
    since = (moment - done[-1]) / (FLASH * spacing) if len(done) else 1.0
    strength = float(np.clip(1 - since, 0, 1))
    if example.scene.kind == "film":
        for spine in axes.spines.values():
            spine.set(edgecolor=faded(colour, strength), linewidth=3)
    elif strength > 0:
        for path in _balls(example, prediction.at(done[-1:])):
            places = _places(done[-1:], path)
            axes.scatter(*places, s=160, color=colour, alpha=0.55 * strength, lw=0, zorder=4)


def paint_film(axes: Axes, example: Example, title: str) -> None:
    """A few images: what happens in the upper row, a prediction in the lower one, and below them
    the given observations and the updates on the same line of time."""
    prediction, colour = example.predictions[title], model_colour(title)
    times = np.linspace(prediction.times[0], prediction.times[-1], FRAMES)
    true = example.track[np.abs(example.moments[:, None] - times).argmin(axis=0)]
    width = film_row(axes, times, true, row=1)
    film_row(axes, times, np.clip(prediction.at(times), 0, 1))
    below = -0.2 * width
    seen = example.times[:CONTEXT]
    axes.plot(seen, np.full(CONTEXT, below), "o", color=INK, markersize=2.5)
    knots = prediction.knots
    axes.plot(knots, np.full(len(knots), below), "o", color=colour, markersize=3)
    for row, name in enumerate((title, "truth")):
        height = (row + 0.46) * width / 0.92
        axes.text(
            times[0] - 0.6 * width, height, name, ha="right", va="center", rotation=90, fontsize=8
        )
    axes.set_xlim(times[0] - width, times[-1] + 0.6 * width)
    axes.set_ylim(2 * below, 2.1 * width)
    axes.set_aspect("equal")
    bare(axes)


def _dashes(moments: int) -> Bool[np.ndarray, " pieces"]:
    """Which of the pieces between moments a dashed line has."""
    return np.arange(max(moments - 1, 0)) % (_DASH + _GAP) < _DASH


def _balls(
    example: Example, values: Float[np.ndarray, "moments dim"]
) -> list[Float[np.ndarray, "moments axis"]]:
    """The paths of the balls, one after the other."""
    axes = 1 if example.scene.kind == "time" else 2
    return list(np.moveaxis(values.reshape(len(values), values.shape[1] // axes, axes), 1, 0))


def _places(
    times: Float[np.ndarray, " moments"], path: Float[np.ndarray, "moments axis"]
) -> tuple[np.ndarray, np.ndarray]:
    """Where in a panel: a ball on a line is drawn over time."""
    return (times, path[:, 0]) if path.shape[1] == 1 else (path[:, 0], path[:, 1])
