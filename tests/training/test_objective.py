from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers import random_batch, small_pcode
from skipstone import ODERNN, PCODE, RNN, LatentODE, Sequences
from skipstone.training.objective import Objective, share_of_mean
from skipstone.training.recipe import Recipe


def objective(train: Sequences, batch_size: int, seed: int = 0, **options: float) -> Objective:
    recipe = Recipe(batch_size=batch_size, steps=100, **options)  # pyright: ignore
    return Objective(train, recipe, seed)


def test_every_epoch_sees_every_sequence_once() -> None:
    goal = objective(random_batch(0, [5] * 10), batch_size=4)
    seen = torch.cat([torch.as_tensor(goal.rows(step)[0]) for step in range(5)])
    assert sorted(seen[:10].tolist()) == list(range(10))
    assert sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()


def test_rows_are_a_function_of_seed_and_step() -> None:
    train = random_batch(0, [5] * 10)
    one, same, other = (objective(train, 4, seed) for seed in (1, 1, 2))
    assert one.rows(7).tolist() == same.rows(7).tolist()
    assert [one.rows(s).tolist() for s in range(3)] != [other.rows(s).tolist() for s in range(3)]


def test_a_batch_is_never_larger_than_the_data() -> None:
    assert objective(random_batch(0, [5] * 3), batch_size=64).rows(5).shape == (2, 3)


def test_scales_are_over_observations_and_per_feature() -> None:
    values = torch.tensor([[[0.0, 0.0], [2.0, 0.0], [4.0, 6.0]]])
    model = RNN.for_data(Sequences.from_array(values), num_context=1)
    assert model.config.center == (2.0, 2.0)
    assert model.config.scale == pytest.approx(((8 / 3) ** 0.5, 8**0.5))


@pytest.mark.parametrize("step_loss", ["ratio", "difference"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_shares_of_processes_add_up_to_the_whole_batch(ranks: int, step_loss: str) -> None:
    """Ragged rows and different numbers of knots: a plain mean over processes would be wrong."""
    train = random_batch(0, [5, 12, 9, 14, 6, 30, 8])
    model = small_pcode(0, explore=0.2, own_steps=0.5, overshoot=0.3, step_loss=step_loss)
    goal = objective(train, batch_size=7)
    weights = list(model.parameters())
    whole = torch.autograd.grad(goal.losses(model, 3).total, weights)
    parts = [goal.losses(model, 3, rank, ranks) for rank in range(ranks)]
    counts = torch.tensor([sum(p.num_points for p in parts), sum(p.num_steps for p in parts)])
    shares = [torch.autograd.grad(share_of_mean(p, counts, ranks), weights) for p in parts]
    for index, expected in enumerate(whole):
        mean = sum(share[index] for share in shares) / ranks
        torch.testing.assert_close(mean, expected, rtol=0, atol=1e-12)
    assert sum(p.num_updates for p in parts) == goal.losses(model, 3).num_updates


def test_models_without_steps_are_shared_too() -> None:
    train = random_batch(0, [5, 12, 9])
    torch.manual_seed(0)
    model = RNN.for_data(train, hidden=4).double()
    goal = Objective(train, Recipe(batch_size=3), 0)
    parts = [goal.losses(model, 0, rank, 2) for rank in range(2)]
    counts = torch.tensor([sum(p.num_points for p in parts), 0])
    shared = torch.stack([share_of_mean(p, counts, 2) for p in parts]).mean()
    torch.testing.assert_close(shared, goal.losses(model, 0).total, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN, LatentODE])
def test_noise_is_on_what_is_read_and_not_on_what_is_predicted(kind: Any) -> None:
    """With an encoder that reads nothing, noise changes nothing; otherwise it does."""
    train = random_batch(0, [9, 12, 7, 10])
    model = kind.for_data(train, hidden=8).double()
    quiet, noisy = (objective(train, 4, noise=noise) for noise in (0.0, 0.1))

    def loss(goal: Objective, step: int) -> float:
        return float(goal.losses(model, step).total.detach())

    assert loss(quiet, 3) != loss(noisy, 3)
    assert loss(noisy, 3) == loss(noisy, 3)
    assert loss(noisy, 3) != loss(noisy, 2)
    with torch.no_grad():
        model.encoder.first.weight.zero_()
    assert loss(quiet, 3) == loss(noisy, 3)


def test_shares_of_processes_have_the_noise_of_the_whole_batch() -> None:
    train, model = random_batch(0, [9] * 6), RNN.for_data(random_batch(0, [9])).double()
    goal = objective(train, batch_size=6, noise=0.3)
    whole = goal.losses(model, 1).predicted
    shares = [goal.losses(model, 1, rank, 2).predicted for rank in range(2)]
    torch.testing.assert_close(whole[0::2], shares[0], equal_nan=True)
    torch.testing.assert_close(whole[1::2], shares[1], equal_nan=True)
