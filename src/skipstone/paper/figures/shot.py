"""One planned shot: what a model imagined, and what truly happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from skipstone.drawing import panels
from skipstone.drawing.labels import key, legend_below
from skipstone.drawing.style import GREY, INK, animate, ball_colour, faded, look, new_figure, styled
from skipstone.models.base import Model
from skipstone.paper.examples import FINE, Prediction
from skipstone.paper.figures.sheets import ARROW
from skipstone.paper.tasks.billiards import Motion
from skipstone.paper.tasks.shots import (
    AFTER_SHOT,
    CUE,
    POCKET_RADIUS,
    SHOTS,
    SPACING,
    play,
    pocket_distance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES_PER_SECOND = 20
"""Speed of the animation: one observation a frame, so that a shot takes about two seconds."""

PAUSE = 20
"""Frames for which the end stays in view."""

SCENE = SHOTS.scene(SHOTS.options)
"""The pool table."""

_UPDATE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "markeredgecolor": INK}


@dataclass(frozen=True)
class Shot:
    """A table, what truly happened on it after a shot, and what a model predicted."""

    table: Float[np.ndarray, "2 2"]
    motion: Motion | None = None
    imagined: Prediction | None = None
    """Its time 0 is when the cue ball is struck."""


def planned_shot(model: Model[Any], table: Any, action: Any) -> Shot:
    """Play a shot, and let a model imagine it."""
    # Imported here: the pool's package imports this module.
    from skipstone.paper.pool.game import checked_model, checked_shots, checked_tables, imagine

    model = checked_model(model)
    table, action = checked_tables([table])[0], checked_shots([action])[0]
    with torch.inference_mode():
        path = imagine(model, table[None], torch.as_tensor(action[None], dtype=torch.float32))
        times = torch.linspace(0, AFTER_SHOT * SPACING, FINE * AFTER_SHOT + 1, dtype=torch.float64)
        start, knots = path.start.cpu(), path.knots[0, : int(path.num_updates[0])].cpu()
        values = path.evaluate((start + times).clamp(max=path.end.cpu()))[0].cpu()
    imagined = Prediction(times.numpy(), values.numpy(), (knots - start).numpy())
    return Shot(table, play(table[None], action[None]), imagined)


@styled
def draw_shot(shot: Shot) -> Figure:
    """The whole shot in one picture."""
    figure, axes = _stage(shot)
    paint_shot(axes, shot)
    return figure


def animate_shot(shot: Shot) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """The shot as it happens, observation by observation."""
    with look():
        figure, axes = _stage(shot)
    moments = SPACING * np.arange(AFTER_SHOT + 1)
    yield from animate(figure, moments, lambda moment: paint_shot(axes, shot, moment), PAUSE)


def paint_shot(axes: Axes, shot: Shot, moment: float = AFTER_SHOT * SPACING) -> None:
    """A shot up to `moment`: truth broad and pale, imagination thin and dark, with a dot where the
    model updated."""
    panels.prepare_panel(axes, SCENE)
    panels.draw_pocket(axes, SCENE)
    true = shot.table[None] if shot.motion is None else _true_path(shot.motion, moment)
    for ball in range(2):
        colour, path = ball_colour(ball), true[:, ball]
        if shot.motion is not None:
            axes.plot(*path.T, color=faded(colour, 0.3), lw=5)
        panels.draw_rolled(axes, SCENE, path, colour)
        if shot.imagined is not None:
            _paint_imagined(axes, shot.imagined.until(moment), ball)
    if shot.motion is not None:
        panels.draw_arrow(axes, shot.table[CUE], ARROW * shot.motion.velocities[0, CUE])


def _paint_imagined(axes: Axes, imagined: Prediction, ball: int) -> None:
    path = SCENE.paths(imagined.values)[ball]
    updates = SCENE.paths(imagined.at(imagined.knots))[ball]
    axes.plot(*path.T, color=ball_colour(ball), lw=1.2)
    axes.plot(*updates.T, linestyle="", color="white", zorder=5, **_UPDATE)
    panels.draw_ball(axes, SCENE, path[-1], edge=INK, lw=0.9, linestyle=(0, (3, 2)))


def _true_path(motion: Motion, moment: float) -> Float[np.ndarray, "moments 2 2"]:
    """The polyline up to `moment`, with a corner at each collision."""
    events = motion.events.times
    times = np.concatenate([[0.0], events[events < moment], [min(moment, motion.duration)]])
    return motion.state_at(times)[0][0]


def _stage(shot: Shot) -> tuple[Figure, Axes]:
    figure = new_figure(4.2, 4.9)
    axes = figure.subplots()
    handles = [key("what happened", faded(GREY, 0.5), linewidth=5)]
    if shot.imagined is not None:
        handles.append(key("as imagined", GREY, linewidth=1.2))
        handles.append(key(f"{len(shot.imagined.knots)} updates", "white", **_UPDATE))
    legend_below(figure, handles)
    if shot.motion is not None:
        distance = float(pocket_distance(shot.motion)[0])
        outcome = "in" if distance < POCKET_RADIUS else "missed"
        title = f"{outcome}: closest to the pocket {distance:.3f}"
        figure.suptitle(title, x=0.02, ha="left", fontsize=10)
    return figure, axes
