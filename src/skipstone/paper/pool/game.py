"""One shot at pool as a planning problem: the actions, and scores of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import Model
from skipstone.paper.tasks.billiards import check_placement
from skipstone.paper.tasks.shots import (
    AFTER_SHOT,
    POCKET,
    SPACING,
    SPEEDS,
    TARGET,
    play,
    pocket_distance,
    random_shots,
)
from skipstone.path import Path
from skipstone.planning.planners import Actions
from skipstone.planning.scores import BatchScore, Controls, Cost, Measure, RolloutScore
from skipstone.sequences import Sequences

MIRRORS = torch.tensor(
    [
        [[x, 0.0], [0.0, y]] if upright else [[0.0, x], [y, 0.0]]
        for upright in (True, False)
        for x in (1.0, -1.0)
        for y in (1.0, -1.0)
    ]
)
"""The symmetries of a square about its centre, the identity first."""

CENTRE = 0.5
"""Centre of the table, on both axes."""


class ShotSpace:
    """Velocities of the cue ball: any direction, at a speed within `SPEEDS`."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Actions:
        """Random shots, drawn like those in the training data."""
        shots = random_shots(rng, problems * candidates)
        return torch.as_tensor(shots.reshape(problems, candidates, 2), dtype=torch.float32)

    def project(self, actions: Actions) -> Actions:
        """The same direction, at the nearest allowed speed; no direction becomes to the right."""
        speed = actions.norm(dim=-1, keepdim=True)
        right = torch.tensor([1.0, 0.0]).to(actions)
        direction = torch.where(speed > 0, actions / speed, right)
        return direction * speed.clamp(*SPEEDS)


class TrueScore(BatchScore):
    """The true distance to the pocket, from the simulator: the upper bound for every model."""

    def __init__(self, tables: Any, cost: Cost | None = None):
        self.tables = checked_tables(tables)
        super().__init__(len(self.tables), width=2, cost=cost)

    def _score(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        motion = play(self.tables[problems.numpy()], actions.detach().double().numpy())
        self.cost.add(len(actions))
        return torch.as_tensor(pocket_distance(motion)[:, None], dtype=actions.dtype)


class ImaginedScore(RolloutScore):
    """The distance to the pocket that a model trained on `shots` predicts.

    Each of `measures` makes a score of a predicted path: `closest_observation` as in the paper, or
    `closest_approach`, at all times, since a fast ball passes the pocket between two observations.
    """

    def __init__(self, model: Any, tables: Any, *measures: Measure, cost: Cost | None = None):
        self.tables = checked_tables(tables)
        super().__init__(
            checked_model(model),
            *_before_shot(model, self.tables),
            *(measures or (closest_observation,)),
            width=2,
            cost=cost,
        )


class MirroredScore(BatchScore):
    """The mean predicted distance of a shot and of its seven mirror images, at all times.

    The table is a square: its symmetries change nothing. A model has learned that only roughly, so
    it errs differently on each image, and less on average. A candidate costs eight rollouts.
    """

    def __init__(self, model: Any, tables: Any, cost: Cost | None = None):
        tables = checked_tables(tables)
        super().__init__(len(tables), width=2, cost=cost)
        self._views = []
        for mirror in MIRRORS.double().numpy():
            pocket = CENTRE + mirror @ (np.array(POCKET) - CENTRE)
            measure = partial(closest_approach, pocket=tuple(pocket.tolist()))
            mirrored = CENTRE + (tables - CENTRE) @ mirror.T
            self._views.append(ImaginedScore(model, mirrored, measure, cost=self.cost))

    def _score(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        views = zip(self._views, MIRRORS.to(actions), strict=True)
        scores = [view._score(problems, actions @ mirror.T) for view, mirror in views]
        return torch.stack(scores).mean(0)


def imagine(
    model: Model[Any], tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
) -> Path:
    """The path a model predicts for one shot at each table."""
    score = RolloutScore(model, *_before_shot(model, tables), closest_observation)
    return score.rollout(torch.arange(len(shots)), shots)


def _before_shot(
    model: Model[Any], tables: Float[np.ndarray, "rows 2 2"]
) -> tuple[Sequences, Controls, float]:
    """Context, controls and end of a rollout: as in the data, balls at rest are observed until the
    cue ball is struck, at the last observation of the context."""
    count = model.config.num_context
    moment = (count - 1) * SPACING
    places = torch.as_tensor(tables).reshape(-1, 1, 4).expand(-1, count, -1)
    still = places.new_zeros(len(places), count, 2)
    context = Sequences.from_array(places, SPACING, controls=still)

    def controls(shots: Float[Tensor, "rows 2"]) -> tuple[Tensor, tuple[list[float], Tensor]]:
        return shots, ([moment + SPACING], shots.new_zeros(len(shots), 1, 2))

    return context, controls, moment + AFTER_SHOT * SPACING


def closest_observation(path: Path) -> Float[Tensor, " rows"]:
    """Closest distance of the target to the pocket at the observations after the shot."""
    return _from_pocket(path, _observations(path), POCKET).norm(dim=-1).amin(1)


def closest_approach(path: Path, pocket: tuple[float, float] = POCKET) -> Float[Tensor, " rows"]:
    """Closest distance of the target to the pocket at any time.

    It is measured along chords between knots, where the path may turn, and observations, between
    which it bends only slightly.
    """
    knots = path.knots.minimum(path.end[:, None])
    times = torch.cat([knots, _observations(path)], dim=1).sort(dim=1).values
    offset = _from_pocket(path, times, pocket)
    begin, chord = offset[:, :-1], offset.diff(dim=1)
    # A knot at an observation makes a chord of no length: any point of it will do.
    squared = chord.square().sum(-1).clamp(min=torch.finfo(chord.dtype).tiny)
    foot = (-(begin * chord).sum(-1) / squared).clamp(0, 1)
    return (begin + foot[..., None] * chord).norm(dim=-1).amin(1)


def _observations(path: Path) -> Float[Tensor, "rows time"]:
    after = torch.arange(1, AFTER_SHOT + 1, dtype=torch.float64, device=path.start.device)
    return path.start[:, None] + SPACING * after


def _from_pocket(
    path: Path, times: Float[Tensor, "rows time"], pocket: tuple[float, float]
) -> Float[Tensor, "rows time 2"]:
    target = path.evaluate(times)[..., 2 * TARGET : 2 * TARGET + 2]
    return target - torch.tensor(pocket).to(target)


def checked_tables(tables: Any) -> Float[np.ndarray, "problems 2 2"]:
    """Tables as an array; raise unless two balls can lie like that."""
    tables = np.asarray(tables, dtype=np.float64)
    if tables.ndim != 3 or tables.shape[1:] != (2, 2) or len(tables) == 0:
        raise InvalidInput(
            "tables must have shape (tables, 2, 2): x and y of the cue ball and of the target; got "
            f"{tables.shape}." + (" Give table[None]." if tables.shape == (2, 2) else "")
        )
    if not np.isfinite(tables).all():
        raise InvalidInput("tables must be finite; got NaN or infinity.")
    check_placement(tables, each="table")
    return tables


def checked_shots(shots: Any) -> Float[np.ndarray, "problems 2"]:
    """Shots as an array; raise unless they are allowed."""
    shots = np.asarray(shots, dtype=np.float64)
    if shots.ndim != 2 or shots.shape[1] != 2:
        raise InvalidInput(
            "a shot is the velocity of the cue ball, two numbers; got an array of shape "
            f"{shots.shape[1:] if shots.ndim else ()}."
        )
    if not np.isfinite(shots).all():
        raise InvalidInput("the velocities of a shot must be finite; got NaN or infinity.")
    slow, fast = SPEEDS
    speed = np.linalg.norm(shots, axis=1)
    # Room for rounding: shots are made in single precision.
    bad = np.flatnonzero((speed < slow * (1 - 1e-6)) | (speed > fast * (1 + 1e-6)))
    if len(bad):
        raise InvalidInput(
            f"a shot's speed must be between {slow:g} and {fast:g}; {shots[bad[0]].tolist()} has "
            f"{speed[bad[0]]:.4g}. Scale it, or use ShotSpace().project."
        )
    return shots


def checked_model(model: Any) -> Model[Any]:
    """The model; raise unless it was trained on shots."""
    config = model.config if isinstance(model, Model) else None
    if config is None or (config.dim, config.control) != (4, 2):
        what = f"a {type(model).__name__}"
        if config is not None:
            what += f" of data with {config.dim} features and {config.control} controls"
        raise InvalidInput(
            "a planner's model must have been trained on shots, 4 features and 2 controls; got "
            f"{what}. Train one: skipstone train shots pcode"
        )
    if abs(config.time_unit / SPACING - 1) > 1e-3:
        raise InvalidInput(
            f"a planner's model must have been trained on shots, observed every {SPACING:g}; this "
            f"one's unit of time is {config.time_unit:g}."
        )
    return model
