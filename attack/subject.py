"""What is attacked: a small training that ends with the same weights each time, and a table."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch

from skipstone import PCODE, Recipe, Sequences, fit

RECIPE = Recipe(steps=12, batch_size=4, validate_every=4, checkpoint_every=2)
"""Seconds, with several checkpoints and validations."""

COLUMNS = ["--id", "who", "--time", "time", "--values", "x,y"]
"""Columns of the table."""

FIT = [*COLUMNS, "--steps", "2", "--set", "hidden=4", "--horizon", "3", "--device", "cpu"]
"""Options of a training on it that takes a second."""


def data() -> Sequences:
    """Sixteen random walks."""
    walks = np.random.default_rng(0).normal(size=(16, 10, 1)).cumsum(1)
    return Sequences.from_array(walks.astype(np.float32))


def train(folder: Path) -> None:
    """Train into a folder, from wherever it stands."""
    torch.manual_seed(0)
    sequences = data()
    model = PCODE.for_data(sequences, hidden=4, layers=2, step_layers=1)
    fit(model, sequences, folder=folder, recipe=RECIPE, device="cpu", progress=False)


def weights(folder: Path) -> str:
    """Checksum of the weights that a training ended with."""
    return hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()


def write_log(path: Path) -> None:
    """A table of twelve logs."""
    lines = ["who,time,x,y"]
    for who in range(12):
        lines += [f"{who},{t},{np.sin(t + who):.6f},{np.cos(t):.6f}" for t in range(20)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
