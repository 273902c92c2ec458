"""The training loop as Lightning sees it. The only module that imports Lightning."""

from __future__ import annotations

import importlib.util
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from skipstone.console import Progress
from skipstone.errors import require_number
from skipstone.evaluation.rollouts import roll_out_all
from skipstone.models.base import Model
from skipstone.models.learning import Losses
from skipstone.models.storage import TRAINING, WEIGHTS
from skipstone.models.tensors import write_tensors
from skipstone.sequences import Sequences
from skipstone.training.objective import Objective, check_loss, share_of_mean
from skipstone.training.recipe import OPTIMIZERS
from skipstone.training.run import CHECKPOINT, METRICS, TENSORBOARD, Run
from skipstone.training.state import (
    TrainingState,
    load_checkpoint,
    save_checkpoint,
    write_metrics,
)

SHOW_EVERY = 0.2
"""Seconds between two moves of the progress bar."""


class StepNumbers(IterableDataset[int]):
    """The numbers of the steps still to take: all that a step needs, with the objective."""

    def __init__(self, first: int, stop: int):
        self._numbers = range(first, stop)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)


class Trainee(lightning.LightningModule):
    """A model in training, with its progress; it resumes from its checkpoint if there is one."""

    def __init__(
        self,
        model: Model[Any],
        objective: Objective,
        validation: Sequences,
        run: Run,
        show: Progress,
    ):
        super().__init__()
        self.model = model
        self.objective = objective
        self.validation = validation
        self.checkpoint, self.identity = run.folder / CHECKPOINT, run.identity
        self.show, self.shown = show, 0.0
        self.interrupted = 0
        recipe = objective.recipe
        self.optimizer = OPTIMIZERS[recipe.optimizer](model.parameters(), lr=recipe.learning_rate)
        self.state = TrainingState()
        if self.checkpoint.is_file():
            self.state = load_checkpoint(self.checkpoint, model, self.optimizer, self.identity)
            require_number(
                f"step in {self.checkpoint}", self.state.step, most=recipe.steps, whole=True
            )
        self._clock = time.monotonic()

    def stop(self, number: int, frame: Any) -> None:
        """Handle a signal: end after the step that is running, so that what is saved is whole."""
        self.interrupted = self.interrupted or number

    @property
    def done(self) -> bool:
        """Whether all steps are taken, or patience has run out."""
        recipe = self.objective.recipe
        return self.state.step >= recipe.steps or 0 < recipe.patience <= self.state.stale

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The recipe's, whose learning rate is set before each step as a function of its number."""
        return self.optimizer

    def train_dataloader(self) -> DataLoader[int]:
        """The numbers of the steps still to take."""
        return DataLoader(
            StepNumbers(self.state.step, self.objective.recipe.steps), batch_size=None
        )

    def on_train_start(self) -> None:
        """Start the clock, since setting up is not training; and take SIGTERM back from Lightning,
        which would end the training without a checkpoint."""
        self._clock = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.stop)

    def training_step(self, step: int, index: int) -> Tensor:
        """The loss of one step."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.objective.recipe.learning_rate_at(step)
        ranks = self.trainer.world_size
        losses = self.objective.losses(self.model, step, self.global_rank, ranks)
        loss = losses.total if ranks == 1 else self._shared(losses, ranks)
        check_loss(losses, step, self._keep_best)
        self._losses = losses
        self.log_dict(
            {
                "loss": losses.prediction.detach(),
                "mean step": losses.mean_step,
                "updates": losses.num_updates / max(1, len(losses.predicted)),
            },
            batch_size=1,
        )
        return loss

    def _shared(self, losses: Losses, ranks: int) -> Tensor:
        counts = torch.tensor([losses.num_points, losses.num_steps], device=self.device)
        counts = self.trainer.strategy.reduce(counts, reduce_op="sum")
        assert isinstance(counts, Tensor)
        return share_of_mean(losses, counts, ranks)

    def _whole(self, losses: Losses) -> Losses:
        """Losses with the mean step of all processes, so that all adapt alike."""
        if self.trainer.world_size == 1:
            return losses
        sums = torch.tensor([losses.mean_step * losses.num_steps, losses.num_steps])
        total = self.trainer.strategy.reduce(sums.to(self.device), reduce_op="sum")
        assert isinstance(total, Tensor)
        step = float(total[0] / total[1]) if total[1] else losses.mean_step
        return replace(losses, mean_step=step)

    def _keep_best(self) -> str:
        """Save the best weights of a training that is lost, and say where they are."""
        if not self.state.best_weights or not self.trainer.is_global_zero:
            return "No weights were kept, since nothing had been validated yet."
        weights = self.checkpoint.with_name(WEIGHTS)
        write_tensors(weights, self.state.best_weights, {TRAINING: self.identity})
        return f"The best weights, from step {self.state.best_step}, are in {weights}."

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Count the step; now and then validate and save."""
        state, recipe = self.state, self.objective.recipe
        self.model.adapt(self._whole(self._losses))
        state.note_loss(float(self._losses.prediction.detach()), recipe.steps)
        state.step += 1
        last = state.step == recipe.steps
        self._show(last)
        if last or state.step % recipe.validate_every == 0:
            self._validate()
        stopped = self._anyone_interrupted()
        if self.done or stopped or state.step % recipe.checkpoint_every == 0:
            self._save()
        if self.done or stopped:
            self.trainer.should_stop = True

    def _anyone_interrupted(self) -> bool:
        """Whether a signal has reached one of the processes: all of them stop at the same step."""
        interrupted = bool(self.interrupted)
        if self.trainer.world_size > 1:
            decide = self.trainer.strategy.reduce_boolean_decision
            interrupted = decide(interrupted, all=False)
            self.interrupted = self.interrupted or int(interrupted)
        return interrupted

    def _show(self, last: bool) -> None:
        """Move the progress bar, not at every step: drawing takes time."""
        now = time.monotonic()
        if self.trainer.is_global_zero and (last or now - self.shown > SHOW_EVERY):
            self.shown = now
            details = f"loss {self.state.recent_loss:.2e}, mean step {self._losses.mean_step:.1f}"
            self.show("training", self.state.step / self.objective.recipe.steps, details)

    def _validate(self) -> None:
        """Roll out from the context: the error that a user of the model will see, in scaled units,
        so that each feature counts."""
        self.model.eval()
        with torch.no_grad():
            errors = roll_out_all(
                self.model, self.validation, scaler=self.model.values_scaler
            ).errors
        self.model.train()
        error = float(errors.values.sum() / errors.observed.sum())
        state, recipe = self.state, self.objective.recipe
        state.note_validation(error, self.model.state_dict(), recipe.settled_from)
        state.rows.append(
            {
                "step": state.step,
                "training_loss": state.recent_loss,
                "mean_step": self._losses.mean_step,
                "validation_error": error,
                "learning_rate": self.optimizer.param_groups[0]["lr"],
                "wall_seconds": round(self._elapsed(), 2),
            }
        )
        self.log("validation", error, batch_size=1)

    def _save(self) -> None:
        self.state.wall_seconds = self._elapsed()
        self._clock = time.monotonic()
        if self.trainer.is_global_zero:
            save_checkpoint(self.checkpoint, self.state, self.model, self.optimizer, self.identity)
            write_metrics(self.checkpoint.parent / METRICS, self.state.rows)

    def _elapsed(self) -> float:
        return self.state.wall_seconds + time.monotonic() - self._clock


def tensorboard(folder: Path) -> Any:
    """A logger where TensorBoard is installed; metrics.csv is written in any case."""
    if importlib.util.find_spec("tensorboard") is None:
        return False
    return TensorBoardLogger(folder, name=TENSORBOARD, version="")
