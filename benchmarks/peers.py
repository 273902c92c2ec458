"""Whom the PC-ODE is measured against: each with a training step and a rollout to time."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.cases import TOLERANCE, pcode_loss
from benchmarks.measure import Run
from skipstone import PCODE, RNN, Sequences
from skipstone.evaluation.rollouts import predict
from skipstone.models.base import Model
from skipstone.models.networks import ResidualMLP
from skipstone.models.pcode_config import STEP_LOSS_WEIGHTS

# The literal transcription of the paper is kept where it proves the fast one.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from oracle import masked_training_step


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Run:
    """A whole training step: gradients cleared, loss, backward, Adam.

    The learning rate is zero: all arithmetic is done, and the steps stay what they are.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def train_pcode(model: PCODE, batch: Sequences) -> Run:
    """Training of a PC-ODE, the search for its knots included."""
    return training_step(model, lambda: pcode_loss(model, batch).total)


def train(model: Model[Any], batch: Sequences) -> Run:
    """Training of a model that draws nothing."""
    return training_step(model, lambda: model.loss(batch).total)


def roll_out(model: Model[Any], batch: Sequences) -> Run:
    """A rollout from the context to the end, read at every observation after the context."""

    @torch.inference_mode()
    def run() -> None:
        predict(model, batch)

    return run


# The RNN, one update at a time.


class LoopedGRU(nn.GRU):
    """A GRU layer as a loop over its cell: the same weights, without the fused kernel."""

    # The layer takes packed sequences too, which `RNN` never gives it.
    def forward(self, input: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore
        """States at all times, and the last one. `input` is batch first, as in `RNN`."""
        state = input.new_zeros(len(input), self.hidden_size)
        states = []
        for inputs in input.unbind(1):
            state = torch.gru_cell(inputs, state, *self.all_weights[0])
            states.append(state)
        return torch.stack(states, dim=1), state


def unfused(model: RNN) -> RNN:
    """A copy of an RNN whose cell runs as a loop."""
    model = copy.deepcopy(model)
    loop = LoopedGRU(model.config.hidden, model.config.hidden, batch_first=True)
    loop.to(next(model.parameters()).dtype).load_state_dict(model.cell.state_dict())
    model.cell = loop
    return model


# The closed-form continuous-time network (Hasani et al. 2022), as published in ncps.


class CfC(nn.Module):
    """A `CfC` layer between the same encoder and decoder as the RNN's.

    It predicts the next observation of regular data. Time is left at its default of one unit:
    ncps 1.0.1 cannot give a time of its own to every row of a batch.
    """

    num_context: ClassVar[int] = 4

    def __init__(self, dim: int, hidden: int, layers: int):
        from ncps.torch import CfC as Layer

        super().__init__()
        self.encoder = ResidualMLP(dim, hidden, hidden, layers)
        self.layer = Layer(hidden, hidden, backbone_units=hidden)
        self.decoder = ResidualMLP(hidden, hidden, dim, layers)

    def loss(self, values: Float[Tensor, "batch time dim"]) -> Float[Tensor, ""]:
        """Error of predicting each observation from those before it."""
        states, _ = self.layer(self.encoder(values[:, :-1]))
        return F.mse_loss(values[:, :-1] + self.decoder(states), values[:, 1:])

    @torch.inference_mode()
    def rollout(
        self, values: Float[Tensor, "batch time dim"], steps: int
    ) -> Float[Tensor, "batch steps dim"]:
        """Predictions after the context, each from the ones before it."""
        context = values[:, : self.num_context]
        _, state = self.layer(self.encoder(context))
        current, predicted = context[:, -1], []
        for step in range(steps):
            if step > 0:
                _, state = self.layer.rnn_cell(self.encoder(current), state, 1.0)
            current = current + self.decoder(state)
            predicted.append(current)
        return torch.stack(predicted, dim=1)


# The paper's own training step: every row at every observation, masked afterwards.


def draw_forced(model: PCODE, batch: Sequences) -> Bool[Tensor, "batch time"]:
    """Where exploration extends a step."""
    return torch.rand(batch.mask.shape) < model.config.explore


def train_oracle(model: PCODE, batch: Sequences) -> Run:
    """Training by the oracle of the tests, which is written to be read: row by row in places."""
    batch = single_precision(batch)
    return training_step(
        model,
        lambda: masked_training_step(model, batch, TOLERANCE, draw_forced(model, batch)).total,
    )


def train_masked(model: PCODE, batch: Sequences) -> Run:
    """Training by the same step with all rows at once: the paper's cost without the oracle's."""
    batch = single_precision(batch)
    return training_step(
        model, lambda: masked_loss(model, batch, TOLERANCE, draw_forced(model, batch))
    )


def single_precision(batch: Sequences) -> Sequences:
    """The batch with times of the models' precision, because the masked steps convert nothing."""
    batch = copy.copy(batch)
    batch.times = batch.times.to(batch.values.dtype)
    return batch


def masked_loss(
    model: PCODE, batch: Sequences, tolerance: float, forced: Bool[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """The oracle's loss with all rows at once, for batches without padding and controls.

    Everything runs for the whole batch at every observation, as the paper has it; only what no
    gradient needs goes without one.
    """
    return _MaskedStep(model, batch, tolerance, forced).loss()


class _MaskedStep:
    def __init__(self, model: PCODE, batch: Sequences, tolerance: float, forced: Tensor):
        self.model, self.values, self.tolerance, self.forced = (
            model,
            batch.values,
            tolerance,
            forced,
        )
        self.time = batch.times / model.config.time_unit

    def loss(self) -> Tensor:
        model, values, time = self.model, self.values, self.time
        last, first_free = values.shape[1] - 1, model.config.num_context - 1
        state, start, tau = model.initial_state(len(values)), values[:, 0], time[:, 0]
        base, worst = torch.zeros_like(start), torch.zeros_like(tau)
        errors, step_errors = [], []
        for t in range(last):
            keep = torch.zeros_like(tau, dtype=torch.bool)
            if t > first_free:
                with torch.no_grad():
                    ahead = self.error_at(t + 1, state, base, start, tau)
                keep = (torch.maximum(worst, ahead) < self.tolerance) | self.forced[:, t]
                difference = model.predict_step(state) - (time[:, t] - tau)
                step_errors.append(difference[~keep].square())
            moved = model.move(state, time[:, t] - tau, None)
            proposed = model.cell(model.encoder(values[:, t]), moved)
            state = torch.where(keep[:, None], state, proposed)
            base = torch.where(keep[:, None], base, model.decoder(proposed))
            start = torch.where(keep[:, None], start, values[:, t])
            tau = torch.where(keep, tau, time[:, t])
            ahead = self.error_at(t + 1, state, base, start, tau)
            if t + 1 > first_free:
                errors.append(ahead)
            error = ahead.detach()
            worst = torch.where(keep, torch.maximum(worst, error), error)
        # The end cuts the last segments: only a prediction below their length is an error.
        difference = model.predict_step(state) - (time[:, last] - tau)
        step_errors.append(difference.clamp(max=0).square())
        return (
            torch.stack(errors).mean()
            + STEP_LOSS_WEIGHTS["difference"] * torch.cat(step_errors).mean()
        )

    def error_at(
        self, index: int, state: Tensor, base: Tensor, start: Tensor, tau: Tensor
    ) -> Tensor:
        """Squared error at an observation of the lines that began at `tau`."""
        moved = self.model.move(state, self.time[:, index] - tau, None)
        predicted = start + self.model.decoder(moved) - base
        return (predicted - self.values[:, index]).square().mean(1)
