"""Models that can be exported, in every setting that matters there, and contexts for them."""

from __future__ import annotations

from typing import Any

import torch

from helpers import random_batch
from skipstone import PCODE, RNN, Sequences
from skipstone.models.base import SteppingModel

SETTINGS = {
    "motion": (PCODE, {}),
    "values": (PCODE, {"reads": "values", "min_step": 0.3}),
    "whole steps": (PCODE, {"whole_steps": True, "readout": "absolute"}),
    "missing": (PCODE, {"missing": True}),
    "driven": (PCODE, {"control": 2}),
    "updated": (PCODE, {"control": 2, "control_effect": "update"}),
    "images": (PCODE, {"image": (1, 2), "readout": "absolute"}),
    "SiLU": (PCODE, {"activation": "silu"}),
    "RNN": (RNN, {}),
    "RNN, missing": (RNN, {"missing": True, "control": 1, "readout": "absolute"}),
}
"""Kind and options of a model, by name."""


def trained_like(kind: Any, seed: int = 0, control: int = 0, **options: Any) -> Any:
    """A random model in single precision whose steps and drives are of different sizes."""
    data = random_batch(seed, [30] * 8, 2, control, 0.5, dtype=torch.float32)
    torch.manual_seed(seed)
    model = kind.for_data(data, hidden=16, num_context=2, layers=3, **options)
    with torch.no_grad():
        if kind is PCODE:
            model.step_size.last.weight.mul_(4)
            if model.crosses_controls:
                model.drive.normal_().mul_(0.3)
    return model


def context_of(model: SteppingModel[Any], rows: int, seed: int = 1) -> Sequences:
    """Contexts with odd times and controls that change."""
    config = model.config
    missing = 0.4 if config.missing else 0.0
    return random_batch(
        seed, [config.num_context] * rows, 2, config.control, 0.5, True, torch.float32, missing
    )
