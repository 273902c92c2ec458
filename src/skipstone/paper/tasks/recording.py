"""`Recording`: a task's trajectories as arrays, before they become `Sequences`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


_WHOLE, _REAL = "iu", "fiu"
_ARRAYS = {
    "times": ("f", "batch time"),
    "values": (_REAL, "batch time dim"),
    "controls": (_REAL, "batch time control"),
    "keep": ("b", "batch time"),
    "events.offsets": (_WHOLE, "batch_plus_one"),
    "events.times": (_REAL, "event"),
    "events.kinds": (_WHOLE, "event"),
    "events.balls": (_WHOLE, "event"),
    "events.others": (_WHOLE, "event"),
    "events.positions": (_REAL, "event ball axis"),
    "events.velocities": (_REAL, "event ball axis"),
}
"""Kinds of numbers, as numpy calls them, and axes of all arrays of a recording."""


def check_arrays(arrays: Mapping[str, np.ndarray], options: Options) -> None:
    """Raise `ValueError` unless arrays are of the kinds and sizes that `record` makes."""
    sizes = {"batch": options.trajectories, "time": options.observations}
    sizes["batch_plus_one"] = options.trajectories + 1
    for name, (kinds, shape) in _ARRAYS.items():
        if name == "controls" and name not in arrays:
            continue
        array, axes = arrays[name], shape.split()
        due = [sizes.setdefault(*each) for each in zip(axes, array.shape, strict=False)]
        if array.dtype.kind not in kinds or array.ndim != len(axes) or [*array.shape] != due:
            raise ValueError(f"{name} are {array.dtype} of shape {array.shape}")
    offsets = arrays["events.offsets"]
    if offsets[0] != 0 or offsets[-1] != sizes["event"] or (np.diff(offsets) < 0).any():
        raise ValueError("its events are not those of its trajectories")


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
