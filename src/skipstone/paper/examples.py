"""`Example`: one trajectory of a task, beside what each model predicts of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from skipstone.errors import InvalidInput
from skipstone.evaluation.rollouts import predict, roll_out_all
from skipstone.models.base import Model
from skipstone.paper.groups import OURS
from skipstone.paper.tasks.base import CONTEXT, Scene
from skipstone.paper.tasks.events import Events
from skipstone.paper.tasks.registry import find_task
from skipstone.sequences import Sequences

FINE = 8
"""Moments for each interval between observations, at which paths are drawn and played."""

SEED = 1_000
"""Seed of the examples' trajectories; no model was trained with it."""

CANDIDATES = 32
"""Trajectories to choose an example from."""

# Times this much later than a moment are rounding.
_SLACK = 1e-9


@dataclass(frozen=True)
class Prediction:
    """A rollout from the last observation of the context to the end."""

    times: Float[np.ndarray, " moments"]
    """Moments of the example within the rollout."""

    values: Float[np.ndarray, "moments dim"]
    """Predicted values at them."""

    knots: Float[np.ndarray, " updates"]
    """When the cell updates; the first is at the last observation of the context."""

    def at(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, "times dim"]:
        """Predicted values at any times, interpolated linearly."""
        return np.stack([np.interp(times, self.times, column) for column in self.values.T], axis=-1)

    def until(self, moment: float) -> Prediction:
        """The prediction up to `moment`; empty if that is in the context."""
        past = self.times <= moment + _SLACK
        knots = self.knots[self.knots <= moment + _SLACK]
        return Prediction(self.times[past], self.values[past], knots)


@dataclass(frozen=True)
class Example:
    """A trajectory that no model has seen."""

    task: str
    """Name of its task."""

    scene: Scene
    """How it is drawn."""

    times: Float[np.ndarray, " time"]
    """When it is observed; the first `CONTEXT` observations are given to the models."""

    values: Float[np.ndarray, "time dim"]
    """Observations: coordinates, or the pixels of an image from 0 to 1."""

    moments: Float[np.ndarray, " moments"]
    """`FINE` moments for each interval, observations included."""

    track: Float[np.ndarray, "moments dim"]
    """True values at the moments."""

    events: Events
    """The collisions."""

    predictions: dict[str, Prediction]
    """By the titles of models."""

    @property
    def spacing(self) -> float:
        """Time between two observations."""
        return float(np.median(np.diff(self.times)))

    def until(self, moment: float) -> Example:
        """The example up to its last moment at or before `moment`."""
        seen, past = self.times <= moment + _SLACK, self.moments <= moment + _SLACK
        cut = {title: made.until(moment) for title, made in self.predictions.items()}
        return replace(
            self,
            times=self.times[seen],
            values=self.values[seen],
            moments=self.moments[past],
            track=self.track[past],
            events=self.events.until(np.array([moment])),
            predictions=cut,
        )


@torch.inference_mode()
def make_example(name: str, models: Mapping[str, Model[Any]], row: int = 0) -> Example:
    """Trajectory `row` of `CANDIDATES`, predicted by each model."""
    task = find_task(name)
    seen, tracks, events = _candidates(name)
    times, moments = seen.times[0].numpy(), tracks.times[0].numpy()
    seen, later = seen[[row]], moments[(CONTEXT - 1) * FINE :]
    return Example(
        task=name,
        scene=task.scene(task.options),
        times=times,
        values=seen.values[0].double().numpy(),
        moments=moments,
        track=tracks[[row]].to(dtype=torch.float32).values[0].double().numpy(),
        events=events[row].until(times[[-1]]),
        predictions={title: _predicted(model, seen, later) for title, model in models.items()},
    )


@torch.inference_mode()
def typical_row(name: str, models: Mapping[str, Model[Any]]) -> int:
    """Which of the `CANDIDATES` is typical: its error is the median of the PC-ODE's errors, or of
    the first model's if there is no PC-ODE. Of two in the middle, the one with the smaller error.
    """
    model = models[typical_for(models)]
    errors = roll_out_all(model, _candidates(name)[0]).errors
    each = errors.values.sum(1) / errors.observed.sum(1)
    return int(np.argsort(each, kind="stable")[(CANDIDATES - 1) // 2])


def typical_for(titles: Iterable[str]) -> str:
    """The model whose errors say which trajectory is typical."""
    known = list(titles)
    return OURS if OURS in known else known[0]


def _candidates(name: str) -> tuple[Sequences, Sequences, Events]:
    """Trajectories of a task: as they are observed, at all moments, and their collisions."""
    task = find_task(name)
    count, spacing = task.options.observations, task.options.spacing
    times = spacing * np.arange(count)
    moments = spacing / FINE * np.arange((count - 1) * FINE + 1)
    # Asked for together, observations and moments are of the very same trajectories.
    every = np.tile(np.concatenate([times, moments]), (CANDIDATES, 1))
    observed = task.observe(task.options, every, np.random.default_rng(SEED))
    controls = None if observed.controls is None else observed.controls[:, :count]
    seen = Sequences(every[:, :count], observed.values[:, :count], controls)
    tracks = Sequences(every[:, count:], observed.values[:, count:])
    return seen.to(dtype=torch.float32), tracks, observed.events


def _predicted(
    model: Model[Any], seen: Sequences, times: Float[np.ndarray, " moments"]
) -> Prediction:
    path, _ = predict(model, seen.to(next(model.parameters()).device))
    knots = path.knots[0]
    values = path.evaluate(torch.as_tensor(times)[None])[0]
    return Prediction(times, values.double().numpy(), knots[knots.isfinite()].numpy())


def make_examples(name: str, models: Mapping[str, Model[Any]], count: int) -> list[Example]:
    """The first `count` of the `CANDIDATES`, predicted by each model."""
    if not 1 <= count <= CANDIDATES:
        raise InvalidInput(f"count must be from 1 to {CANDIDATES}; got {count}.")
    return [make_example(name, models, row) for row in range(count)]
