"""`TrainingState`: all that a training knows besides its configuration, and its checkpoint."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from skipstone.errors import InvalidInput
from skipstone.files import write_text
from skipstone.models.storage import TRAINING
from skipstone.models.tensors import read_tensors, write_tensors
from skipstone.records import parse_json, require_schema
from skipstone.training.schemas import ProgressRecord


@dataclass
class TrainingState:
    """Where a training stands. With the weights and the optimiser it is all that is not in the
    configuration, since all randomness is a function of seed and step."""

    step: int = 0
    """Gradient steps taken."""

    best_error: float = math.inf
    """Lowest validation error so far."""

    best_step: int = 0
    """The step it was reached at."""

    stale: int = 0
    """Validations since then."""

    recent_loss: float = math.nan
    """Running mean of the training loss, over about the last 2 % of the steps."""

    wall_seconds: float = 0.0
    """Time spent training, over all its interruptions."""

    rows: list[dict[str, float]] = field(default_factory=list)
    """What metrics.csv holds."""

    best_weights: dict[str, Tensor] = field(default_factory=dict)
    """Weights at the best validation."""

    def note_loss(self, loss: float, steps: int) -> None:
        """Take a training loss into the running mean."""
        share = max(1 / (self.step + 1), 1 / max(1.0, 0.02 * steps))
        known = 0.0 if math.isnan(self.recent_loss) else self.recent_loss
        self.recent_loss = known + share * (loss - known)

    def note_validation(self, error: float, weights: dict[str, Tensor], settled_from: int) -> None:
        """Keep the weights if this is the best error yet.

        Errors from before a training has settled do not count beside later ones. A PC-ODE that has
        not yet learned to skip has short steps and small errors, and a model that has hardly
        learned anything predicts the mean, which can be hard to beat over a long rollout.
        """
        first = self.best_step < settled_from <= self.step
        error = error if math.isfinite(error) else math.inf
        if error < self.best_error or first or not self.best_weights:
            self.best_error, self.best_step, self.stale = error, self.step, 0
            self.best_weights = {name: weight.detach().clone() for name, weight in weights.items()}
        else:
            self.stale += 1

    def numbers(self) -> dict[str, Any]:
        """Everything but the tensors, as JSON, which has no infinity: that is a text."""
        skipped = {"best_weights"}
        numbers = {name: value for name, value in vars(self).items() if name not in skipped}
        rows = [{name: _as_json(value) for name, value in row.items()} for row in self.rows]
        return {name: _as_json(value) for name, value in numbers.items()} | {"rows": rows}

    @classmethod
    def from_numbers(cls, numbers: dict[str, Any]) -> TrainingState:
        """The same, back from JSON."""
        rows = [{name: float(value) for name, value in row.items()} for row in numbers["rows"]]
        finite = {name: float(numbers[name]) for name in ("best_error", "recent_loss")}
        return cls(**{**numbers, **finite, "rows": rows})


def _as_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def save_checkpoint(
    path: Path,
    state: TrainingState,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    training: str,
) -> None:
    """Write everything that resuming needs into one file, so that no kill can split it; `training`
    is the identity of the run that it belongs to."""
    tensors = {f"model.{name}": weight for name, weight in model.state_dict().items()}
    tensors |= {f"best.{name}": weight for name, weight in state.best_weights.items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    progress = json.dumps(state.numbers(), allow_nan=False)
    write_tensors(path, tensors, {TRAINING: training, "progress": progress})


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, training: str
) -> TrainingState:
    """Put weights and optimiser back as they were, and return where the training stood."""
    tensors, notes = read_tensors(path)
    if notes.get(TRAINING) != training:
        raise InvalidInput(
            f"{path} must be of the training beside it; it is of another. Copy it again, or remove "
            "it to start over."
        )
    progress = parse_json(notes.get("progress", "").encode(), f"the progress in {path}")
    require_schema(progress, ProgressRecord, f"the progress in {path}")
    state = TrainingState.from_numbers(progress)
    try:
        _restore(tensors, state, model, optimizer)
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise InvalidInput(
            f"{path} must hold the weights and the optimiser of its training; {reason}"
        ) from None
    return state


def _restore(
    tensors: dict[str, Tensor],
    state: TrainingState,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Give the tensors of a checkpoint back to whom they belong."""
    moments: dict[int, dict[str, Tensor]] = {}
    weights: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part == "model":
            weights[rest] = tensor
        elif part == "best":
            state.best_weights[rest] = tensor
        else:
            index, _, key = rest.partition(".")
            # A copy is aligned in memory as a new tensor is; one that lies anywhere in a file is
            # not, and products of it round differently.
            moments.setdefault(int(index), {})[key] = tensor.clone()
    model.load_state_dict(weights)
    best, due = _shapes(state.best_weights), _shapes(weights)
    if (state.rows or best) and best != due:
        raise ValueError("the best weights are not those of its model.")
    kept = _shapes_kept(optimizer) if moments else {}
    if any(_shapes(each) != kept.get(index) for index, each in moments.items()):
        raise ValueError("what it has of the optimiser is not what that keeps.")
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _shapes_kept(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, torch.Size]]:
    """What an optimiser keeps for each of its weights once it has made a step: found by one of its
    kind, with weights of zero."""
    known = [weight for group in optimizer.param_groups for weight in group["params"]]
    zeros = [nn.Parameter(torch.zeros_like(weight)) for weight in known]
    for weight in zeros:
        weight.grad = torch.zeros_like(weight)
    kind: Any = type(optimizer)
    other = kind(zeros, lr=1.0)
    other.step()
    return {index: _shapes(kept) for index, kept in other.state_dict()["state"].items()}


def write_metrics(path: Path, rows: list[dict[str, float]]) -> None:
    """Write metrics.csv, atomically."""
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())
