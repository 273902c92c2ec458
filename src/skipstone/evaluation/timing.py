"""How long a rollout takes on this machine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch

from skipstone.evaluation.estimate import Estimate
from skipstone.evaluation.rollouts import BATCH, predict
from skipstone.models.base import Model
from skipstone.sequences import Sequences

FEWEST, MOST, PATIENCE = 5, 50, 2.0
"""Rollouts timed for each batch size, after one that is not: as many as fit into these seconds,
within these numbers."""


@dataclass(frozen=True)
class WallTime:
    """The wall time of one rollout, read at all its observations."""

    batch: int
    """Trajectories rolled out together."""

    seconds: Estimate
    """Median of the repeats, between their quartiles."""


def time_rollouts(model: Model[Any], sequences: Sequences) -> tuple[WallTime, WallTime]:
    """Time rollouts of one trajectory, where latency counts, and of a full batch."""
    return _time(model, sequences, 1), _time(model, sequences, BATCH)


def _time(model: Model[Any], sequences: Sequences, size: int) -> WallTime:
    """Each repeat takes the next sequences, and starts over when there are no more."""
    following = itertools.cycle(range(len(sequences)))
    weight = next(model.parameters())

    def once() -> float:
        rows = list(itertools.islice(following, size))
        batch = sequences[rows].to(weight.device, weight.dtype)
        _wait_for(batch.values.device)
        began = perf_counter()
        predict(model, batch)
        _wait_for(batch.values.device)
        return perf_counter() - began

    once()
    seconds = []
    while len(seconds) < FEWEST or (len(seconds) < MOST and sum(seconds) < PATIENCE):
        seconds.append(once())
    low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
    return WallTime(size, Estimate(median, low, high))


def _wait_for(device: torch.device) -> None:
    """Accelerators work in the background: wait until they have done what was asked."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
