"""Contact sheets and videos of tasks. Needs matplotlib, imported on use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from skipstone.drawing.style import (
    FIGURES,
    GREY,
    INK,
    PALETTE,
    VIDEOS,
    ball_colour,
    check_suffix,
    look,
    new_figure,
    pixels,
    save_figure,
    wipe,
    write_video,
)
from skipstone.errors import InvalidInput
from skipstone.paper.figures.panels import (
    draw_plane,
    draw_time,
    film_frame,
    film_strip,
    plane_limits,
    prepare_plane,
    prepare_time,
)
from skipstone.paper.figures.track import track_of
from skipstone.paper.tasks.base import Options, Scene, Task
from skipstone.paper.tasks.recording import Recording, record
from skipstone.paper.tasks.registry import find_task, task_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES_PER_OBSERVATION = 2
"""Moments of a video for each observation: balls are drawn between observations, too."""

FRAMES_PER_SECOND = 25
"""Speed at which a video plays."""

SQUARE, WIDE = (2.1, 2.1), (3.0, 1.8)
"""Width and height of a panel in inches, of space and of time."""

PAGE = 9.0
"""Width of a sheet, in inches."""

HEADER = 0.35
"""Height of its title and legend."""

Paint = Callable[["Axes", int, float], None]
"""Draws trajectory `row` as far as it has come by `moment` into a panel."""


def draw_sheet(task: Task, options: Options, recording: Recording) -> Figure:
    """All trajectories of a recording side by side, their collisions marked."""
    scene = task.scene(options)
    with look():
        if scene.kind == "film":
            figure = _film_sheet(recording)
        else:
            figure, panels, paint = _stage(scene, recording)
            for row, panel in enumerate(panels):
                paint(panel, row, float(recording.times.max()))
        _legend(figure, task, scene, recording)
        # Some of the look is only asked for when a figure is rendered, so render it here.
        figure.canvas.draw()
    return figure


def draw_video(task: Task, options: Options, recording: Recording, path: Path) -> None:
    """Play all trajectories of a recording at once, into an mp4 or gif."""
    write_video(path, _frames(task.scene(options), recording), FRAMES_PER_SECOND)


def _frames(scene: Scene, recording: Recording) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    observations = recording.times.shape[1]
    frames = FRAMES_PER_OBSERVATION * (observations - 1) + 1
    with look():
        figure, panels, paint = _stage(scene, recording)
        for moment in np.linspace(0, recording.times.max(), frames):
            for row, panel in enumerate(panels):
                wipe(panel)
                paint(panel, row, float(moment))
            yield pixels(figure)
            # Panels must not move, and laying them out takes longer than drawing them.
            figure.set_layout_engine("none")


def _stage(scene: Scene, recording: Recording) -> tuple[Figure, list[Axes], Paint]:
    """A prepared panel for each trajectory, all with the same limits, and how to paint in it."""
    count = len(recording.times)
    if scene.kind == "film":
        figure, panels = _grid(count, *SQUARE)
        for panel in panels:
            prepare_plane(panel, scene, np.zeros(2), np.ones(2))
        return figure, panels, lambda panel, row, moment: film_frame(panel, recording, row, moment)
    tracks = [track_of(recording, row) for row in range(count)]
    if scene.kind == "time":
        from matplotlib.ticker import AutoLocator

        figure, panels = _grid(count, *WIDE)
        for panel in panels:
            prepare_time(panel, float(recording.times.max()))
            if scene.radius is None:
                # Not balls in a unit box: as high as the values are.
                panel.set_ylim(recording.values.min(), recording.values.max())
                panel.yaxis.set_major_locator(AutoLocator())
        figure.supxlabel("time", fontsize="medium")
        return (
            figure,
            panels,
            lambda panel, row, moment: draw_time(panel, tracks[row].until(moment), scene),
        )
    points = np.concatenate([track.positions.reshape(-1, 2) for track in tracks])
    low, high = plane_limits(scene, points)
    width, height = high - low
    figure, panels = _grid(count, SQUARE[0], SQUARE[1] * float(height / width))
    for panel in panels:
        prepare_plane(panel, scene, low, high)
    return (
        figure,
        panels,
        lambda panel, row, moment: draw_plane(panel, tracks[row].until(moment), scene),
    )


def _grid(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """So many panels, as many to a row as fit on a page."""
    columns = min(int(PAGE / width), count)
    rows = -(-count // columns)
    figure = new_figure(width * columns, height * rows + HEADER)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, list(panels[:count])


def _film_sheet(recording: Recording) -> Figure:
    count = len(recording.times)
    figure = new_figure(PAGE, 0.8 * count + HEADER)
    for row, panel in enumerate(figure.subplots(count, 1, squeeze=False).flat):
        film_strip(panel, recording, row)
    return figure


def _legend(figure: Figure, task: Task, scene: Scene, recording: Recording) -> None:
    from matplotlib.lines import Line2D

    handles = []
    balls = recording.events.positions.shape[1]
    # With more balls than colours, names would not tell them apart.
    if scene.kind != "film" and 1 < balls <= len(PALETTE):
        labels = scene.labels or [f"ball {ball}" for ball in range(balls)]
        handles = [
            Line2D([], [], color=ball_colour(ball), label=label)
            for ball, label in enumerate(labels)
        ]
    if len(recording.events):
        marks = {"marker": "o", "linestyle": "", "markersize": 4.5, "markeredgecolor": INK}
        handles.append(Line2D([], [], markerfacecolor=INK, label="balls collide", **marks))
        handles.append(Line2D([], [], markerfacecolor="white", label="wall", **marks))
    figure.suptitle(task.name, x=0.005, ha="left", fontsize=12, fontweight="bold")
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    else:
        figure.text(0.99, 0.985, task.summary, ha="right", va="top", color=GREY)


MOST_DRAWN = 100
"""Trajectories on one sheet, at most."""


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
