"""Pictures of a benchmark, drawn from its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import number
from skipstone.drawing.style import FAINT, GREY, PALETTE, look, new_figure, save_figure
from skipstone.paper.figures.models import model_colour
from skipstone.records import read_record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {
    "batch": "batch size",
    "rate": "sampling rate, relative",
    "hidden": "hidden units",
}
"""What grows, and how its axis is called."""

COLOURS = {title: model_colour(title) for title in ("PC-ODE", "RNN")}


def draw(file: Path, folder: Path) -> list[Path]:
    """All pictures that the file has data for."""
    parts = read_record(file, dict[str, Any])["parts"]
    drawn = []
    with look():
        if "growth" in parts:
            drawn.append(_draw_growth(parts["growth"]["rows"], folder / "growth.png"))
        if "sampling" in parts:
            drawn.append(_draw_sampling(parts["sampling"]["rows"], folder / "sampling.png"))
        if "peers" in parts:
            drawn.append(_draw_peers(parts["peers"]["rows"], folder / "peers.png"))
    return drawn


def _draw_growth(rows: list[dict[str, Any]], path: Path) -> Path:
    figure = new_figure(9, 5)
    panels = figure.subplots(2, len(AXES), squeeze=False)
    for line, what in zip(panels, ("training", "rollout"), strict=True):
        for axes, along in zip(line, AXES, strict=True):
            for model, colour in COLOURS.items():
                name = f"{model}, {what}"
                chosen = [row for row in rows if row["along"] == along and row["name"] == name]
                _curve(axes, [row["size"] for row in chosen], chosen, model, colour)
            _logarithmic(axes, AXES[along])
        line[0].set_ylabel(f"{what}, milliseconds")
    panels[0, 0].legend()
    return _save(figure, path)


def _draw_sampling(rows: list[dict[str, Any]], path: Path) -> Path:
    """Updates stay as they are while decoding grows."""
    figure = new_figure(5, 3.4)
    axes = figure.subplots()
    for series, colour in (
        ("PC-ODE updates", COLOURS["PC-ODE"]),
        ("PC-ODE decoding", PALETTE[5]),
        ("RNN rollout", COLOURS["RNN"]),
    ):
        chosen = [row for row in rows if row["name"].startswith(series)]
        _curve(axes, [row["rate"] for row in chosen], chosen, series, colour)
    _logarithmic(axes, AXES["rate"])
    axes.set_ylabel("milliseconds")
    axes.legend()
    return _save(figure, path)


def _draw_peers(rows: list[dict[str, Any]], path: Path) -> Path:
    figure = new_figure(9, 3)
    for axes, what in zip(figure.subplots(1, 2), ("training", "rollout"), strict=True):
        chosen = sorted(
            (row for row in rows if row["what"] == what), key=lambda row: -_milliseconds(row)[1]
        )
        names = [row["name"] for row in chosen]
        times = [_milliseconds(row) for row in chosen]
        colours = [COLOURS.get(name, GREY) for name in names]
        axes.barh(names, [median for _, median, _ in times], color=colours, height=0.6)
        for place, (_, median, _) in enumerate(times):
            axes.annotate(
                f" {number(median)}", (median, place), va="center", fontsize=8, color=colours[place]
            )
        axes.set_title("training step" if what == "training" else "rollout")
        axes.set_xlabel("milliseconds")
    return _save(figure, path)


def _curve(
    axes: Axes, sizes: list[int], rows: list[dict[str, Any]], label: str, colour: str
) -> None:
    low, median, high = zip(*(_milliseconds(row) for row in rows), strict=True)
    axes.plot(sizes, median, "o-", color=colour, label=label, markersize=3)
    axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)


def _milliseconds(row: dict[str, Any]) -> tuple[float, float, float]:
    low, median, high = (1000 * row["seconds"][key] for key in ("low", "median", "high"))
    return low, median, high


def _logarithmic(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_xlabel(label)


def _save(figure: Any, path: Path) -> Path:
    save_figure(figure, path)
    return path
