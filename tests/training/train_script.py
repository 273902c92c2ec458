"""A training in a process of its own, for tests that kill it or give it company.

Usage: train_script.py FOLDER STEPS DEVICES [STOP_AFTER]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from helpers import random_batch
from skipstone import PCODE
from skipstone.training import trainee
from skipstone.training.fit import fit
from skipstone.training.recipe import Recipe


def main(folder: str, steps: int, devices: int, stop_after: int | None) -> None:
    torch.set_num_threads(1)
    if stop_after is not None:
        original = trainee.Trainee.training_step

        def stopping(self: trainee.Trainee, step: int, index: int) -> torch.Tensor:
            self.interrupted = step + 1 == stop_after
            return original(self, step, index)

        trainee.Trainee.training_step = stopping
    data = random_batch(0, [9, 12, 7, 10, 30] * 8, irregular=False, dtype=torch.float32)
    torch.manual_seed(1)
    recipe = Recipe(
        steps=steps,
        batch_size=9,
        validate_every=20,
        checkpoint_every=5,
        gradient_clip=0.0,
    )
    fit(
        PCODE.for_data(data, hidden=8, tolerance=0.05, explore=0.2),
        data,
        folder=folder,
        recipe=recipe,
        device="cpu",
        devices=devices,
        progress=False,
    )


if __name__ == "__main__":
    stop = int(sys.argv[4]) if len(sys.argv) > 4 else None
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), stop)
