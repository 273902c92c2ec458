"""Contact sheets and videos of tasks. Needs matplotlib, imported on use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skipstone.drawing import panels
from skipstone.drawing.labels import heading, key
from skipstone.drawing.style import (
    FIGURES,
    GREY,
    INK,
    PALETTE,
    VIDEOS,
    animate,
    ball_colour,
    check_suffix,
    faded,
    frame_times,
    look,
    panel_grid,
    save_figure,
    styled,
    write_video,
)
from skipstone.errors import InvalidInput
from skipstone.paper.figures.track import Track, track_of
from skipstone.paper.tasks.base import Options, Scene, Task
from skipstone.paper.tasks.events import Events, Kind
from skipstone.paper.tasks.recording import Recording, record
from skipstone.paper.tasks.registry import find_task, task_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES_PER_SECOND = 25
"""Speed at which a video plays."""

SQUARE, WIDE = 2.1, (3.0, 1.8)
"""Size of a panel in inches: the width in the plane, width and height over time."""

PAGE = 9.0
"""Width of a sheet, in inches."""

HEADER = 0.35
"""Height of its title and legend."""

IMAGES = 15
"""Most images in a film strip."""

MOST_DRAWN = 100
"""Trajectories on one sheet, at most."""

ARROW = 0.15
"""Length of the arrow for a shot, as the time that the ball needs for it."""


def show_task(name: str, sheet: Path, video: Path | None, count: int, seed: int) -> list[Path]:
    """Draw `count` new trajectories of a task into files; return what was written."""
    task = find_task(name)
    if count > MOST_DRAWN:
        raise InvalidInput(
            f"a sheet must have at most {MOST_DRAWN} trajectories; got {count}. Nobody sees more."
        )
    check_suffix(sheet, FIGURES)
    if video is not None:
        check_suffix(video, VIDEOS)
    options = task_options(task, trajectories=count, seed=seed)
    recording = record(task, options)
    save_figure(draw_sheet(task, options, recording), sheet)
    if video is None:
        return [sheet]
    draw_video(task, options, recording, video)
    return [sheet, video]


@styled
def draw_sheet(task: Task, options: Options, recording: Recording) -> Figure:
    """All trajectories of a recording side by side, their collisions marked."""
    scene = task.scene(options)
    if scene.kind == "film":
        size = PAGE, 0.8
        figure, grid = panel_grid(len(recording.times), 1, size, HEADER)
        for row, panel in enumerate(grid):
            _draw_film(panel, recording, row)
    else:
        tracks = _tracks(recording)
        figure, grid = _stage(scene, recording, tracks)
        for panel, track in zip(grid, tracks, strict=True):
            draw_track(panel, track.until(float(recording.times.max())), scene)
    _legend(figure, task, scene, recording)
    return figure


def draw_video(task: Task, options: Options, recording: Recording, path: Path) -> None:
    """Play all trajectories of a recording at once, into an mp4 or gif."""
    scene = task.scene(options)
    tracks = [] if scene.kind == "film" else _tracks(recording)
    with look():
        figure, grid = _stage(scene, recording, tracks)

    def paint(moment: float) -> None:
        for row, panel in enumerate(grid):
            if scene.kind == "film":
                # The last image seen at or before the moment.
                seen = np.searchsorted(recording.times[row], moment, side="right")
                panels.show_image(panel, recording.values[row, seen - 1])
            else:
                draw_track(panel, tracks[row].until(moment), scene)

    moments = frame_times(recording.times.max(), recording.times.shape[1])
    write_video(path, animate(figure, moments, paint), FRAMES_PER_SECOND)


def draw_track(axes: Axes, track: Track, scene: Scene) -> None:
    """A true trajectory: over time each ball is a band as wide as itself, in the plane a line from
    light to dark. Collisions are marked."""
    panels.draw_pocket(axes, scene)
    for ball, path in enumerate(np.moveaxis(track.positions, 1, 0)):
        colour = ball_colour(ball)
        if scene.kind == "time":
            y, radius = path[:, 0], scene.radius or 0.0
            axes.fill_between(track.times, y - radius, y + radius, color=faded(colour, 0.18), lw=0)
            axes.plot(track.times, y, color=colour)
        else:
            panels.draw_fading(axes, track.times, path, colour)
            panels.draw_rolled(axes, scene, path, colour)
        if scene.kind == "time" or scene.radius is None:
            seen = panels.places(track.times[track.seen], path[track.seen])
            axes.plot(*seen, ".", color=colour, markersize=2.5)
        if scene.kind == "plane" and scene.radius is None:
            axes.plot(*path[-1], "o", color=colour, markersize=5)
    _mark_collisions(axes, track.events)
    if track.shot is not None:
        panels.draw_arrow(axes, track.positions[0, 0], ARROW * track.shot[1])


def _mark_collisions(axes: Axes, events: Events) -> None:
    """A dot where balls met; a ring where one met a wall."""
    centres = events.positions
    if centres.shape[-1] == 1:
        times = np.broadcast_to(events.times[:, None, None], centres.shape)
        centres = np.concatenate([times, centres], axis=-1)
    rows, met = np.arange(len(events)), events.kinds == Kind.BALL
    one = centres[rows, events.balls]
    panels.draw_marks(axes, one[~met], "white")
    panels.draw_meetings(axes, np.stack([one[met], centres[rows[met], events.others[met]]]))


def _draw_film(axes: Axes, recording: Recording, row: int) -> None:
    """Images at regular intervals of a time axis, and collisions as marks below it."""
    seen = np.flatnonzero(recording.keep[row])
    chosen = seen[:: -(-len(seen) // IMAGES)]
    rows = [recording.values[row, chosen]]
    _, below = panels.film_strip(axes, recording.times[row, chosen], rows, room=(0.5, 1.0))
    events = recording.events[row]
    for kind, fill in ((Kind.WALL, "white"), (Kind.BALL, INK)):
        times = events.times[events.kinds == kind]
        panels.draw_marks(axes, np.stack([times, np.full(len(times), below)], axis=-1), fill)


def _tracks(recording: Recording) -> list[Track]:
    return [track_of(recording, row) for row in range(len(recording.times))]


def _stage(scene: Scene, recording: Recording, tracks: list[Track]) -> tuple[Figure, list[Axes]]:
    """A prepared panel for each trajectory, all with the same limits."""
    count, points, size = len(recording.times), None, (SQUARE, SQUARE)
    if scene.kind == "time":
        # Balls fill a unit box; other features are as high as they are.
        size, points = WIDE, recording.values if scene.radius is None else None
    elif scene.kind == "plane":
        points = np.concatenate([track.positions.reshape(-1, 2) for track in tracks])
        low, high = scene.limits(points)
        width, height = high - low
        size = SQUARE, SQUARE * float(height / width)
    columns = min(int(PAGE / size[0]), count)
    figure, grid = panel_grid(count, columns, size, HEADER, share=True)
    for panel in grid:
        panels.prepare_panel(panel, scene, float(recording.times.max()), points)
    if scene.kind == "time":
        figure.supxlabel("time", fontsize="medium")
    return figure, grid


def _legend(figure: Figure, task: Task, scene: Scene, recording: Recording) -> None:
    handles = []
    balls = recording.events.positions.shape[1]
    # With more balls than colours, names would not tell them apart.
    if scene.kind != "film" and 1 < balls <= len(PALETTE):
        labels = scene.labels or [f"ball {ball}" for ball in range(balls)]
        handles = [key(label, ball_colour(ball)) for ball, label in enumerate(labels)]
    if len(recording.events):
        for label, fill in (("balls collide", INK), ("wall", "white")):
            mark = {"marker": "o", "markersize": 4.5, "markerfacecolor": fill}
            handles.append(key(label, INK, **mark))
    heading(figure, task.name)
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    else:
        figure.text(0.99, 0.985, task.summary, ha="right", va="top", color=GREY)
