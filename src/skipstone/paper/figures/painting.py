"""An `Example` in a panel: what happens faint below, what a model predicts on top of it.

Functions paint an example as far as it goes; `example.until(moment)` is one frame of a video.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skipstone.drawing import panels
from skipstone.drawing.style import GREY, INK, faded
from skipstone.errors import InvalidInput
from skipstone.paper.examples import Example
from skipstone.paper.figures.models import SHOWN, model_colour
from skipstone.paper.tasks.base import CONTEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH = "#D2D2D2"
"""Line of what happens: broad, and just dark enough to be followed."""

FLASH = 1.5
"""How long an update flashes in a video, in observations."""

FRAMES = 6
"""Images of a film in one panel."""

PALEST = 0.25
"""Strength of a prediction's colour where it begins."""


def shown_models(example: Example) -> list[str]:
    """The models of an example that are shown side by side."""
    titles = [title for title in SHOWN if title in example.predictions]
    if not titles:
        raise InvalidInput(f"there must be a prediction of {' or '.join(SHOWN)} to show; got none.")
    return titles


def updates_text(example: Example, title: str) -> str:
    """The number of a model's updates in words."""
    count = len(example.predictions[title].knots)
    return "1 update" if count == 1 else f"{count} updates"


def name_panel(axes: Axes, example: Example, title: str) -> None:
    """The model's name above a panel, and its number of updates at the right."""
    colour = model_colour(title)
    axes.set_title(title, color=colour, fontweight="bold")
    axes.set_title(updates_text(example, title), loc="right", color=colour)


def prepare_example(axes: Axes, example: Example) -> None:
    """Set up axes for an example: time, the plane, or an image."""
    points = example.track.reshape(-1, 2) if example.scene.kind == "plane" else None
    panels.prepare_panel(axes, example.scene, float(example.moments[-1]), points)


def paint_truth(axes: Axes, example: Example, colour: str = TRUTH) -> None:
    """The true path of every ball, and black dots for the observations that models are given."""
    for path in example.scene.paths(example.track):
        axes.plot(*panels.places(example.moments, path), color=colour, lw=3.5, zorder=1)
        panels.draw_ball(axes, example.scene, path[-1], fill=(*faded(colour, 0.8), 0.7), zorder=2)
    for path in example.scene.paths(example.values[:CONTEXT]):
        given = panels.places(example.times[:CONTEXT], path)
        axes.plot(*given, "o", color=INK, markersize=3, zorder=7)


def paint_prediction(axes: Axes, example: Example, title: str) -> None:
    """A model's path: dashed, from light to dark in the plane, with a dot on every ball where the
    model updates."""
    prediction, colour, scene = example.predictions[title], model_colour(title), example.scene
    times, knots, over_time = prediction.times, prediction.knots, scene.kind == "time"
    if not len(times):
        return
    for path in scene.paths(prediction.values):
        if over_time:
            axes.plot(times, path[:, 0], color=colour, lw=1.2, linestyle=(0, (2.5, 1.2)), zorder=3)
        else:
            panels.draw_fading(axes, times, path, colour, width=1.4, palest=PALEST, dashed=True)
            panels.draw_ball(axes, scene, path[-1], edge=colour, lw=1.1, zorder=2)
    shades = panels.fading(colour, knots, 1.0 if over_time else PALEST, now=times[-1])
    for path in scene.paths(prediction.at(knots)):
        panels.draw_updates(axes, *panels.places(knots, path), shades)


def paint_steps(axes: Axes, example: Example, title: str | None) -> None:
    """A tick for every collision; below them, for a model, a bar for each of its steps after dots
    for the given observations."""
    panels.draw_ticks(axes, example.events.times)
    if title is None:
        return
    panels.draw_steps(
        axes, example.predictions[title].knots, example.moments[-1], model_colour(title)
    )
    given = example.times[:CONTEXT]
    axes.plot(given, np.full(len(given), 0.25), "o", color=INK, markersize=2.5, clip_on=False)


def paint_now(axes: Axes, example: Example, title: str | None) -> None:
    """The state at the end of an example, with the way there: what happens (for None), or what a
    model predicts of it."""
    if example.scene.kind == "film":
        predicted = example.track[:0] if title is None else example.predictions[title].values
        shown = predicted if len(predicted) else example.track
        panels.show_image(axes, np.clip(shown[-1], 0, 1))
        return
    paint_truth(axes, example, GREY if title is None else TRUTH)
    if title is not None:
        paint_prediction(axes, example, title)


def paint_flash(axes: Axes, example: Example, title: str) -> None:
    """A halo around the balls, or around an image, that fades after the last update."""
    prediction, colour = example.predictions[title], model_colour(title)
    last, strength = prediction.knots[-1:], 0.0
    if len(last):
        age = float(example.moments[-1] - last[0]) / (FLASH * example.spacing)
        strength = min(max(1 - age, 0.0), 1.0)
    if example.scene.kind == "film":
        for spine in axes.spines.values():
            spine.set(edgecolor=faded(colour, strength), linewidth=3)
    elif strength > 0:
        for path in example.scene.paths(prediction.at(last)):
            halo = panels.places(last, path)
            axes.scatter(*halo, s=160, color=colour, alpha=0.55 * strength, lw=0, zorder=4)


def paint_film(axes: Axes, example: Example, title: str) -> None:
    """A few images: what happens in the upper row, a prediction in the lower one, and below them
    the given observations and the updates on the same line of time."""
    prediction = example.predictions[title]
    times = np.linspace(prediction.times[0], prediction.times[-1], FRAMES)
    true = example.track[np.abs(example.moments[:, None] - times).argmin(axis=0)]
    rows = {title: np.clip(prediction.at(times), 0, 1), "truth": true}
    width, below = panels.film_strip(axes, times, list(rows.values()), room=(1.0, 0.6))
    given, knots = example.times[:CONTEXT], prediction.knots
    axes.plot(given, np.full(len(given), below), "o", color=INK, markersize=2.5)
    axes.plot(knots, np.full(len(knots), below), "o", color=model_colour(title), markersize=3)
    for row, name in enumerate(rows):
        height = row * np.diff(times)[0] + width / 2
        place = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 8}
        axes.text(times[0] - 0.6 * width, height, name, **place)
