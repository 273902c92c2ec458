"""The one look of all figures: quiet axes, few colours, safe for colour-blind eyes.

Figures are made without pyplot: no window, no global state, nothing to close. matplotlib is
imported when the first figure is made, because it takes a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from skipstone.errors import InvalidInput
from skipstone.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
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


@dataclass(frozen=True)
class Style:
    """How one model looks in every figure: also without colour it can be told apart."""

    colour: str
    marker: str
    line: str | tuple[float, tuple[float, ...]]
    """Solid, dashed, ..., as matplotlib writes it."""


MODEL_STYLES = {
    "PC-ODE": Style(PALETTE[0], "o", "-"),
    "RNN": Style(PALETTE[1], "s", (0, (4, 1.6))),
    "ODE-RNN": Style(PALETTE[2], "^", (0, (5, 1.5, 1, 1.5))),
    "latent ODE": Style(PALETTE[4], "D", (0, (1.2, 1.4))),
    "simulator": Style(GREY, "x", "-"),
}
"""The models, and the world that they imitate, by the names that people read."""

# From this ratio of the ends of a logarithmic axis on, powers of ten are ticks enough.
_MANY_TICKS = 200

# Between these, numbers are easier to read than powers of ten.
_PLAIN = (0.005, 5000)

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


def series_styles(names: Sequence[str]) -> dict[str, Style]:
    """A style for each name: a model's own, and for others the colours that no model has."""
    taken = {style.colour for style in MODEL_STYLES.values()}
    spare = cycle([colour for colour in PALETTE if colour not in taken])
    shapes = cycle("vPX")
    return {name: MODEL_STYLES.get(name) or Style(next(spare), next(shapes), "-") for name in names}


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


def log_ticks(axis: Axis) -> None:
    """Ticks of a logarithmic axis that are read at a glance, also where it spans little. Call it
    when the limits are set."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    narrow = high < _MANY_TICKS * low
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
    axis.set_minor_locator(NullLocator())
    if low > _PLAIN[0] and high < _PLAIN[1]:
        axis.set_major_formatter("{x:g}")
    else:
        # Thresholds that leave out no label.
        every = (np.inf, np.inf)
        axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=every))


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], apart: float = 0.11) -> None:
    """Names beside the right ends of lines, instead of a legend: (y, text, colour) for each.

    Names that would run into each other move, to be `apart`, a share of the axes' height. Call it
    when the scale and the limits are set.
    """
    for at, height, text, colour in _placed(axes, ends, apart):
        axes.annotate(
            text,
            (1.0, at),
            xycoords="axes fraction",
            xytext=(1.05, height),
            textcoords="axes fraction",
            arrowprops=_leader(colour),
            color=colour,
            va="center",
            fontsize=8,
            annotation_clip=False,
        )


def label_points(
    axes: Axes, x: float, points: Sequence[tuple[float, str, str]], apart: float = 0.09
) -> None:
    """The same beside points, all at one x, inside the axes."""
    for _, height, text, colour in _placed(axes, points, apart):
        axes.annotate(
            text,
            (x, height),
            xycoords=("data", "axes fraction"),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8,
            zorder=6,
        )


def label_below(axes: Axes, point: tuple[float, float], text: str, colour: str) -> None:
    """A name below one point."""
    axes.annotate(
        text,
        point,
        xytext=(-5, -7),
        textcoords="offset points",
        color=colour,
        va="top",
        fontsize=8,
        zorder=6,
    )


def _leader(colour: str) -> dict[str, Any]:
    """A thin line from where a line ends to its name, which may stand a little off."""
    return {"arrowstyle": "-", "color": faded(colour, 0.6), "lw": 0.7, "shrinkA": 0, "shrinkB": 1}


def _placed(
    axes: Axes, named: Sequence[tuple[float, str, str]], apart: float
) -> list[tuple[float, float, str, str]]:
    """Names from the lowest up: where they belong, and where they stand to be apart, as shares of
    the axes' height."""
    axes.get_ylim()  # Limits that follow the data are only found when asked for.
    placed = sorted(
        (float(_height(axes, value)), text, colour)
        for value, text, colour in named
        if np.isfinite(value)
    )
    heights = _spread([height for height, _, _ in placed], apart)
    return [
        (at, height, text, colour)
        for height, (at, text, colour) in zip(heights, placed, strict=True)
    ]


def _height(axes: Axes, value: float) -> float:
    """Where a value is, as a share of the axes' height."""
    low, high = axes.yaxis.get_transform().transform(np.array(axes.get_ylim()))
    at = axes.yaxis.get_transform().transform(np.array([value]))[0]
    return (at - low) / (high - low)


def _spread(heights: Sequence[float], apart: float) -> list[float]:
    """Heights in ascending order, moved as little as needed to be apart and below the top."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else height)
    over = max(0.0, moved[-1] - 0.97) if moved else 0.0
    return [height - over for height in moved]


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
