"""What is exact for the baselines."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from building import build, close
from torch import Tensor

from helpers import random_batch
from skipstone import ODERNN, RNN, InvalidInput, LatentODE
from skipstone.models.ode import Dynamics, integrate


def test_rnn_updates_once_per_interval() -> None:
    model, batch = build(RNN, time_unit=0.5), random_batch(0, [6, 4], spacing=0.5, irregular=False)
    path = model.rollout(batch.head(4), torch.tensor([2.0 + 3.2, 2.0 + 1.0], dtype=torch.float64))
    assert path.num_updates.tolist() == [7, 2]
    close(path.steps[0], torch.tensor([0.5] * 6 + [0.2], dtype=torch.float64))
    assert path.num_evaluations.tolist() == [0, 0]


def test_rnn_training_is_its_rollout_step_by_step() -> None:
    """The fused layer over a sequence and the single updates of a rollout are one model."""
    model, batch = build(RNN, control=1), random_batch(2, [7, 5], control=1)
    state, elapsed, errors = model.initial_state(2), torch.zeros(2).double(), []
    gaps = batch.times.diff(dim=1, prepend=batch.times[:, :1])
    inputs = model.encoder_inputs(batch.values, gaps)
    assert batch.controls is not None
    for i in range(6):
        encoded = model.encode(inputs[:, i], batch.controls[:, i], elapsed)
        state = model.update(state, encoded)
        elapsed = batch.times[:, i + 1] - batch.times[:, i]
        segments, _ = model.segments(state, batch.values[:, i], elapsed)
        predicted, _ = model.ends(segments, elapsed)
        error = (predicted - batch.values[:, i + 1]).square().mean(1)
        errors.append(error[batch.mask[:, i + 1]])
    close(model.loss(batch).total, torch.cat(errors[3:]).mean())


def test_rnn_output_moves_evenly_between_observations() -> None:
    model, batch = build(RNN), random_batch(2, [4])
    path = model.rollout(batch, batch.ends + 3)
    first, last = (path.evaluate(batch.ends[:, None] + t) for t in (1.0, 2.0))
    close(path.evaluate(batch.ends[:, None] + 1.25), torch.lerp(first, last, 0.25))


def linear_dynamics(matrix: Tensor) -> Dynamics:
    """dh/dt = A·h, as far as tanh is the identity: the state is scaled into its linear part."""
    dynamics = Dynamics(len(matrix)).double()
    with torch.no_grad():
        into, bias_into, out_of, bias_out = dynamics.parameters()
        into.copy_(1e-5 * torch.eye(len(matrix)))
        out_of.copy_(1e5 * matrix)
        bias_into.zero_()
        bias_out.zero_()
    return dynamics


@pytest.mark.parametrize("solver", ["dopri5", "rk4"])
def test_integration_of_a_rotation_is_exact_for_each_rows_own_times(solver: str) -> None:
    turn = torch.tensor([[0.0, -0.2], [0.2, 0.0]]).double()
    offsets = torch.tensor([[0.0, 0.5, 0.5, 3.0], [1.0, 1.1, 7.0, 7.25]]).double()
    state = torch.tensor([[1.0, 0.0], [0.0, 2.0]]).double()
    config = LatentODE.Config(dim=1, hidden=2, solver=solver, rtol=1e-7, atol=1e-9)
    found, calls = integrate(linear_dynamics(turn), state, offsets, config)
    expected = torch.stack(
        [
            torch.stack([torch.matrix_exp(turn * t) @ state[row] for t in offsets[row]])
            for row in range(2)
        ]
    )
    close(found, expected, within=5e-5)
    assert calls > 0


def test_rk4_counts_four_evaluations_per_unit_of_time() -> None:
    dynamics = Dynamics(2).double()
    config = ODERNN.Config(dim=1, hidden=2, solver="rk4")
    for offset, substeps in ((0.4, 1), (1.0, 1), (2.5, 3)):
        offsets = torch.full((3, 1), offset).double()
        _, calls = integrate(dynamics, torch.ones(3, 2).double(), offsets, config)
        assert calls == 4 * substeps


def test_ode_rnn_counts_its_evaluations() -> None:
    model, batch = build(ODERNN), random_batch(0, [7, 5], irregular=False)
    path = model.rollout(batch.head(4), torch.tensor([9.0, 6.0]))
    assert path.num_updates.tolist() == [5, 2]
    assert path.num_evaluations.tolist() == [20, 8]
    path.evaluate(path.knots[:, 1:2])
    assert path.num_evaluations.tolist() == [20, 8]
    path.evaluate(torch.tensor([4.5, 5.5]))
    assert path.num_evaluations.tolist() == [28, 16]


def test_ode_rnn_reads_inside_an_interval_what_it_would_integrate() -> None:
    model, batch = build(ODERNN, solver="dopri5", rtol=1e-8, atol=1e-9), random_batch(1, [4])
    path = model.rollout(batch, batch.ends + 2)
    near = path.evaluate(batch.ends[:, None] + torch.tensor([1.0 - 1e-4, 1.0, 1.0 + 1e-4]))
    close(near[:, 0], near[:, 1], within=1e-3)
    close(near[:, 2], near[:, 1], within=1e-3)


@pytest.mark.parametrize("kind", [ODERNN, LatentODE])
def test_tighter_tolerances_cost_more_evaluations(kind: Any) -> None:
    costs = []
    for rtol in (1e-2, 1e-9):
        model = build(kind, solver="dopri5", rtol=rtol, atol=rtol)
        path = model.rollout(random_batch(0, [4], irregular=False), 12.0)
        path.evaluate(12.0)
        costs.append(int(path.num_evaluations))
    assert costs[0] < costs[1]


def test_latent_ode_answers_queries_in_any_order() -> None:
    model, batch = build(LatentODE, solver="dopri5", rtol=1e-9, atol=1e-9), random_batch(0, [4, 4])
    path = model.rollout(batch, batch.ends + 10)
    assert path.num_updates.tolist() == [1, 1]
    times = batch.ends[:, None] + torch.tensor([7.0, 0.5, 3.0]).double()
    shuffled = path.evaluate(times)
    for i in range(3):
        close(shuffled[:, i : i + 1], path.evaluate(times[:, i : i + 1]), within=1e-6)
    assert (path.num_evaluations > 0).all()


def test_inference_does_not_spoil_a_later_training() -> None:
    """In a fresh process, where the solver has not been used before."""
    code = """
import torch
from skipstone import ODERNN, Sequences
data = Sequences.from_array(torch.rand(2, 6, 1))
model = ODERNN.for_data(data, hidden=4)
with torch.inference_mode():
    model.rollout(data.head(4), 5.0).evaluate(4.5)
model.loss(data).total.backward()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", [ODERNN, LatentODE])
def test_bad_solver_options_are_explained(kind: Any) -> None:
    with pytest.raises(InvalidInput, match='solver must be "rk4" or "dopri5"; got'):
        kind.from_config({"dim": 1, "solver": "euler"})
    with pytest.raises(InvalidInput, match="rtol must be above 0; got 0"):
        kind.from_config({"dim": 1, "rtol": 0.0})


def test_missing_torchdiffeq_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'skipstone[ode]'")):
        build(ODERNN).loss(random_batch(0, [5]))


def test_latent_ode_needs_something_to_predict() -> None:
    with pytest.raises(InvalidInput, match="at least 5 observations here; sequence 0 has 4"):
        build(LatentODE).loss(random_batch(0, [4]))
    assert build(LatentODE).loss(random_batch(0, [5])).total.isfinite()
