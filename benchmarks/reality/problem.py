"""What a data set has to say: its parts, its sizes, and its errors in units that people know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from skipstone import Sequences

Distance = Callable[
    [Float[np.ndarray, "points dim"], Float[np.ndarray, "points dim"]], Float[np.ndarray, " points"]
]
"""How far predictions are from observations, in one unit."""


class Parts(NamedTuple):
    """Data that no sequence of one part shares with another."""

    train: Sequences
    validation: Sequences
    test: Sequences


class MissingData(Exception):
    """Data that this machine does not have; the message says where to get them."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One data set, the forecast that is asked for, and the budget to learn it with."""

    name: str
    """In commands and file names."""

    title: str
    """In tables and figures."""

    about: str
    """What it is, how it is split and what is predicted, in a sentence or two."""

    load: Callable[[Path | None], Parts]
    """`load(file)`: the data; `file` is for those that are not in a package."""

    num_context: int
    """Observations that every forecast is made from."""

    horizon: int | None = None
    """Observations after the context to train on, as windows; None for whole sequences."""

    hidden: int = 64
    """Units of every model."""

    batch_size: int = 64
    """Sequences or windows of a training step."""

    steps: int = 2_000
    """Training steps: the budget of the first table."""

    seconds: float = 60.0
    """Training time on one thread: the budget of the second."""

    target_step: float = 5.0
    """Mean step that the PC-ODE is trained for, in observations."""

    max_step: float = 100.0
    """Its longest step: about as long as what it was trained on."""

    noise: float = 0.0
    """Noise on encoder inputs at the start of training, as a share of the data's size."""

    seeds: int = 3
    """How often each peer is trained, at most."""

    scale_changes: bool = False
    """Whether features are scaled by how much they change over the horizon, instead of by how much
    they differ: for tracks all over an ocean, of which a day's way is a small part."""

    watched: int = 100
    """Observations of a sequence that is used whole, about: to tell the hours."""

    only: tuple[str, ...] = ()
    """The only trained peers that take part; empty for all."""

    distances: dict[str, Distance] = field(default_factory=dict)
    """Errors that people know, by name and unit; the first one is the one that counts. Without
    any it is the error in scaled units."""


def by_columns(*columns: int, scale: float = 1.0) -> Distance:
    """Euclidean distance over some features."""

    def distance(predicted: np.ndarray, observed: np.ndarray) -> np.ndarray:
        apart = predicted[:, list(columns)] - observed[:, list(columns)]
        return scale * np.linalg.norm(apart, axis=1)

    return distance
