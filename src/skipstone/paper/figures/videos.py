"""Videos: what happens, and what each model predicts, side by side as time passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from skipstone.drawing.style import INK, check_suffix, look, new_figure, pixels, wipe, write_video
from skipstone.errors import InvalidInput
from skipstone.paper.examples import Example
from skipstone.paper.figures.painting import (
    SHOWN,
    count_updates,
    model_colour,
    paint_collisions,
    paint_flash,
    paint_now,
    paint_steps,
    prepare_panel,
    prepare_steps,
    updates_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES_PER_OBSERVATION = 2
"""Moments of a video for each observation: balls are drawn between observations, too."""

FRAMES_PER_SECOND = 18
"""Speed at which a video plays: slow enough to see single updates."""

PAUSE = 1.5
"""Seconds for which the end stays in view."""

DPI = {".mp4": 120, ".gif": 80}
"""Pixels per inch: a gif is for a page that should load at once."""


def play_example(
    example: Example, dpi: int = DPI[".mp4"]
) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """The example as it happens: truth, then each model with a counter of its updates, which
    flash, and a strip of its steps below."""
    titles = [title for title in SHOWN if title in example.predictions]
    if not titles:
        raise InvalidInput(f"there must be a prediction of {' or '.join(SHOWN)} to play; got none.")
    count = FRAMES_PER_OBSERVATION * (len(example.times) - 1) + 1
    moments = np.linspace(example.times[0], example.times[-1], count)
    with look():
        figure, stages = _stage(example, titles, dpi)
        for index, moment in enumerate(moments):
            for panel, strip, title in stages:
                wipe(panel)
                wipe(strip)
                _paint(panel, strip, example, title, float(moment))
            yield pixels(figure)
            if index == 0:
                # Panels must not move, and laying them out takes longer than drawing them.
                figure.set_layout_engine("none")
        yield from [pixels(figure)] * round(PAUSE * FRAMES_PER_SECOND)


def write_example(example: Example, path: Path) -> None:
    """Play an example into an mp4, or into a gif that is small enough for a page."""
    check_suffix(path, tuple(DPI))
    write_video(path, play_example(example, DPI[path.suffix]), FRAMES_PER_SECOND)


def _stage(
    example: Example, titles: list[str], dpi: int
) -> tuple[Figure, list[tuple[Axes, Axes, str | None]]]:
    """For the truth, and for each model, a panel and a strip below it."""
    shown = [None, *titles]
    wide = 3.0 if example.scene.kind == "time" else 2.3
    figure = new_figure(wide * len(shown), 2.95)
    figure.set_dpi(dpi)
    rows = figure.subplots(2, len(shown), squeeze=False, height_ratios=[10, 1])
    stages: list[tuple[Axes, Axes, str | None]] = []
    for (panel, strip), title in zip(rows.T, shown, strict=True):
        prepare_panel(panel, example)
        prepare_steps(strip, example)
        stages.append((panel, strip, title))
    return figure, stages


def _paint(panel: Axes, strip: Axes, example: Example, title: str | None, moment: float) -> None:
    paint_now(panel, example, title, moment)
    if title is None:
        panel.set_title("truth", color=INK, fontweight="bold")
        paint_collisions(strip, example, moment)
        return
    count = count_updates(example.predictions[title], moment)
    colour = model_colour(title)
    panel.set_title(title, color=colour, fontweight="bold")
    panel.set_title(updates_text(count), loc="right", color=colour)
    paint_steps(strip, example, title, moment)
    paint_flash(panel, example, title, moment)
