"""The game of one shot at pool, as planners see it: what can be done, and how good it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
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
from skipstone.planning.planners import Actions, Scores
from skipstone.sequences import Sequences

ROWS = 1_000
"""Candidates that are rolled out together: enough to fill the machine, few enough for its cache. A
thousand for the same table read its context once."""

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
"""Of the table, on both axes."""

Measure = Callable[[Path], Float[Tensor, " rows"]]
"""How bad each path of a batch is."""


class ShotSpace:
    """Velocities of the cue ball: any direction, at a speed within `SPEEDS`."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Actions:
        """Random shots, drawn like those in the training data."""
        shots = random_shots(rng, problems * candidates)
        return torch.as_tensor(shots.reshape(problems, candidates, 2), dtype=torch.float32)

    def project(self, actions: Actions) -> Actions:
        """The same direction, at the nearest speed there is; from no direction, to the right."""
        speed = actions.norm(dim=-1, keepdim=True)
        right = torch.tensor([1.0, 0.0]).to(actions)
        direction = torch.where(speed > 0, actions / speed, right)
        return direction * speed.clamp(*SPEEDS)


class _Score(ABC):
    """What scores have in common: tables, checked, and candidates in batches."""

    rollouts_each = 1
    """Rollouts that a candidate costs."""

    def __init__(self, tables: Any):
        self.tables = checked_tables(tables)
        self.rollouts = 0
        """Rollouts so far."""
        self.updates = 0
        """Cell updates that took."""
        self.evaluations = 0
        """Evaluations of an ODE's right-hand side that took."""
        self.watch: Callable[[int], None] = lambda rollouts: None
        """Called after every batch with the rollouts so far."""

    def __call__(self, actions: Tensor) -> Scores:
        """How close the target comes to the pocket, for each candidate of each table."""
        return self.measured(actions)[..., 0]

    def measured(self, actions: Tensor) -> Float[Tensor, "problems candidates measures"]:
        """The same by each of several measures, from one rollout."""
        if actions.ndim != 3 or actions.shape[2] != 2:
            raise InvalidInput(
                "shots must have shape (tables, candidates, 2), velocities of the cue ball; got "
                f"{tuple(actions.shape)}."
            )
        problems, candidates, _ = actions.shape
        if problems != len(self.tables):
            raise InvalidInput(
                f"there must be candidates for each of the {len(self.tables)} tables; got "
                f"{problems} rows of them."
            )
        tables = np.repeat(self.tables, candidates, axis=0)
        scores = []
        for start, shots in enumerate(actions.flatten(0, 1).split(ROWS)):
            scores.append(self._score(tables[start * ROWS :][: len(shots)], shots))
            self.rollouts += len(shots) * self.rollouts_each
            self.watch(self.rollouts)
        return torch.cat(scores).reshape(problems, candidates, -1)

    @abstractmethod
    def _score(
        self, tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        """The scores of one shot at each table."""


class TrueScore(_Score):
    """What truly happens, from the simulator, exact at all times: the best a model could do."""

    def _score(
        self, tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        distance = pocket_distance(play(tables, shots.detach().double().numpy()))
        return torch.as_tensor(distance[:, None], dtype=shots.dtype)


class ImaginedScore(_Score):
    """What a model trained on `shots` imagines, by rolling it out.

    Each of `measures` makes a score of an imagined path: `closest_observation` as in the paper, or
    `closest_approach`, at all times, since a ball that is fast passes the pocket between two
    observations. Scores can be differentiated by the shots.
    """

    def __init__(self, model: Any, tables: Any, *measures: Measure):
        super().__init__(tables)
        self.model = checked_model(model)
        self.measures = measures or (closest_observation,)

    def _score(
        self, tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        return self._imagined(tables, shots, self.measures)

    def _imagined(
        self,
        tables: Float[np.ndarray, "rows 2 2"],
        shots: Float[Tensor, "rows 2"],
        measures: Sequence[Measure],
    ) -> Float[Tensor, "rows measures"]:
        with torch.inference_mode(not shots.requires_grad):
            path = imagine(self.model, tables, shots)
            score = torch.stack([measure(path) for measure in measures], dim=1)
        self.updates += int(path.num_updates.sum())
        self.evaluations += int(path.num_evaluations.sum())
        # Outside inference mode, so that scores are tensors like any others.
        return score.clone()


class MirroredScore(ImaginedScore):
    """What a model imagines of a shot and of its seven mirror images, on average, at all times.

    The table is a square: turned over or around, the same happens on it. A model has learned that
    only roughly, so that it errs differently on each, and less on average. A candidate costs eight
    rollouts.
    """

    rollouts_each = len(MIRRORS)

    def __init__(self, model: Any, tables: Any):
        super().__init__(model, tables)

    def _score(
        self, tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
    ) -> Float[Tensor, "rows measures"]:
        scores = []
        for mirror in MIRRORS:
            turn = mirror.double().numpy()
            pocket = CENTRE + turn @ (np.array(POCKET) - CENTRE)
            seen = CENTRE + (tables - CENTRE) @ turn.T
            measure = partial(closest_approach, pocket=tuple(pocket.tolist()))
            scores.append(self._imagined(seen, shots @ mirror.T.to(shots), [measure]))
        return torch.stack(scores).mean(0)


def imagine(
    model: Model[Any], tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
) -> Path:
    """A model's idea of what each shot does."""
    context = struck(model, tables, shots)
    moment = (model.config.num_context - 1) * SPACING
    later = [moment + SPACING], context.values.new_zeros(len(context), 1, 2)
    return model.rollout(context, moment + AFTER_SHOT * SPACING, controls=later)


def struck(
    model: Model[Any], tables: Float[np.ndarray, "rows 2 2"], shots: Float[Tensor, "rows 2"]
) -> Sequences:
    """What a model sees before each shot: as in the data, the cue ball is struck at the last
    observation of a context in which nothing moves."""
    count, weight = model.config.num_context, next(model.parameters())
    place = torch.as_tensor(tables).reshape(len(tables), 1, 4).to(weight)
    controls = torch.nn.functional.pad(shots[:, None].to(weight), (0, 0, count - 1, 0))
    return Sequences.from_array(place.expand(-1, count, -1), SPACING, controls=controls)


def closest_observation(path: Path) -> Float[Tensor, " rows"]:
    """How close the target comes to the pocket at the observations after the shot."""
    return _from_pocket(path, _observations(path), POCKET).norm(dim=-1).amin(1)


def closest_approach(path: Path, pocket: tuple[float, float] = POCKET) -> Float[Tensor, " rows"]:
    """How close the target comes to the pocket at any time.

    A path is measured along chords, each to its closest point. They join its knots, where it may
    turn, and the observations, between which it bends only slightly.
    """
    knots = path.knots.minimum(path.end[:, None])
    times = torch.cat([knots, _observations(path)], dim=1).sort(dim=1).values
    offset = _from_pocket(path, times, pocket)
    begin, chord = offset[:, :-1], offset.diff(dim=1)
    # A knot at an observation makes a chord without length: any share of it will do.
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
    """Tables as an array, if two balls can lie like that."""
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
    """Shots as an array, if they are allowed."""
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
    """The model, if it can imagine shots."""
    config = model.config if isinstance(model, Model) else None
    if config is None or (config.dim, config.control) != (4, 2):
        kind = type(model).__name__
        what = f"a {kind}"
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
