"""What holds for every model, and what is exact for the baselines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers import PAPER, lengths, random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Sequences
from skipstone.models.config import READOUTS, READS
from skipstone.models.ode import Dynamics, integrate

MODELS = [PCODE, RNN, ODERNN, LatentODE]
# A solver has one grid for all rows: there a row depends on its company within the solver's error.
OPTIONS = {PCODE: PAPER}
SOLVER_ERROR = {ODERNN: 1e-4, LatentODE: 1e-4}

any_model = pytest.mark.parametrize("kind", MODELS)


def build(kind: Any, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    return kind.from_config({"dim": 2, "hidden": 8, **OPTIONS.get(kind, {}), **options}).double()


def close(one: Tensor, other: Tensor, within: float = 1e-10) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=within)


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
