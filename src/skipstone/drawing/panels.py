"""What panels are made of: paths, balls, marks, images, steps, and curves with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Num

from skipstone.drawing.scene import Scene
from skipstone.drawing.style import FAINT, GREY, GROUND, INK, Style, bare, faded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALEST = 0.12
"""Strength of a path's colour where it begins; it ends at 1."""

# Pieces of a dashed line that are drawn, and that are not.
_DASH, _GAP = 3, 2

# Width of an image as a share of the distance to the next one.
_IMAGE = 0.92


def prepare_panel(
    axes: Axes, scene: Scene, end: float = 1.0, points: np.ndarray | None = None
) -> None:
    """Set up axes for a scene: time up to `end`, the plane around `points`, or an image. Over time,
    `points` are values that need not lie between 0 and 1."""
    if scene.kind == "time":
        axes.set(xlim=(0, end), ylim=(0, 1), yticks=[0, 1])
        if points is not None:
            axes.set_ylim(points.min(), points.max())
            axes.set_yticks(np.linspace(*axes.get_ylim(), 3).round(2))
        return
    low, high = scene.limits(np.zeros((1, 2)) if points is None else points)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    bare(axes)
    axes.set_facecolor(GROUND)
    for spine in axes.spines.values():
        # The walls of a table are part of the picture; in the open the frame only separates.
        spine.set(visible=True, edgecolor=GREY if scene.radius else FAINT)


def places(
    times: Float[np.ndarray, " moments"], path: Float[np.ndarray, "moments axis"]
) -> tuple[np.ndarray, np.ndarray]:
    """x and y of a path in its panel: a ball on a line is drawn over time."""
    return (times, path[:, 0]) if path.shape[1] == 1 else (path[:, 0], path[:, 1])


def draw_pocket(axes: Axes, scene: Scene) -> None:
    """The pocket of a table, if it has one."""
    if scene.pocket is not None:
        x, y, radius = scene.pocket
        _circle(axes, (x, y), radius, fill=FAINT, edge=GREY, lw=0.8)


def draw_ball(
    axes: Axes,
    scene: Scene,
    centre: np.ndarray,
    *,
    fill: Any = "none",
    edge: Any = "none",
    **options: Any,
) -> None:
    """A ball as a disc or a ring; nothing where balls are points or drawn over time."""
    if scene.kind == "plane" and scene.radius is not None:
        _circle(axes, centre, scene.radius, fill=fill, edge=edge, **options)


def draw_rolled(axes: Axes, scene: Scene, path: np.ndarray, colour: str) -> None:
    """A ball that rolled: a pale ring where its path begins, a disc where it ends."""
    if len(path) > 1:
        draw_ball(axes, scene, path[0], edge=faded(colour, 0.45), lw=0.9)
    draw_ball(axes, scene, path[-1], fill=(*faded(colour, 0.75), 0.85), edge=colour)


def draw_arrow(axes: Axes, start: np.ndarray, along: np.ndarray) -> None:
    """An arrow for a velocity."""
    arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", tuple(start + along), xytext=tuple(start), arrowprops=arrow, zorder=6)


def draw_marks(axes: Axes, places: Float[np.ndarray, "marks 2"], fill: str) -> None:
    """Small black rings, filled with a colour."""
    edge: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.9}
    (marks,) = axes.plot(
        *places.T, "o", markersize=4, markerfacecolor=fill, zorder=5, clip_on=False, **edge
    )
    # Marks may stick out of their panel; it should not shrink for them.
    marks.set_in_layout(False)


def draw_meetings(axes: Axes, pairs: Float[np.ndarray, "2 meetings 2"]) -> None:
    """A dot for each pair of balls that met, on a line between their centres."""
    axes.plot(*np.moveaxis(pairs, -1, 0), color=INK, lw=0.9, zorder=4)
    draw_marks(axes, pairs.mean(axis=0), INK)


def draw_updates(axes: Axes, x: np.ndarray, y: np.ndarray, colours: Sequence[Any]) -> None:
    """Dots where a model updates."""
    axes.scatter(x, y, s=16, c=colours, edgecolors="white", linewidths=0.4, zorder=6)


def draw_fading(
    axes: Axes,
    times: Float[np.ndarray, " moments"],
    path: Float[np.ndarray, "moments 2"],
    colour: str,
    *,
    width: float = 1.8,
    palest: float = PALEST,
    dashed: bool = False,
) -> None:
    """A path in the plane, from light to dark as time passes."""
    from matplotlib.collections import LineCollection

    pieces = np.stack([path[:-1], path[1:]], axis=1)
    shades = fading(colour, times, palest)[1:]
    drawn: Bool[np.ndarray, " pieces"] = np.arange(len(pieces)) % (_DASH + _GAP) < _DASH
    if not dashed:
        drawn[:] = True
    lines = LineCollection(
        list(pieces[drawn]),
        colors=[shade for shade, one in zip(shades, drawn, strict=True) if one],
        linewidths=width,
        capstyle="round",
    )
    axes.add_collection(lines, autolim=False)


def fading(
    colour: str,
    times: Float[np.ndarray, " moments"],
    palest: float = PALEST,
    now: float | None = None,
) -> list[tuple[float, float, float]]:
    """Shades of a colour from light at time 0 to full at `now`, the last of the times if None."""
    now = float(times[-1]) if now is None else now
    # At a video's first moment no time has passed yet; by rounding one can lie ahead of now.
    shares = np.minimum(times / max(now, np.finfo(float).tiny), 1)
    return [faded(colour, palest + (1 - palest) * share) for share in shares]


def show_image(
    axes: Axes,
    image: Num[np.ndarray, " pixels"],
    extent: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0),
) -> None:
    """A square grey image, of bytes or of shares of 1, between left, right, bottom and top."""
    side = int(np.sqrt(len(image)))
    most = 255 if image.dtype == np.uint8 else 1
    square = image.reshape(side, side)
    axes.imshow(square, extent=extent, cmap="gray", vmin=0, vmax=most, interpolation="nearest")


def film_strip(
    axes: Axes,
    times: Float[np.ndarray, " images"],
    rows: Sequence[Num[np.ndarray, "images pixels"]],
    room: tuple[float, float],
) -> tuple[float, float]:
    """Rows of images, the first at the bottom, each image centred at its time, and a line below
    for marks. `room` is left of the first and right of the last time, in images.

    Return the width of an image and the y of the line.
    """
    apart = float(np.diff(times).min())
    width = _IMAGE * apart
    for row, images in enumerate(rows):
        for time, image in zip(times, images, strict=True):
            bottom = row * apart
            show_image(axes, image, (time - width / 2, time + width / 2, bottom, bottom + width))
    below = -0.2 * width
    left, right = times[0] - room[0] * width, times[-1] + room[1] * width
    top = (len(rows) - 1) * apart + width
    axes.set(xlim=(left, right), ylim=(2 * below, top), aspect="equal")
    bare(axes)
    return width, below


def prepare_steps(axes: Axes, end: float) -> None:
    """Set up axes for `draw_steps` and `draw_ticks`."""
    axes.set(xlim=(0, end), ylim=(0, 1))
    bare(axes)


def draw_steps(axes: Axes, knots: Float[np.ndarray, " updates"], end: float, colour: str) -> None:
    """A bar from each update to the next, dark and light in turns."""
    if len(knots):
        shades = [faded(colour, 1.0 if turn % 2 == 0 else 0.4) for turn in range(len(knots))]
        widths = np.diff(np.append(knots, end))
        axes.bar(knots, 0.5, widths, align="edge", color=shades, lw=0)


def draw_ticks(axes: Axes, times: Float[np.ndarray, " events"]) -> None:
    """A tick above the steps for each event."""
    axes.vlines(times, 0.66, 1.0, color=INK, lw=0.9)


def draw_curve(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    interval: tuple[Sequence[float], Sequence[float], Sequence[float]],
    style: Style,
    **options: Any,
) -> None:
    """A line in a band, from the lower ends, values and upper ends of an interval."""
    low, value, high = interval
    axes.fill_between(x, low, high, color=faded(style.colour, 0.2), lw=0)
    axes.plot(x, value, color=style.colour, linestyle=style.line, **options)


def _circle(
    axes: Axes, centre: Any, radius: float, *, fill: Any, edge: Any, **options: Any
) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(centre, radius, facecolor=fill, edgecolor=edge, **options))
