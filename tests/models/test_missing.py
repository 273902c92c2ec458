"""Missing values: NaN is what was not observed, and units are those of the data."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from helpers import PAPER, random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Sequences
from skipstone.models.scaling import measure_scale

MODELS = [PCODE, RNN, ODERNN, LatentODE]
any_model = pytest.mark.parametrize("kind", MODELS)


def build(kind: Any, data: Sequences, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind.for_data(data, hidden=8, **options).double()


def close(one: Tensor, other: Tensor, within: float = 1e-9) -> None:
    torch.testing.assert_close(one, other, rtol=within, atol=within)


@any_model
def test_predictions_are_in_the_units_of_the_data(kind: Any) -> None:
    """Data in other units, far from zero: the same model says the same in those units."""
    data = random_batch(0, [9, 9, 9], control=1)
    assert data.controls is not None
    factor, shift = torch.tensor([1e5, 1e-5]).double(), torch.tensor([-3e5, 7e-5]).double()
    other = Sequences(data.times, data.values * factor + shift, data.controls * 40 - 3)
    one, two = build(kind, data), build(kind, other)
    close(one.loss(data).total, two.loss(other).total)
    context, elsewhere = data.head(4), other.head(4)
    until = context.ends + 5
    at = context.ends[:, None] + torch.tensor([0.0, 1.3, 4.9]).double()
    here = one.rollout(context, until).evaluate(at)
    there = two.rollout(elsewhere, until).evaluate(at)
    close((there - shift) / factor, here, within=1e-6)


@any_model
def test_a_missing_value_has_no_loss_and_no_influence(kind: Any) -> None:
    """Whatever stood there: the loss has no way to know. What is predicted is finite."""
    data = random_batch(1, [9, 7], missing=0.3)
    assert not data.complete
    model = build(kind, data, tolerance=0.1) if kind is PCODE else build(kind, data)
    losses = model.loss(data)
    losses.total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert bool(weight.grad.isfinite().all()), name
    errors = (losses.predicted - model.prepare(data, 5).values).square()
    seen = ~errors.isnan()
    points = (errors.nan_to_num().sum(2) / seen.sum(2).clamp(min=1))[seen.any(2)]
    close(losses.prediction.detach(), points.mean())
    context = data.head(4)
    path = model.rollout(context, context.ends + 3)
    assert bool(path.evaluate(path.end[:, None]).isfinite().all())
    start = path.evaluate(context.ends[:, None])[:, 0]
    known = ~context.values[:, -1].isnan()
    close(start[known], context.values[:, -1][known])


@pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN])
def test_an_own_prediction_stands_for_what_is_missing(kind: Any) -> None:
    """With it written into the data, and the mask as it was, nothing changes."""
    data = random_batch(2, [5])
    values = data.values.clone()
    values[0, 3, 1] = torch.nan
    hidden = Sequences(data.times, values)
    model = build(kind, hidden, reads="values", **({"tolerance": 0.0} if kind is PCODE else {}))
    with torch.no_grad():
        # Without sight of the mask, whose inputs are the last but those of controls and time.
        width = model.encoder.first.weight.shape[1]
        mask = slice(2, 4)
        assert width in (4, 5)
        model.encoder.first.weight[:, mask] = 0
    own = model.rollout(hidden.head(4).select(torch.tensor([[True] * 4])), data.times[0, 4].item())
    filled = values.clone()
    filled[0, 3, 1] = own.evaluate(hidden.times[0, 3].item())[0, 1]
    whole = Sequences(data.times, filled)
    close(model.loss(hidden).predicted[:, 4], model.loss(whole).predicted[:, 4])


def test_an_observation_of_nothing_is_a_gap() -> None:
    data = random_batch(3, [6, 6])
    values = data.values.clone()
    values[0, 2] = torch.nan
    found = Sequences(data.times, values)
    assert found.lengths.tolist() == [5, 6]
    assert found.complete
    assert found.times[0, :5].tolist() == data.times[0, [0, 1, 3, 4, 5]].tolist()
    # A control may have changed there, so with controls it stays.
    held = Sequences(data.times, values, controls=torch.ones(2, 6, 1))
    assert held.lengths.tolist() == [6, 6]
    with pytest.raises(InvalidInput, match="all values of sequence 1 are NaN"):
        Sequences(data.times, torch.stack([values[0], torch.full_like(values[1], torch.nan)]))


@any_model
def test_missing_values_need_a_model_that_knows_of_them(kind: Any) -> None:
    whole, gappy = random_batch(1, [9, 7]), random_batch(1, [9, 7], missing=0.3)
    model = build(kind, whole)
    with pytest.raises(InvalidInput, match=re.escape("for_data(sequences, missing=True)")):
        model.loss(gappy)
    assert build(kind, whole, missing=True).loss(gappy).total.isfinite()


def test_scales_are_measured_on_what_was_observed() -> None:
    values = torch.tensor([[1.0, 5.0], [3.0, torch.nan], [5.0, 5.0], [torch.nan, 5.0]])
    center, scale = measure_scale(values, "standard", joint=False)
    assert center == (3.0, 5.0)
    assert scale == (pytest.approx((8 / 3) ** 0.5), 1.0)
    wild = torch.cat([torch.linspace(-1, 1, 101)[:, None], torch.tensor([[1e9]])])
    center, scale = measure_scale(wild, "robust", joint=False)
    assert abs(center[0]) < 0.02
    assert scale[0] == pytest.approx(1 / 1.349, rel=0.02)
    assert measure_scale(wild, "none", joint=False) == ((0.0,), (1.0,))


def test_only_targets_shorten_steps() -> None:
    """A feature that nobody can predict does not count if it is not a target."""
    torch.manual_seed(0)
    still, noise = torch.zeros(4, 20, 1), torch.randn(4, 20, 1)
    data = Sequences.from_array(torch.cat([still, noise], dim=2).double())
    data = data.named(features=["still", "noise"])
    options: dict[str, Any] = {**PAPER, "tolerance": 0.3}
    updates = []
    for targets in ((), "still"):
        model = build(PCODE, data, targets=targets, **options)
        with torch.no_grad():
            model.decoder.last.weight.zero_()
        updates.append(model.loss(data).num_updates)
    assert updates[0] > updates[1] == 4 * 4


@any_model
def test_a_context_that_is_not_read_whole_is_said(kind: Any) -> None:
    data = random_batch(1, [9, 7])
    model = build(kind, data)
    with pytest.warns(UserWarning, match="reads the last 4 observations of a context"):
        path = model.rollout(data, data.ends + 2)
    close(
        path.evaluate(path.end[:, None]),
        model.rollout(data.tail(4), path.end).evaluate(path.end[:, None]),
    )
