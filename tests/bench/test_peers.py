"""The peers compute what they are said to compute: a fast wrong peer would prove nothing."""

from __future__ import annotations

import copy

import pytest
import torch

import oracle
from benchmarks import jax_peer, peers
from benchmarks.cases import TOLERANCE, staircase, still_pcode
from skipstone import ODERNN, RNN
from skipstone.evaluation.rollouts import predict


def test_looped_rnn_is_the_fused_one() -> None:
    batch = staircase(5, 5, observations=20, dim=3).to(dtype=torch.float64)
    fused = RNN(RNN.Config(dim=3, hidden=8)).double()
    looped = peers.unfused(fused)
    for model in (fused, looped):
        model.loss(batch).total.backward()
    for one, other in zip(fused.parameters(), looped.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("explore", [0.0, 0.3])
def test_masked_step_is_the_oracle(explore: float) -> None:
    batch = staircase(6, 4, observations=30, dim=2).to(dtype=torch.float64)
    literal = still_pcode(2, hidden=8).double()
    with torch.no_grad():
        # Lines that move, so that decoding matters.
        literal.decoder.last.weight.mul_(1e3)
    batched = copy.deepcopy(literal)
    forced = torch.rand(batch.mask.shape) < explore
    tolerance = 4 * TOLERANCE
    expected = oracle.masked_training_step(literal, batch, tolerance, forced)
    assert 6 * 5 < expected.knots.sum() < 6 * 29
    expected.total.backward()
    loss = peers.masked_loss(batched, batch, tolerance, forced)
    loss.backward()
    assert abs(loss - expected.total) < 1e-12
    for one, other in zip(literal.parameters(), batched.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-8, atol=1e-12)


def test_masked_steps_run_in_single_precision() -> None:
    batch, model = staircase(3, 4, observations=12, dim=2), still_pcode(2, hidden=8)
    for train in (peers.train_oracle, peers.train_masked):
        train(model, batch)()
        assert model.cell.weight_hh.grad is not None
    assert batch.times.dtype == torch.float64


def test_cfc_predicts_the_next_observation() -> None:
    torch.manual_seed(0)
    values = staircase(4, 3, observations=12, dim=2).values
    model = peers.CfC(2, 8, 3)
    model.loss(values).backward()
    assert all(weight.grad is not None for weight in model.parameters())
    predicted = model.rollout(values, 5)
    assert predicted.shape == (4, 5, 2)
    with torch.no_grad():
        # Fed with its own predictions, a teacher-forced pass says the same.
        fed = torch.cat([values[:, :4], predicted], dim=1)
        states, _ = model.layer(model.encoder(fed[:, :-1]))
        again = (fed[:, :-1] + model.decoder(states))[:, 3:]
    assert torch.allclose(predicted, again, atol=1e-5)


@pytest.mark.skipif(jax_peer.missing() is not None, reason=str(jax_peer.missing()))
def test_diffrax_integrates_the_same_model() -> None:
    torch.manual_seed(0)
    batch = staircase(4, 3, observations=10, dim=2)
    model = ODERNN(ODERNN.Config(dim=2, hidden=8, solver="dopri5", reads="values"))
    peer = jax_peer.DiffraxODERNN(model)
    # Two solvers with the same tolerance of 1e-3.
    with torch.no_grad():
        assert peer.loss(batch) == pytest.approx(float(model.loss(batch).total), rel=1e-2)
        assert torch.allclose(peer.predict(batch), predict(model, batch)[1], atol=1e-3)
    peer.train(batch)()
