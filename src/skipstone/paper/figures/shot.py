"""One planned shot: what a model imagined, and what truly happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from skipstone.drawing.style import (
    FAINT,
    GREY,
    INK,
    ball_colour,
    faded,
    look,
    new_figure,
    pixels,
    wipe,
)
from skipstone.models.base import Model
from skipstone.paper.figures.panels import prepare_plane
from skipstone.paper.pool.game import checked_model, checked_shots, checked_tables, imagine
from skipstone.paper.tasks.billiards import RADIUS, Motion
from skipstone.paper.tasks.shots import (
    AFTER_SHOT,
    CUE,
    POCKET,
    POCKET_RADIUS,
    SHOTS,
    SPACING,
    play,
    pocket_distance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FINE = 8
"""Points of a drawn path between two observations."""

FRAMES_PER_SECOND = 20
"""Speed of the animation: one observation a frame, so that a shot takes about two seconds."""

PAUSE = 20
"""Frames for which the end stays in view."""

Balls = Float[np.ndarray, "moments 2 2"]


@dataclass(frozen=True)
class Imagined:
    """A path as a model sees it; time 0 is when the cue ball is struck."""

    times: Float[np.ndarray, " moments"]
    positions: Balls
    knots: Float[np.ndarray, " updates"]
    """When the model updated."""
    at_knots: Float[np.ndarray, "updates 2 2"]
    """Where it had the balls then."""


@dataclass(frozen=True)
class Shot:
    """A table, what truly happened on it after a shot, and what was expected to."""

    table: Float[np.ndarray, "2 2"]
    motion: Motion | None = None
    imagined: Imagined | None = None


def planned_shot(model: Model[Any], table: Any, action: Any) -> Shot:
    """Play a shot, and let a model imagine it."""
    model = checked_model(model)
    table, action = checked_tables([table])[0], checked_shots([action])[0]
    with torch.inference_mode():
        path = imagine(model, table[None], torch.as_tensor(action[None], dtype=torch.float32))
        times = torch.linspace(0, AFTER_SHOT * SPACING, FINE * AFTER_SHOT + 1, dtype=torch.float64)
        start, knots = path.start.cpu(), path.knots[0, : int(path.num_updates[0])].cpu()
        positions = path.evaluate((start + times).clamp(max=path.end.cpu()))[0]
        at_knots = path.evaluate(knots)[0]
    imagined = Imagined(
        times.numpy(),
        positions.reshape(-1, 2, 2).cpu().numpy(),
        (knots - start).numpy(),
        at_knots.reshape(-1, 2, 2).cpu().numpy(),
    )
    return Shot(table, play(table[None], action[None]), imagined)


def draw_shot(shot: Shot) -> Figure:
    """The whole shot in one picture."""
    with look():
        figure, axes = _stage(shot)
        paint_shot(axes, shot)
        figure.canvas.draw()
    return figure


def animate_shot(shot: Shot) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """The shot as it happens, observation by observation."""
    with look():
        figure, axes = _stage(shot)
        for count in range(AFTER_SHOT + PAUSE + 1):
            wipe(axes)
            paint_shot(axes, shot, SPACING * min(count, AFTER_SHOT))
            yield pixels(figure)
            # Panels must not move, and laying them out takes longer than drawing them.
            figure.set_layout_engine("none")


def paint_shot(axes: Axes, shot: Shot, moment: float = AFTER_SHOT * SPACING) -> None:
    """A shot as far as it has come by `moment`: truth broad and pale, imagination thin and dark,
    with a dot where the model updated."""
    from matplotlib.patches import Circle

    prepare_plane(axes, SHOTS.scene(SHOTS.options), np.zeros(2), np.ones(2))
    axes.add_patch(Circle(POCKET, POCKET_RADIUS, facecolor=FAINT, edgecolor=GREY, lw=0.8))
    true = shot.table[None] if shot.motion is None else _true_path(shot.motion, moment)
    for ball in range(2):
        colour = ball_colour(ball)
        if shot.motion is not None:
            axes.plot(*true[:, ball].T, color=faded(colour, 0.3), lw=5)
            rim = faded(colour, 0.45)
            axes.add_patch(Circle(true[0, ball], RADIUS, fill=False, edgecolor=rim, lw=0.9))
        fill = (*faded(colour, 0.75), 0.85)
        axes.add_patch(Circle(true[-1, ball], RADIUS, facecolor=fill, edgecolor=colour))
        if shot.imagined is not None:
            _paint_imagined(axes, shot.imagined, ball, moment)
    if shot.motion is not None:
        start = shot.table[CUE]
        axes.annotate(
            "",
            xytext=start,
            xy=start + 0.15 * shot.motion.velocities[0, CUE],
            arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0},
            zorder=6,
        )


def _paint_imagined(axes: Axes, imagined: Imagined, ball: int, moment: float) -> None:
    from matplotlib.patches import Circle

    colour = ball_colour(ball)
    path = imagined.positions[imagined.times <= moment + 1e-9, ball]
    axes.plot(*path.T, color=colour, lw=1.2)
    seen = imagined.at_knots[imagined.knots <= moment + 1e-9, ball]
    axes.plot(*seen.T, "o", markersize=3.5, color="white", markeredgecolor=INK, zorder=5)
    axes.add_patch(
        Circle(path[-1], RADIUS, fill=False, edgecolor=INK, lw=0.9, linestyle=(0, (3, 2)))
    )


def _true_path(motion: Motion, moment: float) -> Balls:
    """Corners included: observations alone would cut them."""
    events = motion.events.times
    times = np.concatenate([[0.0], events[events < moment], [min(moment, motion.duration)]])
    return motion.state_at(times)[0][0]


def _stage(shot: Shot) -> tuple[Figure, Axes]:
    from matplotlib.lines import Line2D

    figure = new_figure(4.2, 4.9)
    axes = figure.subplots()
    handles = [Line2D([], [], color=faded(GREY, 0.5), linewidth=5, label="what happened")]
    if shot.imagined is not None:
        handles.append(Line2D([], [], color=GREY, linewidth=1.2, label="as imagined"))
        dot = Line2D([], [], linestyle="", marker="o", markersize=3.5, markeredgecolor=INK)
        dot.set(color="white", label=f"{len(shot.imagined.knots)} updates")
        handles.append(dot)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    if shot.motion is not None:
        distance = float(pocket_distance(shot.motion)[0])
        outcome = "in" if distance < POCKET_RADIUS else "missed"
        figure.suptitle(
            f"{outcome}: closest to the pocket {distance:.3f}", x=0.02, ha="left", fontsize=10
        )
    return figure, axes
