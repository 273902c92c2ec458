"""One figure per data set from the JSON files, and a video of a tossed cube.

python -m benchmarks.reality.figures --cube cube_tosses.parquet
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
import typer
from jaxtyping import Float, UInt8

from benchmarks.reality.cube import CORNERS, position_error
from benchmarks.reality.peers import OURS, PEERS
from benchmarks.reality.problem import MissingData
from benchmarks.reality.problems import PROBLEMS, load_parts
from benchmarks.reality.report import RESULTS, VIDEO, read_trials
from benchmarks.reality.run import DEFAULT_CUBE
from benchmarks.reality.trial import Trial, is_done
from skipstone import Path as Rollout
from skipstone import Sequences, load
from skipstone.drawing.labels import heading, label_ends
from skipstone.drawing.panels import draw_steps, prepare_steps
from skipstone.drawing.style import (
    GREY,
    GROUND,
    INK,
    PALETTE,
    animate,
    bare,
    faded,
    log_ticks,
    look,
    new_figure,
    save_figure,
    styled,
    write_video,
)
from skipstone.evaluation.rollouts import predict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGES = [
    (one, other)
    for one in range(len(CORNERS))
    for other in range(one)
    if np.abs(CORNERS[one] - CORNERS[other]).sum() == 2
]
"""Pairs of corners that an edge joins."""

VIEW = np.array([[0.87, -0.5, 0.0], [0.22, 0.38, 0.9]])
"""Right and up of the picture, in the coordinates of the table."""

COLOURS = dict(
    zip((peer.title for peer in PEERS.values()), (*PALETTE, INK, "#7F5539"), strict=True)
)
"""One colour for each peer in all figures."""

FRAMES_PER_SECOND = 20
"""Of the video: about a seventh of the speed of the toss."""

FLASH = 3
"""Frames for which an update lights up."""


@styled
def draw_problem(data: str, trials: Sequence[dict[str, Any]]) -> Figure:
    """Error against updates, and error against elapsed time, of every forecast."""
    problem = PROBLEMS[data]
    unit = next(iter(problem.distances), "scaled")
    found: dict[str, list[Any]] = defaultdict(list)
    for trial in trials:
        for forecast in trial["forecasts"]:
            if forecast["error"] is not None:
                found[forecast["name"]].append(forecast)
    figure = new_figure(9.0, 3.4)
    left, right = figure.subplots(1, 2)
    heading(figure, problem.title)
    ends = []
    for name, forecasts in found.items():
        colour = colour_of(name)
        errors = [each["own"].get(unit, each["error"]) for each in forecasts]
        if forecasts[0]["updates"]:
            updates = [each["updates"] for each in forecasts]
            left.scatter(updates, errors, s=22, color=colour, zorder=3)
        else:
            left.axhline(errors[0], color=colour, lw=0.8, ls=":")
        over_time = np.mean([each["by_elapsed"] for each in forecasts], axis=0)
        right.plot(forecasts[0]["elapsed"], over_time, color=colour, lw=2 if name == OURS else 1.1)
        ends.append((float(over_time[-1]), name, colour))
    left.set(xscale="log", yscale="log", xlabel="updates of a rollout", ylabel=f"error ({unit})")
    right.set(yscale="log", xlabel="time since the context", ylabel=f"error ({unit})")
    for axis in (left.xaxis, left.yaxis, right.yaxis):
        log_ticks(axis)
    label_ends(right, ends, apart=0.07)
    return figure


def colour_of(name: str) -> str:
    """The peer's own; steps of a model have its colour, and naive forecasts are grey."""
    return COLOURS.get(name.partition(", steps of")[0], GREY)


class Toss:
    """A toss and its prediction, to draw at any moment."""

    def __init__(self, observed: Sequences, path: Rollout, num_context: int):
        self.times = observed.times[0].numpy()
        self._observed = observed.values[0].double().numpy()
        self.start = float(self.times[num_context - 1])
        self.knots = path.knots[0][path.knots[0].isfinite()].numpy()
        self._path = path

    def truth(self, moment: float) -> Float[np.ndarray, "corners 3"]:
        """Corners as they were tracked, in a straight line from frame to frame."""
        columns = [np.interp(moment, self.times, each) for each in self._observed.T]
        return np.array(columns).reshape(len(CORNERS), 3)

    def predicted(self, moment: float) -> Float[np.ndarray, "corners 3"] | None:
        """Corners as predicted; None before a prediction begins."""
        if moment < self.start:
            return None
        with torch.inference_mode():
            found = self._path.evaluate(min(moment, float(self.times[-1])))
        return found[0].double().numpy().reshape(len(CORNERS), 3)


def typical_toss(model: Any, test: Sequences) -> Toss:
    """The toss of median error."""
    count = model.config.num_context
    errors = []
    with torch.inference_mode():
        for row in range(len(test)):
            one = test[row]
            _, predicted = predict(model, one)
            observed = one.values[0, count:].double().numpy()
            errors.append(position_error(predicted[0].double().numpy(), observed).mean())
        chosen = test[int(np.argsort(errors)[len(errors) // 2])]
        path, _ = predict(model, chosen)
    return Toss(chosen, path, count)


def play_toss(toss: Toss) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Frames: the tracked cube in black, the predicted one in colour, updates flash."""
    end = float(toss.times[-1])
    corners = np.stack([toss.truth(moment) for moment in toss.times])
    seen = corners.reshape(-1, 3) @ VIEW.T
    with look():
        figure = new_figure(5.0, 3.6)
        figure.set_dpi(120)
        panel, strip = figure.subplots(2, 1, height_ratios=[12, 1])
        low, high = seen.min(axis=0) - 0.5, seen.max(axis=0) + 0.5
        panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        bare(panel)
        prepare_steps(strip, end)
    frame = float(np.diff(toss.times).mean())

    def paint(moment: float) -> None:
        passed = toss.knots[toss.knots <= moment]
        fresh = len(passed) > 0 and moment - passed[-1] < FLASH * frame
        panel.set_facecolor(faded(PALETTE[3], 0.35) if fresh else GROUND)
        draw_wires(panel, toss.truth(moment), INK)
        predicted = toss.predicted(moment)
        if predicted is not None:
            draw_wires(panel, predicted, colour_of(OURS))
        panel.set_title(f"{len(passed)} updates, {1e3 * moment:.0f} ms")
        draw_steps(strip, passed, moment, colour_of(OURS))

    yield from animate(figure, toss.times, paint, pause=FRAMES_PER_SECOND)


def draw_wires(axes: Axes, corners: Float[np.ndarray, "corners 3"], colour: str) -> None:
    """The edges of a cube as seen from the side."""
    seen = corners @ VIEW.T
    for one, other in EDGES:
        axes.plot(*seen[[one, other]].T, color=colour, lw=1.4)


def main(
    results: Annotated[Path, typer.Option(help="Folder of JSON.")] = RESULTS,
    runs: Annotated[Path, typer.Option(help="Folder of trainings.")] = Path("runs/reality"),
    cube: Annotated[Path, typer.Option(help="Table of cube tosses.")] = DEFAULT_CUBE,
) -> None:
    """Draw everything that is recorded."""
    by_data: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for trial in read_trials(results):
        if trial["budget"] == "steps":
            by_data[trial["data"]].append(trial)
    for data, trials in by_data.items():
        path = results / "figures" / f"{data}.png"
        save_figure(draw_problem(data, trials), path)
        print(path)
    trial = Trial("cube", "pcode", 0, "steps")
    if is_done(trial, results):
        try:
            test = load_parts(PROBLEMS["cube"], cube, runs / "data").test
        except MissingData as error:
            print(error)
            return
        toss = typical_toss(load(trial.model_folder(results)), test)
        path = results / "figures" / VIDEO
        write_video(path, play_toss(toss), FRAMES_PER_SECOND)
        print(path)


if __name__ == "__main__":
    typer.run(main)
