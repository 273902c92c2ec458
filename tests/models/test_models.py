"""What holds for every model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest
import torch
from building import build, close
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers import lengths, random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Sequences
from skipstone.models.config import READOUTS, READS

MODELS = [PCODE, RNN, ODERNN, LatentODE]
# A solver has one grid for all rows: there a row depends on its company within the solver's error.
SOLVER_ERROR = {ODERNN: 1e-4, LatentODE: 1e-4}

any_model = pytest.mark.parametrize("kind", MODELS)


@any_model
@pytest.mark.parametrize("readout", ["displacement", "absolute"])
def test_every_weight_is_trained(kind: Any, readout: str) -> None:
    """The decoder's too, its output bias included: where that would cancel, there is none."""
    model = build(kind, control=1, hidden=32, readout=readout)
    model.loss(random_batch(0, [9, 7, 12], control=1)).total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name
    moved = readout == "displacement" and kind is not RNN
    assert (model.decoder.last.bias is None) == moved


@any_model
def test_config_survives_json(kind: Any) -> None:
    model = build(kind, control=3, time_unit=0.25)
    again = kind.from_config(json.loads(json.dumps(asdict(model.config))))
    assert again.config == model.config


@any_model
@settings(max_examples=10)
@given(seed=st.integers(0, 1000), sizes=lengths(4, 7, rows=3))
def test_a_path_does_not_depend_on_its_company(kind: Any, seed: int, sizes: list[int]) -> None:
    model, batch = build(kind, seed, control=1), random_batch(seed, sizes, control=1)
    batch = batch.tail(4)
    together = model.rollout(batch, batch.ends + 5.5)
    at = torch.linspace(0, 5.5, 9).double()
    expected = together.evaluate(batch.ends[:, None] + at)
    for row in range(len(batch)):
        alone = model.rollout(batch[row], batch.ends[row].item() + 5.5)
        found = alone.evaluate(batch.ends[row, None, None] + at)[0]
        close(found, expected[row], within=SOLVER_ERROR.get(kind, 1e-10))
        assert int(alone.num_updates) == int(together.num_updates[row])


@any_model
@settings(max_examples=10)
@given(seed=st.integers(0, 1000), sizes=lengths(5, 9, rows=3))
def test_a_loss_is_the_mean_over_observations(kind: Any, seed: int, sizes: list[int]) -> None:
    """So neither order nor padding nor company matters: each sequence brings its own share."""
    model, batch = build(kind, seed, control=1), random_batch(seed, sizes, control=1)
    skipped = model.config.num_context
    shares = torch.stack(
        [model.loss(batch[i]).prediction * (sizes[i] - skipped) for i in range(len(sizes))]
    )
    expected = shares.sum() / sum(size - skipped for size in sizes)
    within = SOLVER_ERROR.get(kind, 1e-10)
    close(model.loss(batch).prediction, expected, within)
    close(model.loss(batch[list(range(len(sizes)))[::-1]]).prediction, expected, within)


@any_model
def test_predictions_are_laid_out_like_the_batch(kind: Any) -> None:
    model, batch = build(kind), random_batch(0, [6, 9, 7])
    losses = model.loss(batch)
    within = SOLVER_ERROR.get(kind, 1e-10)
    predicted = batch.mask.clone()
    predicted[:, : model.config.num_context] = False
    assert torch.equal(losses.predicted.isfinite().all(2), predicted)
    errors = (losses.predicted - batch.values).square().mean(2)[predicted]
    close(errors.mean(), losses.prediction.detach(), within)
    assert losses.num_points == len(errors)
    for row in range(3):
        alone = model.loss(batch[row]).predicted[0]
        close(losses.predicted[row, : len(alone)].nan_to_num(), alone.nan_to_num(), within)


@any_model
def test_a_path_starts_at_the_last_observation_and_is_continuous(kind: Any) -> None:
    model, context = build(kind), random_batch(3, [4, 4])
    path = model.rollout(context, context.ends + 4)
    close(path.start, context.ends)
    close(path.evaluate(context.ends[:, None]), context.tail(1).values)
    knots = path.knots[:, 1:2].clamp(max=path.end[:, None])
    close(path.evaluate(knots), path.evaluate(knots, side="right"))


@any_model
@pytest.mark.parametrize("readout", ["displacement", "absolute"])
def test_a_loss_is_the_error_of_a_rollout(kind: Any, readout: str) -> None:
    """At the first observation after the context, which both predict from the same."""
    model = build(kind, readout=readout, control=1)
    batch = random_batch(2, [6, 6], control=1, irregular=False)
    path = model.rollout(batch.head(4), batch.times[:, 4])
    close(model.loss(batch).predicted[:, 4:5], path.evaluate(batch.times[:, 4:5]))


@pytest.mark.parametrize("kind", [RNN, ODERNN])
@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("readout", READOUTS)
def test_a_model_predicts_its_own_rollouts_exactly(kind: Any, reads: str, readout: str) -> None:
    """Training shows a model of observations what a rollout shows it of its own predictions."""
    model, context = build(kind, reads=reads, readout=readout), random_batch(5, [4, 4])
    context = Sequences(torch.arange(4.0).double().expand(2, 4), context.values)
    times = torch.arange(9.0).double().expand(2, 9)
    later = model.rollout(context, 8.0).evaluate(times[:, 4:])
    found = model.loss(Sequences(times, torch.cat([context.values, later], dim=1)))
    close(found.predicted[:, 4:], later)
    # Not because everything stands still.
    assert later.diff(dim=1).abs().min() > 1e-6


@any_model
def test_displacements_move_with_their_start_and_absolute_readings_do_not(kind: Any) -> None:
    """A model that cannot see where it is knows only how far it moves, or only where it goes."""
    context, away = random_batch(3, [4, 4], irregular=False), 7.0
    elsewhere = Sequences(context.times, context.values + away)
    for readout, shift in (("displacement", away), ("absolute", 0.0)):
        model = build(kind, readout=readout)
        with torch.no_grad():
            model.encoder.first.weight[:, : model.config.dim] = 0
        later = context.ends[:, None] + 1
        here, there = (
            model.rollout(batch, context.ends + 1).evaluate(later) for batch in (context, elsewhere)
        )
        close(there - here, torch.full_like(here, shift))


@pytest.mark.parametrize("kind", [PCODE, ODERNN, LatentODE])
def test_an_absolute_readout_is_trained_where_segments_begin(kind: Any) -> None:
    """Displacements vanish there by construction. A decoder that says zero is off by the value."""
    batch = random_batch(0, [4, 4], irregular=False)
    # Its context is all but the last observation; the others begin a segment at each of those.
    begins, points = ([2], 2) if kind is LatentODE else ([0, 1, 2], 2)
    off = batch.values[:, begins].square().mean(-1).sum() / points
    tolerance: dict[str, Any] = {"tolerance": 0.0} if kind is PCODE else {}
    for readout, expected in (("displacement", torch.zeros_like(off)), ("absolute", off)):
        model = build(kind, readout=readout, num_context=3, **tolerance)
        with torch.no_grad():
            for weight in model.decoder.last.parameters():
                weight.zero_()
        found = model.loss(batch)
        close(found.total - found.prediction - found.step_weight * found.step, expected)


def test_a_readout_is_one_of_two() -> None:
    with pytest.raises(InvalidInput, match='"displacement" or "absolute"; got \'relative\''):
        build(RNN, readout="relative")


@any_model
def test_no_query_gives_no_answer(kind: Any) -> None:
    context = random_batch(3, [4, 4])
    assert build(kind).rollout(context, context.ends + 4).evaluate(torch.ones(0)).shape == (2, 0, 2)


@any_model
def test_a_path_is_differentiable_in_time(kind: Any) -> None:
    model, context = build(kind), random_batch(3, [4, 4])
    path = model.rollout(context, context.ends + 4)
    times = (context.ends[:, None] + torch.tensor([0.4, 2.3])).requires_grad_()
    (slope,) = torch.autograd.grad(path.evaluate(times).sum(), times)
    with torch.no_grad():
        change = path.evaluate(times + 1e-5) - path.evaluate(times - 1e-5)
    close(slope, change.sum(-1) / 2e-5, within=1e-4 if kind in SOLVER_ERROR else 1e-7)


@any_model
def test_a_path_is_differentiable_in_its_context(kind: Any) -> None:
    model, context = build(kind), random_batch(3, [4, 4])

    def predict(values: Tensor) -> Tensor:
        path = model.rollout(Sequences(context.times, values), context.ends + 3)
        return path.evaluate(context.ends[:, None] + 2.5)

    assert torch.autograd.gradcheck(predict, context.values.clone().requires_grad_())


@any_model
def test_data_that_do_not_fit_are_explained(kind: Any) -> None:
    model, batch = build(kind), random_batch(0, [6, 3])
    for act, message in [
        (lambda: model.rollout(batch, 99.0), "at least 4 observations here; sequence 1 has 3"),
        (
            lambda: model.rollout(batch[0].tail(4), 0.0),
            "until must be a finite time after the context",
        ),
        (
            lambda: model.rollout(random_batch(0, [6], control=1), 99.0),
            f"the data have 2 and 1. Build the model with {kind.__name__}.for_data(sequences).",
        ),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            act()


def test_raw_arrays_are_explained() -> None:
    """In a process of its own, where annotations are not checked before the function is."""
    code = """
import torch
from skipstone import PCODE, InvalidInput, Sequences, fit
values = torch.zeros(12, 6, 2)
model = PCODE.for_data(Sequences.from_array(values), hidden=4)
for use in (
    lambda: PCODE.for_data(values),
    lambda: model.loss(values),
    lambda: model.rollout(values, 9.0),
    lambda: fit(model, values, folder='nowhere'),
):
    try:
        use()
    except InvalidInput as error:
        assert 'data must be Sequences; got Tensor. Wrap it: Sequences.from_array' in str(error)
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@any_model
def test_images_are_converted(kind: Any) -> None:
    images = torch.randint(0, 255, (2, 8, 2), dtype=torch.uint8)
    model = build(kind)
    whole = model.loss(Sequences.from_array(images)).total
    close(whole, model.loss(Sequences.from_array(images.double() / 255)).total)


@pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN])
def test_rows_with_the_same_past_are_read_once_and_end_the_same(kind: Any) -> None:
    """The candidates of a planner: one context, and a control that differs at its end."""
    model, one = build(kind, control=1), random_batch(2, [4], control=1)
    assert one.controls is not None
    controls = one.controls.expand(3, -1, -1).clone()
    controls[:, -1, 0] = torch.tensor([0.0, 1.0, 2.0])
    rows = Sequences(one.times.expand(3, -1), one.values.expand(3, -1, -1), controls)
    seen = []
    model.encoder.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[1]))
    together = model.rollout(rows, one.ends.item() + 3).evaluate(one.ends.item() + 3)
    assert seen[:2] == [1, 3]
    for row in range(3):
        alone = model.rollout(rows[row : row + 1], one.ends.item() + 3)
        close(alone.evaluate(one.ends.item() + 3)[0], together[row])
