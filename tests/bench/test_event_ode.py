"""A neural event ODE bounces where a wall is, and learns where it is."""

from __future__ import annotations

import pytest
import torch

from benchmarks.reality.event_ode import EventODE
from skipstone import Sequences


def bouncing() -> EventODE:
    """A ball that moves freely and bounces off 0: x' = v, and v becomes -v."""
    options = {"dim": 1, "hidden": 1, "num_context": 2, "surfaces": 1}
    model = EventODE.from_config(options).double()
    small = 1e-3
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.surface.weight[0, 0] = 1.0
        # In its linear range tanh(small·v) · (-2 / small) is -2v.
        first, _, last = model.jump
        first.weight[0, 1] = small  # pyright: ignore
        last.weight[0, 0] = -2 / small  # pyright: ignore
    return model


def test_an_event_ode_bounces_when_and_where_it_must() -> None:
    context = Sequences([[0.0, 1.0]], torch.tensor([[[3.0], [2.0]]], dtype=torch.float64))
    path = bouncing().rollout(context, 9.0)
    assert path.num_updates.tolist() == [2]
    assert path.knots[0].tolist() == pytest.approx([1.0, 3.0], abs=1e-4)
    when = torch.tensor([[9.0, 1.0, 2.5, 3.0, 5.0, 5.0]], dtype=torch.float64)
    expected = [6.0, 2.0, 0.5, 0.0, 2.0, 2.0]
    assert path.evaluate(when)[0, :, 0].tolist() == pytest.approx(expected, abs=1e-3)


def test_an_event_ode_learns_when_to_bounce() -> None:
    """The gradient through the time of a jump: a wall that is too far away comes nearer."""
    model = bouncing()
    with torch.no_grad():
        model.surface.bias[0] = 0.5  # A wall at -0.5.
    values = torch.tensor([[[3.0], [2.0], [1.0], [0.0], [1.0], [2.0]]], dtype=torch.float64)
    batch = Sequences.from_array(values)
    loss = model.loss(batch).total
    # With a wall at -b, two of four observations are missed by 2b.
    assert loss.item() == pytest.approx(2 * 0.5**2, abs=1e-3)
    loss.backward()
    assert model.surface.bias.grad is not None
    assert model.surface.bias.grad.item() == pytest.approx(4 * 0.5, abs=1e-2)
