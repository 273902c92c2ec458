"""What is done with damaged files, each in a process of its own that judges what it finds: it ends
with 3 if that is something else than it has to be."""

from __future__ import annotations

import dataclasses
import json
import resource
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from attack.subject import data

MEMORY = 12 * 2**30
"""Bytes of address space: more is nobody's who loads a model of a few kilobytes."""

State = tuple[dict[str, torch.Tensor], dict[str, Any]]


def state_of(folder: Path) -> State:
    """Everything of a loaded model that decides its predictions."""
    from skipstone import load

    model = load(folder)
    tensors = dict(model.state_dict())
    if model.calibration is not None:
        found = model.calibration
        tensors |= {"quantiles": found.quantiles, "edges": found.edges}
    return tensors, dataclasses.asdict(model.config)


def load_as_it_was(folder: Path, expected: State) -> None:
    """Load a model that must be the expected one. Intervals may be gone with their file."""
    _limit_memory()
    tensors, config = state_of(folder)
    known, due = expected[0], set(expected[0])
    if not (folder / "calibration.safetensors").is_file():
        due -= {"quantiles", "edges"}
    same = set(tensors) == due and all(torch.equal(tensors[name], known[name]) for name in due)
    if not same or config != expected[1]:
        raise SystemExit(3)


def load_as_it_says(folder: Path) -> None:
    """Load a model whose files belong together; it must be what they say, and be of use."""
    from skipstone import load

    _limit_memory()
    model = load(folder)
    described = json.loads((folder / "config.json").read_bytes())["model"]
    config = json.loads(json.dumps(dataclasses.asdict(model.config)))
    written = safetensors.torch.load((folder / "weights.safetensors").read_bytes())
    for name, value in described.items():
        if name in config and not agrees(config[name], value):
            print(f"{name} is {config[name]!r}, not {value!r}")
            raise SystemExit(3)
    if any(not torch.equal(written[name], each) for name, each in model.state_dict().items()):
        raise SystemExit(3)
    with torch.inference_mode():
        model.rollout(data().tail(model.config.num_context), 12.0, max_updates=100)


def agrees(found: Any, written: Any) -> bool:
    """Whether a value is what was written: a number as a double has it, and no flag as a number."""
    if isinstance(found, list) and isinstance(written, list):
        return len(found) == len(written) and all(map(agrees, found, written))
    if isinstance(found, int | float) and isinstance(written, int | float):
        return isinstance(found, bool) == isinstance(written, bool) and float(found) == float(
            written
        )
    return type(found) is type(written) and found == written


def make_lines() -> None:
    """Make data of a task or read it from the cache, and print what it is."""
    import warnings

    from skipstone import load_task
    from skipstone.training.fit import fingerprint

    _limit_memory()
    warnings.simplefilter("ignore")
    found = load_task("lines", trajectories=20)
    print(*(fingerprint(part) for part in (found.train, found.validation, found.test)))


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
