"""What is attacked: a small training that ends with the same weights each time, and a table."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from skipstone import PCODE, Recipe, Sequences, fit

RECIPE = Recipe(steps=12, batch_size=4, validate_every=4, checkpoint_every=2)
"""Seconds, with several checkpoints and validations."""

CHECKPOINT, RESULT, WEIGHTS = "checkpoint.safetensors", "result.json", "weights.safetensors"

COLUMNS = ["--id", "who", "--time", "time", "--values", "x,y"]
"""Columns of the table."""

FIT = [*COLUMNS, "--steps", "2", "--set", "hidden=4", "--horizon", "3", "--device", "cpu"]
"""Options of a training on it that takes a second."""

IDS, TIMES = 12, 20
"""Logs of the table, and rows of each."""


class Steps:
    """Steps that a training in another process has taken: known also after it was killed."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    @property
    def taken(self) -> int:
        return self._shared[0]

    def take(self) -> None:
        self._shared[0] += 1


def data(seed: int = 0) -> Sequences:
    """Sixteen random walks."""
    walks = np.random.default_rng(seed).normal(size=(16, 10, 1)).cumsum(1)
    return Sequences.from_array(walks.astype(np.float32))


def train(
    folder: Path,
    steps: Steps | None = None,
    *,
    seed: int = 0,
    overwrite: bool = False,
    after: Callable[[int], None] = lambda step: None,
) -> None:
    """Train into a folder, from wherever it stands. `steps` counts the steps that are taken;
    `after` is called within the loop, after each."""
    torch.manual_seed(seed)
    sequences = data(seed)
    model = PCODE.for_data(sequences, hidden=4, layers=2, step_layers=1)
    adapt, steps = model.adapt, steps or Steps()

    def adapted(losses: object) -> None:
        """What a training calls once in every step."""
        adapt(losses)  # pyright: ignore[reportArgumentType]
        steps.take()
        after(steps.taken)

    model.adapt = adapted  # pyright: ignore[reportAttributeAccessIssue]
    settings = {"recipe": RECIPE, "device": "cpu", "progress": False}
    fit(model, sequences, folder=folder, seed=seed, overwrite=overwrite, **settings)


def weights(folder: Path) -> str:
    """Checksum of the weights that a training ended with; empty if it has none."""
    path = folder / WEIGHTS
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def checkpoint_step(folder: Path) -> int | None:
    """The step that a checkpoint is of, None if there is none; read without the package."""
    path = folder / CHECKPOINT
    if not path.is_file():
        return None
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(json.loads(header["__metadata__"]["skipstone"])["progress"])["step"]


def write_log(path: Path) -> None:
    """A table of twelve logs."""
    lines = ["who,time,x,y"]
    for who in range(IDS):
        lines += [f"{who},{t},{np.sin(t + who):.6f},{np.cos(t):.6f}" for t in range(TIMES)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
