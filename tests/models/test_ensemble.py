"""Ensembles: a model of the contract, whose path is the mean of its members'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import random_batch
from skipstone import (
    ODERNN,
    PCODE,
    RNN,
    Ensemble,
    InvalidInput,
    Recipe,
    Sequences,
    calibrate,
    evaluate,
    fit,
    load,
)
from skipstone.testing import LAWS, check_model


class Mixed(Ensemble):
    """An ensemble that can be built from data, as the check of the contract does."""

    @classmethod
    def for_data(cls, sequences: Sequences, **options: Any) -> Mixed:
        return cls([kind.for_data(sequences, **options) for kind in (PCODE, RNN, PCODE)])


def test_an_ensemble_keeps_the_contract() -> None:
    assert len(check_model(Mixed, hidden=8)) == 2 * len(LAWS)


@pytest.fixture
def data() -> Sequences:
    return random_batch(0, [9, 12, 7, 10], dtype=torch.float64)


def members(data: Sequences) -> list[Any]:
    torch.manual_seed(0)
    return [kind.for_data(data, hidden=8).double() for kind in (PCODE, ODERNN, PCODE)]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_path_is_the_mean_of_its_members(side: str, data: Sequences) -> None:
    """Anywhere, and at any member's knots from both sides."""
    models = members(data)
    context = data.head(4)
    until = context.ends + 5
    path = Ensemble(models).rollout(context, until)
    own = [model.rollout(context, until) for model in models]
    grid = context.ends[:, None] + torch.linspace(0, 5, 23)
    times = torch.cat([grid, *(p.knots.minimum(p.end[:, None]) for p in own)], dim=1)
    each = torch.stack([p.evaluate(times, side=side) for p in own])
    torch.testing.assert_close(path.evaluate(times, side=side), each.mean(0))
    if side == "left":
        torch.testing.assert_close(path.spread(times), each.std(0))
    assert torch.equal(path.num_updates, path.knots.isfinite().sum(1))
    for p in own:
        assert (path.num_updates >= p.num_updates).all()
    assert (path.num_evaluations > 0).all()


def test_two_of_the_same_are_one(data: Sequences, tmp_path: Path) -> None:
    model = members(data)[0]
    model.save(tmp_path)
    context = data.head(4)
    until, times = context.ends + 4, context.ends[:, None] + torch.linspace(0, 4, 9)
    path, alone = (m.rollout(context, until) for m in (Ensemble([model, load(tmp_path)]), model))
    torch.testing.assert_close(path.evaluate(times), alone.evaluate(times))
    assert (path.spread(times) == 0).all()
    assert torch.equal(path.num_updates, alone.num_updates)


def test_an_ensemble_is_one_folder(data: Sequences, tmp_path: Path) -> None:
    ensemble = calibrate(Ensemble(members(data)), data)
    ensemble.save(tmp_path)
    again = load(tmp_path)
    assert type(again) is Ensemble
    assert again.config == ensemble.config
    assert type(Ensemble.load(tmp_path)) is Ensemble
    context = data.head(4)
    until = context.ends + 2
    one, other = (m.rollout(context, until).interval(until[:, None]) for m in (ensemble, again))
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".lock") == [
        "calibration.safetensors",
        "config.json",
        "weights.safetensors",
    ]


def test_an_ensemble_is_trained_and_evaluated_as_any_model(tmp_path: Path) -> None:
    data = random_batch(0, [9, 12, 7, 10] * 3, dtype=torch.float32)
    torch.manual_seed(0)
    ensemble = Ensemble([RNN.for_data(data, hidden=8) for _ in range(2)])
    before = [weight.detach().clone() for weight in ensemble.parameters()]
    recipe = Recipe(steps=3, batch_size=4)
    fit(ensemble, data, folder=tmp_path, recipe=recipe, progress=False, device="cpu")
    assert all(not torch.equal(a, b) for a, b in zip(before, ensemble.parameters(), strict=True))
    assert evaluate(load(tmp_path), data, timing=False).sample_mse.value > 0


def test_what_is_no_ensemble_is_explained(data: Sequences) -> None:
    one, *_ = members(data)
    wide = RNN.for_data(random_batch(0, [6], dim=3), hidden=8)
    for models, message in [
        ([one], "at least two models; got 1"),
        ([one, one], "one is there twice"),
        (
            [one, wide],
            r"same features and controls; got \(dim, control\) of \[\(2, 0\), \(3, 0\)\]",
        ),
        ([one, "rnn"], "model must be a Model; got str"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            Ensemble(models)  # pyright: ignore
    with pytest.raises(InvalidInput, match=r"Build it with Ensemble\(\[model, other\]\)"):
        Ensemble.for_data(data)
