"""One trajectory in one panel: over time, in the plane, or as a film strip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Num

from skipstone.drawing.style import FAINT, GREY, INK, TABLE, ball_colour, bare, faded
from skipstone.paper.figures.track import Track
from skipstone.paper.tasks.base import Scene
from skipstone.paper.tasks.events import Events, Kind
from skipstone.paper.tasks.recording import Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAMES = 15
"""Most images in a film strip."""

PALEST = 0.12
"""How strong the colour of a path is at its beginning; it ends at 1."""


def prepare_time(axes: Axes, end: float) -> None:
    """Axes for balls on a line: time to the right, the line upwards."""
    axes.set_xlim(0, end)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1])


def draw_time(axes: Axes, track: Track, scene: Scene) -> None:
    """Balls on a line over time, each a band as wide as itself."""
    radius = scene.radius or 0.0
    for ball in range(track.positions.shape[1]):
        y, colour = track.positions[:, ball, 0], ball_colour(ball)
        axes.fill_between(track.times, y - radius, y + radius, color=faded(colour, 0.18), lw=0)
        axes.plot(track.times, y, color=colour)
        axes.plot(track.times[track.seen], y[track.seen], ".", color=colour, markersize=2.5)
    times = np.repeat(track.events.times[:, None, None], track.positions.shape[1], axis=1)
    _mark_collisions(axes, track.events, np.concatenate([times, track.events.positions], axis=-1))


FLATTEST = 0.6
"""The least height of a picture in the plane against its width, and the other way round."""


def plane_limits(
    scene: Scene, points: Float[np.ndarray, "points 2"]
) -> tuple[np.ndarray, np.ndarray]:
    """Lower left and upper right corner of what is drawn in the plane."""
    if scene.radius is not None:
        return np.zeros(2), np.ones(2)
    low, high = points.min(axis=0), points.max(axis=0)
    size = (high - low).max()
    # A straight line needs some room around it to be seen as one.
    room = np.maximum(0.08 * size, (FLATTEST * size - (high - low)) / 2)
    return low - room, high + room


def prepare_plane(axes: Axes, scene: Scene, low: np.ndarray, high: np.ndarray) -> None:
    """Axes for paths in the plane between two corners."""
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    bare(axes)
    axes.set_facecolor(TABLE)
    for spine in axes.spines.values():
        # The walls of a table are part of the picture; in the open the frame only separates.
        spine.set(visible=True, edgecolor=GREY if scene.radius else FAINT)


def draw_plane(axes: Axes, track: Track, scene: Scene) -> None:
    """Paths in the plane, from light to dark as time passes."""
    from matplotlib.patches import Circle

    if scene.pocket is not None:
        x, y, reach = scene.pocket
        axes.add_patch(Circle((x, y), reach, facecolor=FAINT, edgecolor=GREY, lw=0.8))
    for ball in range(track.positions.shape[1]):
        path, colour = track.positions[:, ball], ball_colour(ball)
        fading_line(axes, track.times, path, colour)
        if scene.radius is None:
            axes.plot(*path[track.seen].T, ".", color=colour, markersize=2.5)
            axes.plot(*path[-1], "o", color=colour, markersize=5)
        else:
            rim = faded(colour, 0.45)
            axes.add_patch(Circle(path[0], scene.radius, fill=False, edgecolor=rim, lw=0.9))
            fill = (*faded(colour, 0.75), 0.85)
            axes.add_patch(Circle(path[-1], scene.radius, facecolor=fill, edgecolor=colour))
    _mark_collisions(axes, track.events, track.events.positions)
    if track.shot is not None:
        start = track.positions[0, 0]
        axes.annotate(
            "",
            xytext=start,
            xy=start + 0.15 * track.shot[1],
            arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0},
            zorder=6,
        )


def film_strip(axes: Axes, recording: Recording, row: int) -> None:
    """Images at regular intervals of a time axis, and collisions as marks below it."""
    seen = np.flatnonzero(recording.keep[row])
    chosen = seen[:: -(-len(seen) // FRAMES)]
    times = recording.times[row, chosen]
    width = film_row(axes, times, recording.values[row, chosen])
    events = recording.events[row]
    met_ball = events.kinds == Kind.BALL
    below = -0.2 * width
    marks = np.stack([events.times, np.full(len(events), below)], axis=-1)
    _mark(axes, marks[~met_ball], "white")
    _mark(axes, marks[met_ball], INK)
    axes.set_xlim(times[0] - width / 2, times[-1] + width)
    axes.set_ylim(2 * below, width)
    axes.set_aspect("equal")
    bare(axes)


def film_row(
    axes: Axes,
    times: Float[np.ndarray, " images"],
    images: Num[np.ndarray, "images pixels"],
    row: int = 0,
) -> float:
    """Images side by side, each centred at its time, `row` rows above 0; return their width."""
    width = 0.92 * float(np.diff(times).min())
    bottom = row * width / 0.92
    for time, image in zip(times, images, strict=True):
        show_image(axes, image, (time - width / 2, time + width / 2, bottom, bottom + width))
    return width


def film_frame(axes: Axes, recording: Recording, row: int, moment: float) -> None:
    """The last image seen at or before `moment`."""
    index = int(np.searchsorted(recording.times[row], moment, side="right")) - 1
    show_image(axes, recording.values[row, index])


def show_image(
    axes: Axes,
    pixels: Num[np.ndarray, " pixels"],
    extent: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0),
) -> None:
    """A square image between left, right, bottom and top: whole numbers to 255, or shares of 1."""
    side = int(np.sqrt(len(pixels)))
    axes.imshow(
        pixels.reshape(side, side),
        extent=extent,
        cmap="gray",
        vmin=0,
        vmax=255 if pixels.dtype == np.uint8 else 1,
        interpolation="nearest",
    )


def fading_line(
    axes: Axes,
    times: Float[np.ndarray, " moments"],
    path: Float[np.ndarray, "moments 2"],
    colour: str,
    width: float = 1.8,
    palest: float = PALEST,
    drawn: Bool[np.ndarray, " pieces"] | None = None,
) -> None:
    """A path in the plane, from light to dark as time passes; `drawn` are the pieces between
    moments that are, all unless told."""
    from matplotlib.collections import LineCollection

    pieces = np.stack([path[:-1], path[1:]], axis=1)
    ages = strengths(times, times[-1], palest)[1:]
    if drawn is not None:
        pieces, ages = pieces[drawn], ages[drawn]
    axes.add_collection(
        LineCollection(
            list(pieces),
            colors=[faded(colour, age) for age in ages],
            linewidths=width,
            capstyle="round",
        ),
        autolim=False,
    )


def strengths(
    times: Float[np.ndarray, " moments"], now: float, palest: float = PALEST
) -> Float[np.ndarray, " moments"]:
    """How strong a colour is at each moment of a path: palest at time 0, full by now."""
    # At a video's first moment no time has passed yet; by rounding one can lie ahead of now.
    return palest + (1 - palest) * np.minimum(times / max(now, np.finfo(float).tiny), 1)


def _mark_collisions(axes: Axes, events: Events, places: np.ndarray) -> None:
    """A dot where balls met, on a line between their centres; a ring where one met a wall."""
    rows = np.arange(len(events))
    one, other = places[rows, events.balls], events.others
    met_ball = events.kinds == Kind.BALL
    _mark(axes, one[~met_ball], "white")
    pairs = np.stack([one[met_ball], places[rows[met_ball], other[met_ball]]])
    axes.plot(*np.moveaxis(pairs, -1, 0), color=INK, lw=0.9, zorder=4)
    _mark(axes, pairs.mean(axis=0), INK)


def _mark(axes: Axes, places: np.ndarray, fill: str) -> None:
    (marks,) = axes.plot(
        *places.T,
        "o",
        markersize=4,
        markerfacecolor=fill,
        markeredgecolor=INK,
        markeredgewidth=0.9,
        zorder=5,
        clip_on=False,
    )
    # Marks may stick out of their panel; it should not shrink for them.
    marks.set_in_layout(False)
