"""All data sets, with the sizes and budgets that every peer gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.reality.cube import load_cube, position_error, rotation_error
from benchmarks.reality.logs import (
    GLUCOSE_CONTEXT,
    STORM_CONTEXT,
    great_circle,
    load_glucose,
    load_storms,
)
from benchmarks.reality.problem import Parts, Problem, by_columns
from benchmarks.reality.simulators import load_pool, load_walker
from skipstone import Sequences, load_task
from skipstone.files import replacing

WALKS = "random starts; 600 episodes to train, 100 to test; 10 observations, then 90 ahead (0.72 s)"


def load_billiards(file: Path | None = None) -> Parts:
    """The paper's two balls on a line; few to test, because an event ODE rolls out one by one."""
    task = load_task("billiards1d", trajectories=4_000, seed=0)
    return Parts(task.train, task.validation[:100], task.test[:100])


def _walks(**about: Any) -> Problem:
    """A walker of MuJoCo: all are watched and trained alike."""
    return Problem(num_context=10, horizon=90, steps=1_500, max_step=80.0, **about)


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Problem(
            name="cube",
            title="cube tosses",
            about="570 real tosses of a cube onto a table, 148 Hz; split by toss; from 10 frames "
            "to the end of the toss. Features are the corners' positions.",
            load=load_cube,
            num_context=10,
            # Nearly a whole toss: what is learned on shorter windows does not hold beyond them.
            horizon=87,
            steps=2_000,
            target_step=40.0,
            max_step=80.0,
            distances={"position, mm": position_error, "rotation, °": rotation_error},
        ),
        _walks(
            name="hopper",
            title="Hopper falls",
            about=f"Hopper-v5 without actions; {WALKS}.",
            load=lambda file: load_walker("Hopper-v5", hold=0),
            target_step=10.0,
        ),
        _walks(
            name="hopper-held",
            title="Hopper, actions held",
            about=f"Hopper-v5, a random action every 8 steps, known in advance; {WALKS}.",
            load=lambda file: load_walker("Hopper-v5", hold=8),
            target_step=5.0,
            seeds=1,
        ),
        _walks(
            name="hopper-actions",
            title="Hopper, new actions",
            about=f"Hopper-v5, a random action at every step, known in advance; {WALKS}.",
            load=lambda file: load_walker("Hopper-v5", hold=1),
            target_step=5.0,
            seeds=1,
        ),
        _walks(
            name="walker",
            title="Walker2d falls",
            about=f"Walker2d-v5 without actions; {WALKS}.",
            load=lambda file: load_walker("Walker2d-v5", hold=0),
            target_step=10.0,
            seeds=1,
        ),
        Problem(
            name="pool",
            title="pool",
            about="pooltool: two balls with friction, spin and cushions; 1,500 shots to train and "
            "their mirror images, 300 to test; positions alone; 5 observations, then 56 ahead "
            "(2.2 s).",
            load=load_pool,
            num_context=5,
            steps=3_000,
            watched=61,
            target_step=5.0,
            max_step=56.0,
            distances={"balls, cm": lambda one, other: _balls(one, other)},
        ),
        Problem(
            name="storms",
            title="hurricanes",
            about="NOAA's Atlantic storms: position, wind and pressure at irregular reports; split "
            "by storm; 4 reports, then 24 hours ahead.",
            load=load_storms,
            num_context=STORM_CONTEXT,
            horizon=6,
            steps=600,
            scale_changes=True,
            target_step=4.0,
            max_step=6.0,
            distances={"track, km": great_circle, "wind, kn": by_columns(2)},
        ),
        Problem(
            name="glucose",
            title="glucose",
            about="One person's glucose sensor, 52,000 readings about 5 minutes apart, with gaps; "
            "split by time; an hour, then 2 hours ahead.",
            load=load_glucose,
            num_context=GLUCOSE_CONTEXT,
            horizon=24,
            steps=1_500,
            target_step=6.0,
            max_step=24.0,
            distances={"glucose, mg/dl": by_columns(0)},
        ),
        Problem(
            name="billiards1d",
            title="two balls on a line",
            about="The paper's billiards1d, here for the neural event ODE; 4 observations, then 41 "
            "ahead.",
            load=load_billiards,
            num_context=4,
            steps=1_500,
            seconds=300.0,
            seeds=1,
            watched=45,
            target_step=5.4,
            only=("pcode", "rnn", "event"),
            distances={"balls, 1e-3": by_columns(0, 1, scale=1e3)},
        ),
    )
}


def _balls(predicted: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Mean distance of the two balls in centimetres."""
    apart = (predicted - observed).reshape(len(predicted), -1, 2)
    return 100 * np.linalg.norm(apart, axis=2).mean(axis=1)


CACHED = ("cube", "hopper", "hopper-held", "hopper-actions", "walker", "pool")
"""Data that take long to make. Delete the cache when their code changes."""


def load_parts(problem: Problem, file: Path | None, cache: Path) -> Parts:
    """The data of a problem; what takes long is kept in a folder for the next process."""
    if problem.name not in CACHED:
        return problem.load(file)
    path = cache / f"{problem.name}.npz"
    if not path.is_file():
        parts = problem.load(file)
        content = {
            f"{name}.{kind}": getattr(part, kind).numpy()
            for name, part in parts._asdict().items()
            for kind in ("times", "values", "controls", "mask")
            if getattr(part, kind) is not None
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside, beside.open("wb") as open_file:
            np.savez_compressed(open_file, **content)
    with np.load(path) as kept:
        return Parts(*(_part(kept, name) for name in Parts._fields))


def _part(kept: np.lib.npyio.NpzFile, name: str) -> Sequences:
    controls = kept.get(f"{name}.controls")
    return Sequences(
        kept[f"{name}.times"],
        torch.as_tensor(kept[f"{name}.values"]).float(),
        None if controls is None else torch.as_tensor(controls).float(),
        kept[f"{name}.mask"],
    )
