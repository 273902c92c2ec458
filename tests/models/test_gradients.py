"""Gradients of a PC-ODE beside finite differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from helpers import random_batch, small_pcode, tuned
from skipstone import PCODE, Draws, Sequences, find_knots

pytestmark = pytest.mark.usefixtures("both_paths")


class Calls(torch.nn.Module):
    """Any use of a model as a function of its weights, for `gradcheck`."""

    def __init__(self, model: PCODE, use: Callable[..., Tensor]):
        super().__init__()
        self.model, self.use = model, use

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.use(*inputs)


FAST_OR_WHOLE = pytest.mark.parametrize(
    "fast_mode", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fast-mode", "whole"]
)
"""Along a random direction of each weight and input, or one entry at a time, for minutes."""


def gradcheck(
    model: PCODE, use: Callable[..., Tensor], *inputs: Tensor, fast_mode: bool = True
) -> bool:
    names, weights = zip(*Calls(model, use).named_parameters(), strict=True)

    def call(*everything: Tensor) -> Tensor:
        given, weights = everything[: len(inputs)], everything[len(inputs) :]
        return torch.func.functional_call(
            Calls(model, use), dict(zip(names, weights, strict=True)), given
        )

    leaves = [tensor.detach().clone().requires_grad_() for tensor in (*inputs, *weights)]
    return torch.autograd.gradcheck(call, leaves, fast_mode=fast_mode)


@FAST_OR_WHOLE
@pytest.mark.parametrize(("reads", "step_layers"), [("values", 1), ("motion", 2)])
def test_gradcheck_of_a_path_in_weights_context_and_time(
    reads: str, step_layers: int, fast_mode: bool
) -> None:
    model = small_pcode(5, hidden=4, reads=reads, step_layers=step_layers)
    context = random_batch(5, [4, 4])
    times = context.ends[:, None] + torch.tensor([0.3, 2.7, 6.1])

    def predict(values: Tensor, times: Tensor) -> Tensor:
        seen = Sequences(context.times, values)
        return model.rollout(seen, context.ends + 8.0).evaluate(times)

    assert bool((predict(context.values, times) != context.values[:, -1:]).any())
    assert gradcheck(model, predict, context.values, times, fast_mode=fast_mode)


@FAST_OR_WHOLE
def test_gradcheck_of_the_loss(fast_mode: bool) -> None:
    model, batch = small_pcode(2, hidden=4), random_batch(2, [9, 6])
    knots = find_knots(tuned(model, tolerance=0.3), batch)

    def loss() -> Tensor:
        losses = model.loss(batch, Draws(knots=knots))
        return losses.prediction + losses.step

    assert gradcheck(model, loss, fast_mode=fast_mode)
