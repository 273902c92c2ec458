"""One trajectory in one panel: over time, in the plane, or as a film strip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skipstone.plotting import FAINT, GREY, INK, TABLE, ball_colour, bare, faded
from skipstone.tasks.base import Scene
from skipstone.tasks.events import Events, Kind
from skipstone.tasks.recording import Recording
from skipstone.tasks.track import Track

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAMES = 15
"""Most images in a film strip."""

_PALEST = 0.12
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
        _fading_line(axes, track.times, path, colour)
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
    width = 0.92 * np.diff(times).min()
    for time, index in zip(times, chosen, strict=True):
        extent = (time - width / 2, time + width / 2, 0.0, width)
        axes.imshow(_image(recording, row, int(index)), extent=extent, **_GREYS)
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


def film_frame(axes: Axes, recording: Recording, row: int, moment: float) -> None:
    """The last image seen at or before `moment`."""
    index = int(np.searchsorted(recording.times[row], moment, side="right")) - 1
    axes.imshow(_image(recording, row, index), extent=(0.0, 1.0, 0.0, 1.0), **_GREYS)


_GREYS = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest"}


def _image(recording: Recording, row: int, index: int) -> np.ndarray:
    pixels = recording.values[row, index]
    side = int(np.sqrt(len(pixels)))
    return pixels.reshape(side, side)


def _fading_line(axes: Axes, times: np.ndarray, path: np.ndarray, colour: str) -> None:
    from matplotlib.collections import LineCollection

    # At a video's first moment no time has passed yet.
    age = times[1:] / max(times[-1], np.finfo(float).tiny)
    strengths = _PALEST + (1 - _PALEST) * age
    axes.add_collection(
        LineCollection(
            list(np.stack([path[:-1], path[1:]], axis=1)),
            colors=[faded(colour, strength) for strength in strengths],
            linewidths=1.8,
            capstyle="round",
        ),
        autolim=False,
    )


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
