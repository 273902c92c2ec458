"""A task and models as a user would bring them: registered, or known by their class path."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

from skipstone import RNN, Losses, register
from skipstone.paper.tasks import Observed, Options, Task


def observe(options: Options, times: np.ndarray, rng: np.random.Generator) -> Observed:
    """Points on a line, each with a speed of its own."""
    speeds = rng.uniform(-1, 1, (len(times), 1))
    return Observed((speeds * times)[..., None])


DOTS = Task("dots", "a point on a line", observe, Options(trajectories=40, observations=12))
"""So small that starting a process takes longer than training on it."""


class Plain(RNN):
    """An RNN by another name."""


class Failing(RNN):
    """Fails in its first step."""

    def loss(self, batch: Any, draws: Any = None) -> Losses:
        raise RuntimeError("it broke\non purpose")


class Dying(RNN):
    """Takes its process with it, as running out of memory does."""

    def loss(self, batch: Any, draws: Any = None) -> Losses:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class Mine(RNN):
    """Known by name once this module is imported."""


register(Mine)
register(DOTS)
