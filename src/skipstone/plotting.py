"""The one look of all figures: quiet axes, few colours, safe for colour-blind eyes.

Figures are made without pyplot: no window, no global state, nothing to close. matplotlib is
imported when the first figure is made, because it takes a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from skipstone.errors import InvalidInput
from skipstone.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
"""Okabe and Ito's colours, in the order in which series take them."""

INK = "#222222"
"""Text, and marks on top of everything."""

GREY = "#8A8A8A"
"""Axes and what stays in the background."""

FAINT = "#E4E4E4"
"""Lines that only separate, and surfaces that should be seen."""

TABLE = "#FAFAFA"
"""The ground of a picture, just off white."""

FIGURES = (".png", ".pdf", ".svg")
"""Suffixes of files for figures."""

VIDEOS = (".mp4", ".gif")
"""Suffixes of files for videos."""

LOOK: dict[Any, Any] = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.dpi": 160,
    "font.size": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
"""matplotlib's rc parameters."""


@contextmanager
def look() -> Iterator[None]:
    """Inside, figures are made and saved with the project's look."""
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need matplotlib: pip install 'skipstone[plot]'"
        ) from error
    with rc_context(LOOK):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def ball_colour(ball: int) -> str:
    """The colour of a ball, or of any series, by its number."""
    return PALETTE[ball % len(PALETTE)]


def faded(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour mixed with white: strength 0 is white, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def bare(axes: Axes) -> None:
    """No ticks and no frame: for pictures rather than plots."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def wipe(axes: Axes) -> None:
    """Remove what was drawn but keep axes, limits and ticks: much faster than `clear`."""
    for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.texts, *axes.images):
        artist.remove()


def pixels(figure: Figure) -> UInt8[np.ndarray, "height width 3"]:
    """A figure as an image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3]
    # Video codecs store colour for pairs of pixels: an even number of them each way.
    return image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2].copy()


def write_video(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write images as an mp4 or a gif that plays for ever."""
    import imageio.v3 as iio

    check_suffix(path, VIDEOS)
    if path.suffix == ".gif":
        options = {"duration": 1000 / fps, "loop": 0}
    else:
        options = {"fps": fps, "codec": "libx264", "macro_block_size": 2}
    images = np.stack(list(frames))
    content = iio.imwrite("<bytes>", images, extension=path.suffix, **options)
    with replacing(path) as beside:
        beside.write_bytes(content)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as a file of the kind that its name says."""
    check_suffix(path, FIGURES)
    with replacing(path) as beside:
        figure.savefig(beside, format=path.suffix[1:])


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise unless the file's name says that it is one of these kinds."""
    if path.suffix not in suffixes:
        raise InvalidInput(
            f"the file's suffix must be one of {', '.join(suffixes)}; got {str(path)!r}."
        )
