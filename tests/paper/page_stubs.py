"""Examples by exact arithmetic, and a page that shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import imageio.v3 as iio
import numpy as np

from skipstone.paper.examples import Example, Prediction
from skipstone.paper.page import FigureCard, TableCard, VideoCard, write_page
from skipstone.paper.tasks.base import CONTEXT, Scene
from skipstone.paper.tasks.events import Events, Kind

ABOUT = {"version": "0.1.0", "source": "https://example.org/skipstone"}
TASKS = {"plane": "shots", "time": "billiards1d", "film": "pixels2d"}
SPACING, OBSERVATIONS, FINE = 0.25, 9, 8
TRICK = '</script><script>alert("1")</script> & <b>'


def make_track(kind: str, moments: np.ndarray) -> np.ndarray:
    """Two balls that roll straight on, or a film whose upper half is bright and ever darker."""
    if kind == "film":
        image = np.zeros((28, 28))
        image[:14] = 1
        return image.ravel() * (1 - moments[:, None] / 4)
    starts, speeds = np.array([0.2, 0.8, 0.7, 0.3]), np.array([0.1, -0.2, 0.05, 0.15])
    columns = [0, 1, 2, 3] if kind == "plane" else [0, 2]
    return starts[columns] + speeds[columns] * moments[:, None]


def make_events(axes: int) -> Events:
    """The first ball meets a wall, then the second ball."""
    nowhere = np.zeros((2, 2, axes))
    return Events(
        offsets=np.array([0, 2]),
        times=np.array([0.5, 1.25]),
        kinds=np.array([Kind.WALL, Kind.BALL]),
        balls=np.array([0, 0]),
        others=np.array([1, 1]),
        positions=nowhere,
        velocities=nowhere,
    )


def make_stub(kind: Literal["plane", "time", "film"]) -> Example:
    """An example by exact arithmetic: the PC-ODE updates twice, the RNN at every observation."""
    moments = np.arange((OBSERVATIONS - 1) * FINE + 1) * SPACING / FINE
    track, times = make_track(kind, moments), moments[::FINE]
    first = (CONTEXT - 1) * FINE
    pocket = (1.0, 0.0, 0.15) if kind == "plane" else None
    return Example(
        task=TASKS[kind],
        scene=Scene(kind, 0.1, pocket, ("cue", "target") if kind == "plane" else ()),
        times=times,
        values=track[::FINE],
        moments=moments,
        track=track,
        events=make_events(1 if kind == "time" else 2),
        predictions={
            "PC-ODE": Prediction(moments[first:], 0.9 * track[first:], np.array([0.75, 1.3])),
            "RNN": Prediction(moments[first:], 0.8 * track[first:], times[CONTEXT - 1 : -1]),
        },
    )


def make_open() -> Example:
    """A point in the open, without collisions and without models."""
    stub = make_stub("plane")
    track = stub.track[:, :2] * 7
    parts = {"track": track, "values": track[::FINE], "predictions": {}, "events": Events.none(1)}
    return replace(stub, task="lines", scene=Scene("plane"), **parts)


EXAMPLES = [make_stub("plane"), make_stub("time"), make_stub("film"), make_open()]


def write_stub_page(folder: Path) -> Path:
    """A page with everything in it, and with texts that try to break out of their places."""
    grey = np.linspace(0, 255, 64 * 1200).reshape(64, 1200).astype(np.uint8)
    iio.imwrite(folder / "wide.png", grey)
    iio.imwrite(folder / "film.gif", [grey[:, :80], grey[:, 80:160]])
    iio.imwrite(folder / "film.mp4", np.stack([grey[:, :64, None].repeat(3, 2)] * 4), fps=4)
    write_page(
        folder / "index.html",
        title=f"All of it {TRICK}",
        summary=["It works.", TRICK],
        findings=TableCard(
            "Found",
            TRICK,
            ["task", "ours", "theirs"],
            [[f"task {row}", "1", "2"] for row in range(8)],
            [("", 1), (TRICK, 2)],
        ),
        tables=[
            TableCard("Errors", TRICK, ["model", "mse"], [["RNN", "0.25 ± 0.01"], ["<i>", "–"]])
        ],
        figures=[FigureCard("A figure", TRICK, folder / "wide.png", alt=f'"quoted" {TRICK}')],
        videos=[
            VideoCard("A film", "Grey.", folder / "film.mp4"),
            VideoCard(TRICK, "", folder / "film.gif"),
        ],
        examples=[replace(EXAMPLES[0], scene=Scene("plane", 0.1, None, (TRICK,))), *EXAMPLES[1:]],
        about=ABOUT | {"command": TRICK},
    )
    return folder / "index.html"
