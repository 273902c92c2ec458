"""`Example`: one trajectory of a task, beside what each model makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from skipstone.errors import InvalidInput
from skipstone.models.base import Model
from skipstone.sequences import Sequences
from skipstone.tasks.base import CONTEXT, Scene
from skipstone.tasks.events import Events
from skipstone.tasks.recording import record
from skipstone.tasks.registry import find_task, task_options

FINE = 8
"""Moments for each interval between observations: paths are drawn, and played, between them."""

SEED = 1_000
"""Of the trajectories to draw from: not the one that any model was trained with."""

CANDIDATES = 32
"""Trajectories to choose an example from."""


@dataclass(frozen=True)
class Prediction:
    """A rollout from the last observation of the context to the end."""

    times: Float[np.ndarray, " moments"]
    """The moments of the example that lie in the rollout's range."""

    values: Float[np.ndarray, "moments dim"]
    """What is predicted for them."""

    knots: Float[np.ndarray, " updates"]
    """When the cell updates; the first is at the last observation of the context."""

    def at(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, "times dim"]:
        """What is predicted for any times, straight between the moments."""
        return np.stack([np.interp(times, self.times, column) for column in self.values.T], axis=-1)


@dataclass(frozen=True)
class Example:
    """A trajectory that no model has seen."""

    task: str
    """Where it comes from."""

    scene: Scene
    """How that is drawn."""

    times: Float[np.ndarray, " time"]
    """When it is observed; the first `CONTEXT` observations are given to the models."""

    values: Float[np.ndarray, "time dim"]
    """What is observed: coordinates, or the pixels of an image from 0 to 1."""

    moments: Float[np.ndarray, " moments"]
    """`FINE` moments for each interval, observations included."""

    track: Float[np.ndarray, "moments dim"]
    """What truly happens at them."""

    events: Events
    """The collisions."""

    predictions: dict[str, Prediction]
    """By the titles of models."""


@torch.inference_mode()
def make_example(name: str, models: Mapping[str, Model[Any]], row: int = 0) -> Example:
    """Trajectory `row` of `CANDIDATES`, predicted by each model."""
    task = find_task(name)
    usual = task.options
    options = task_options(
        task,
        trajectories=CANDIDATES,
        seed=SEED,
        spacing=usual.spacing / FINE,
        observations=(usual.observations - 1) * FINE + 1,
    )
    recording = record(task, options)
    controls = None if recording.controls is None else recording.controls[[row], ::FINE]
    fine = Sequences(recording.times[[row]], recording.values[[row]]).to(dtype=torch.float32)
    seen = Sequences(fine.times[:, ::FINE], fine.values[:, ::FINE], controls)
    moments = recording.times[row]
    later = moments[moments >= recording.times[row, (CONTEXT - 1) * FINE]]
    predictions = {}
    for title, model in models.items():
        path = model.rollout(seen.head(CONTEXT), seen.ends)
        values = path.evaluate(torch.as_tensor(later)[None])[0]
        knots = path.knots[0]
        predictions[title] = Prediction(
            later, values.double().numpy(), knots[knots.isfinite()].numpy()
        )
    return Example(
        task=name,
        scene=task.scene(options),
        times=seen.times[0].numpy(),
        values=seen.values[0].double().numpy(),
        moments=moments,
        track=fine.values[0].double().numpy(),
        events=recording.events[row],
        predictions=predictions,
    )


def make_examples(name: str, models: Mapping[str, Model[Any]], count: int) -> list[Example]:
    """The first `count` of the `CANDIDATES`, predicted by each model."""
    if not 1 <= count <= CANDIDATES:
        raise InvalidInput(f"count must be from 1 to {CANDIDATES}; got {count}.")
    return [make_example(name, models, row) for row in range(count)]
