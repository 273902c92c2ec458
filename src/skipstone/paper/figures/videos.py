"""Videos: what happens, and what each model predicts, side by side as time passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from skipstone.drawing.panels import prepare_steps
from skipstone.drawing.style import (
    INK,
    animate,
    check_suffix,
    frame_times,
    look,
    new_figure,
    write_video,
)
from skipstone.paper.examples import Example
from skipstone.paper.figures import painting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES_PER_SECOND = 18
"""Speed at which a video plays: slow enough to see single updates."""

PAUSE = 1.5
"""Seconds for which the end stays in view."""

DPI = {".mp4": 120, ".gif": 80}
"""Pixels per inch: a gif is for a page that should load at once."""


def play_example(
    example: Example, dpi: int = DPI[".mp4"]
) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Frames of an example: truth, then each model with a counter of its updates, which flash, and
    a strip of its steps below."""
    with look():
        figure, columns = _stage(example, painting.shown_models(example), dpi)

    def paint(moment: float) -> None:
        now = example.until(moment)
        for panel, strip, title in columns:
            _paint(panel, strip, now, title)

    moments = frame_times(example.times[-1], len(example.times))
    yield from animate(figure, moments, paint, pause=round(PAUSE * FRAMES_PER_SECOND))


def write_example(example: Example, path: Path) -> None:
    """Write an example as an mp4, or as a gif that is small enough for a page."""
    check_suffix(path, tuple(DPI))
    write_video(path, play_example(example, DPI[path.suffix]), FRAMES_PER_SECOND)


def _stage(
    example: Example, titles: list[str], dpi: int
) -> tuple[Figure, list[tuple[Axes, Axes, str | None]]]:
    """A panel and a strip below it for the truth (None) and for each model."""
    shown = [None, *titles]
    wide = 3.0 if example.scene.kind == "time" else 2.3
    figure = new_figure(wide * len(shown), 2.95)
    figure.set_dpi(dpi)
    rows = figure.subplots(2, len(shown), squeeze=False, height_ratios=[10, 1])
    for panel, strip in rows.T:
        painting.prepare_example(panel, example)
        prepare_steps(strip, example.moments[-1])
    return figure, list(zip(*rows, shown, strict=True))


def _paint(panel: Axes, strip: Axes, now: Example, title: str | None) -> None:
    painting.paint_now(panel, now, title)
    painting.paint_steps(strip, now, title)
    if title is None:
        panel.set_title("truth", color=INK, fontweight="bold")
    else:
        painting.name_panel(panel, now, title)
        painting.paint_flash(panel, now, title)
