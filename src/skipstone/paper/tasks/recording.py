"""`Recording`: a task's trajectories as arrays, before they become `Sequences`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Num

from skipstone.paper.tasks.base import CONTEXT, Observed, Options, Task
from skipstone.paper.tasks.events import Events

CHUNK = 500
"""Trajectories made at a time: enough to vectorise over, few enough to stay in the caches."""


@dataclass(frozen=True)
class Recording:
    """Observations of a batch of trajectories, with their true collisions."""

    times: Float[np.ndarray, "batch time"]
    """Time of each observation."""
    values: Num[np.ndarray, "batch time dim"]
    """Observations."""
    controls: Float[np.ndarray, "batch time control"] | None
    """Known inputs to the system, if any."""
    keep: Bool[np.ndarray, "batch time"]
    """Which observations are not dropped."""
    events: Events
    """Collisions up to the last observation, dropped ones included."""


def record(
    task: Task, options: Options, advance: Callable[[int], None] = lambda count: None
) -> Recording:
    """Play a task; `advance(count)` is told how many more trajectories are done."""
    clock, dropper, player = np.random.default_rng(options.seed).spawn(3)
    times = _observation_times(options, clock)
    keep = dropper.uniform(size=times.shape) >= options.drop
    keep[:, :CONTEXT] = True
    parts: list[Observed] = []
    for start in range(0, options.trajectories, CHUNK):
        chunk = times[start : start + CHUNK]
        parts.append(task.observe(options, chunk, player))
        advance(len(chunk))
    controls = [part.controls for part in parts if part.controls is not None]
    return Recording(
        times,
        np.concatenate([part.values for part in parts]),
        np.concatenate(controls) if controls else None,
        keep,
        Events.concat([part.events for part in parts]).until(times[:, -1]),
    )


def _observation_times(
    options: Options, rng: np.random.Generator
) -> Float[np.ndarray, "batch time"]:
    shape = options.trajectories, options.observations
    shift = options.jitter * rng.uniform(-0.5, 0.5, shape)
    shift[:, 0] = 0
    return options.spacing * (np.arange(options.observations) + shift)
