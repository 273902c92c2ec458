"""The one look of all figures: quiet axes, few colours, safe for colour-blind eyes.

Figures are made without pyplot: no window, no global state, nothing to close. matplotlib is
imported when the first figure is made, because it takes a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from jaxtyping import Float, UInt8

from skipstone.errors import InvalidInput
from skipstone.extras import require_installed
from skipstone.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
"""Okabe and Ito's colours, in the order in which series take them."""

INK = "#222222"
"""Text, and marks on top of everything."""

GREY = "#8A8A8A"
"""Axes and background lines."""

FAINT = "#E4E4E4"
"""Separating lines and shaded areas."""

GROUND = "#FAFAFA"
"""Background of pictures in the plane, just off white."""

FIGURES = (".png", ".pdf", ".svg")
"""Suffixes of files for figures."""

VIDEOS = (".mp4", ".gif")
"""Suffixes of files for videos."""

FRAMES_PER_OBSERVATION = 2
"""Frames of a video for each observation: things are drawn between observations, too."""

# From this ratio of the ends of a logarithmic axis on, powers of ten are ticks enough.
_MANY_TICKS = 200

# Between these, numbers are easier to read than powers of ten.
_PLAIN = (0.005, 5000)

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


@dataclass(frozen=True)
class Style:
    """How one series looks in every figure; markers and dashes tell it apart without colour."""

    colour: str
    marker: str
    line: str | tuple[float, tuple[float, ...]]
    """matplotlib's line style."""


@contextmanager
def look() -> Iterator[None]:
    """Context in which figures are made and rendered with the project's look."""
    require_installed("matplotlib")
    from matplotlib import rc_context

    with rc_context(LOOK):
        yield


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Decorator: draw a figure with the project's look."""

    @wraps(draw)
    def drawn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with look():
            figure = draw(*args, **kwargs)
            # Some of the look is only asked for when a figure is rendered.
            figure.canvas.draw()
        return figure

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; width and height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panel_grid(
    count: int, columns: int, size: tuple[float, float], header: float = 0.0, share: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of a size in inches, row by row; `share` their axes."""
    rows = -(-count // columns)
    figure = new_figure(size[0] * columns, size[1] * rows + header)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share).flat
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, list(panels[:count])


def ball_colour(ball: int) -> str:
    """The colour of a ball, or of any series, by its number."""
    return PALETTE[ball % len(PALETTE)]


def series_styles(names: Sequence[str], known: Mapping[str, Style]) -> dict[str, Style]:
    """A style for each name: the known one, or one with a colour that no known style has."""
    taken = {style.colour for style in known.values()}
    spare = cycle([colour for colour in PALETTE if colour not in taken] or PALETTE)
    shapes = cycle("vPX")
    return {name: known.get(name) or Style(next(spare), next(shapes), "-") for name in names}


def faded(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour mixed with white: strength 0 is white, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def bare(axes: Axes) -> None:
    """Remove ticks and frame: for pictures rather than plots."""
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)


def log_ticks(axis: Axis) -> None:
    """Few, readable ticks on a logarithmic axis. Call it when the limits are set."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    narrow = high < _MANY_TICKS * low
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
    axis.set_minor_locator(NullLocator())
    if low > _PLAIN[0] and high < _PLAIN[1]:
        axis.set_major_formatter("{x:g}")
    else:
        # Infinite thresholds: every tick has its label.
        every = (np.inf, np.inf)
        axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=every))


def pixels(figure: Figure) -> UInt8[np.ndarray, "height width 3"]:
    """Render a figure as an image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3]
    # Video codecs store colour for pairs of pixels: an even number of them each way.
    return image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2].copy()


def animate(
    figure: Figure, moments: Iterable[float], paint: Callable[[float], None], pause: int = 0
) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Frames of a video: `paint(moment)` fills the figure's emptied panels for each of them.

    The last frame stays in view for `pause` more.
    """
    image = None
    for moment in moments:
        with look():
            for axes in figure.axes:
                _wipe(axes)
            paint(float(moment))
            image = pixels(figure)
            # Panels must not move, and laying them out takes longer than drawing them.
            figure.set_layout_engine("none")
        yield image
    if image is not None:
        yield from [image] * pause


def frame_times(end: float, observations: int) -> Float[np.ndarray, " frames"]:
    """The moment of each frame, for regular observations from 0 to `end`."""
    return np.linspace(0, end, FRAMES_PER_OBSERVATION * (observations - 1) + 1)


def _wipe(axes: Axes) -> None:
    """Remove all artists but keep axes, limits and ticks: much faster than `clear`."""
    for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.texts, *axes.images):
        artist.remove()


def write_video(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write images as an mp4, or as a gif that loops."""
    require_installed("imageio", "imageio_ffmpeg")
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
    """Write a figure in the format that the file's suffix names."""
    check_suffix(path, FIGURES)
    with replacing(path) as beside:
        figure.savefig(beside, format=path.suffix[1:])


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise unless the file's suffix is one of these."""
    if path.suffix not in suffixes:
        raise InvalidInput(
            f"the file's suffix must be one of {', '.join(suffixes)}; got {str(path)!r}."
        )
