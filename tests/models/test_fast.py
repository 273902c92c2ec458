"""The fast path against the readable one: same knots, losses, gradients and rollouts."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers import lengths, random_batch, small_pcode, tuned
from skipstone import PCODE, Draws, Losses, Path, Sequences, find_knots
from skipstone.errors import InvalidInput
from skipstone.models import fast
from skipstone.models.fast import native, training

pytestmark = pytest.mark.usefixtures("fast_path")

EXACT = 1e-10

SHAPES = {
    "seed": st.integers(0, 10_000),
    "sizes": lengths(5, 25, rows=40),
    "control": st.sampled_from([0, 2]),
    "control_effect": st.sampled_from(["drive", "update"]),
    "readout": st.sampled_from(["displacement", "absolute"]),
    "reads": st.sampled_from(["values", "motion"]),
    "step_layers": st.sampled_from([1, 2, 3]),
    "layers": st.sampled_from([2, 4]),
    "hidden": st.sampled_from([2, 10, 32]),
    "num_context": st.integers(1, 4),
    "min_step": st.sampled_from([0.1, 1.0, 2.5]),
    "whole_steps": st.booleans(),
}

LEFT_OUT = {"activation": "silu", "missing": True, "targets": (0,)}
"""Settings that only the readable path has."""


def problem(seed: int, sizes: list[int], **options: Any) -> tuple[PCODE, Sequences]:
    batch = random_batch(seed, sizes, control=options["control"], spacing=0.3)
    return small_pcode(seed, time_unit=0.3, **options), batch


def trained(model: PCODE, batch: Sequences, draws: Draws) -> tuple[Losses, list[Tensor]]:
    losses = model.loss(batch, draws)
    weights = list(model.parameters())
    found = torch.autograd.grad(losses.total, weights, allow_unused=True)
    pairs = zip(found, weights, strict=True)
    return losses, [torch.zeros_like(w) if g is None else g for g, w in pairs]


@settings(max_examples=30)
@given(
    **SHAPES,
    tolerance=st.sampled_from([0.0, 0.03, 0.1, 0.3, 1.0, 1e30]),
    explore=st.sampled_from([0.0, 0.3]),
    own_steps=st.sampled_from([0.0, 0.5, 1.0]),
    overshoot=st.sampled_from([0.0, 0.3]),
    step_loss=st.sampled_from(["difference", "ratio"]),
    noise=st.booleans(),
)
def test_training_steps_agree(seed: int, sizes: list[int], noise: bool, **options: Any) -> None:
    model, batch = problem(seed, sizes, **options)
    draws = Draws.seeded(batch, seed)
    if noise:
        draws = replace(draws, noise=0.1 * torch.randn_like(batch.values))
    one, gradients = trained(model, batch, draws)
    knots = find_knots(model, batch, draws)
    with fast.readable_path():
        other, expected = trained(model, batch, draws)
        same = find_knots(model, batch, draws)
    assert torch.equal(knots.at, same.at)
    assert torch.equal(knots.cut, same.cut)
    for name in ("total", "prediction", "step", "mean_step", "num_updates", "num_steps"):
        found, wanted = (
            float(torch.as_tensor(getattr(losses, name)).detach()) for losses in (one, other)
        )
        assert found == pytest.approx(wanted, rel=EXACT, abs=EXACT), name
    for found, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=EXACT, atol=EXACT)


@settings(max_examples=30)
@given(
    **SHAPES,
    step=st.sampled_from([None, 0.4]),
    max_updates=st.sampled_from([None, 3]),
    later=st.booleans(),
    alike=st.booleans(),
)
@torch.no_grad()
def test_rollouts_agree(
    seed: int,
    sizes: list[int],
    step: float | None,
    max_updates: int | None,
    later: bool,
    alike: bool,
    **options: Any,
) -> None:
    model, batch = problem(seed, sizes, **options)
    batch = batch.tail(options["num_context"])
    if alike:  # As the candidates of a planner: a context of many rows that is read once.
        batch = batch[torch.zeros(7, dtype=torch.long)]
    controls = None
    if later and options["control"]:
        values = torch.randn(len(batch), 5, 2, generator=torch.Generator().manual_seed(seed))
        controls = batch.ends.max() + 0.7 * torch.arange(1, 6), values.double()

    def rolled() -> tuple[Path, Tensor]:
        until = batch.ends.max() + 5
        path = model.rollout(batch, until, controls, step=step, max_updates=max_updates)
        part = torch.linspace(0, 1, 33, dtype=torch.float64)
        return path, path.evaluate(path.start[:, None] + part * (path.end - path.start)[:, None])

    one, values = rolled()
    with fast.readable_path():
        other, expected = rolled()
    assert torch.equal(one.status, other.status)
    for found, wanted in ((one.knots, other.knots), (one.end, other.end), (values, expected)):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_single_precision_agrees() -> None:
    torch.manual_seed(0)
    batch = random_batch(0, [30, 20, 25] * 20, dtype=torch.float32)
    model = PCODE.for_data(batch, hidden=64, tolerance=0.1, anneal_from=0.0)
    assert fast.library_for(model, batch.values) is not None
    knots = find_knots(model, batch)
    one, gradients = trained(model, batch, Draws(knots=knots))
    with fast.readable_path():
        assert torch.equal(find_knots(model, batch).at, knots.at)
        other, expected = trained(model, batch, Draws(knots=knots))
    torch.testing.assert_close(one.total, other.total)
    for found, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-6)


def test_a_row_is_the_same_bit_for_bit_in_any_company() -> None:
    batch, model = random_batch(0, [20, 9, 15] * 15), small_pcode(0, hidden=12)
    together = model.loss(batch).predicted
    for row in (0, 1, 31, 44):
        alone = model.loss(batch[row]).predicted[0]
        inside = together[row, : len(alone)]
        assert torch.equal(alone.nan_to_num(-1), inside.nan_to_num(-1))


def test_gradients_do_not_depend_on_the_number_of_threads() -> None:
    batch, model = random_batch(0, [20, 9, 15] * 40), small_pcode(0, hidden=12)
    _, one = trained(model, batch, Draws.seeded(batch, 0))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        _, three = trained(model, batch, Draws.seeded(batch, 0))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one, three, strict=True))


def test_a_backward_pass_can_be_repeated_only_if_asked_for() -> None:
    batch, model = random_batch(0, [9, 6]), small_pcode(0)
    total = model.loss(batch).total
    first = torch.autograd.grad(total, list(model.parameters()), retain_graph=True)
    second = torch.autograd.grad(total, list(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(total, list(model.parameters()))


def test_memory_is_released_by_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tapes: list[weakref.ref[Any]] = []

    def tied_to(tape: native.Tape) -> Tensor:
        tapes.append(weakref.ref(tape))
        return original(tape)

    original = native.tied_to
    monkeypatch.setattr(training.native, "tied_to", tied_to)
    losses = small_pcode(0).loss(random_batch(0, [9, 6]))
    assert tapes[0]() is not None
    losses.total.backward()
    gc.collect()
    assert tapes[0]() is None
    assert losses.total.grad_fn is not None


def test_what_the_fast_path_leaves_to_the_readable_one() -> None:
    model, batch = small_pcode(0), random_batch(0, [9, 6])
    values = batch.values
    assert fast.library_for(model, values) is not None

    class Own(PCODE):
        """It may override anything."""

    hooked = small_pcode(0)
    hooked.cell.register_forward_hook(lambda *_: None)
    other = small_pcode(0)
    torch.nn.utils.parametrizations.spectral_norm(other.encoder.last)
    others = [small_pcode(0, **{name: value}) for name, value in LEFT_OUT.items()]
    for kind in (Own(model.config).double(), hooked, other, *others):
        assert fast.library_for(kind, values) is None
    assert fast.library_for(model, values.half()) is None
    assert fast.library_for(model, values.to("meta")) is None
    differentiable = Sequences(batch.times, values.requires_grad_(), mask=batch.mask)
    scored = batch.mask
    assert fast.try_fit(model, differentiable, Draws(), 0.1, scored) is None
    with fast.readable_path():
        assert fast.library_for(model, values.detach()) is None


def test_numbers_that_are_not_finite_are_noticed() -> None:
    model, batch = small_pcode(0), random_batch(0, [9, 6])
    with torch.no_grad():
        model.cell.weight_hh.fill_(torch.nan)
        for weight in model.encoder.parameters():
            weight.fill_(torch.nan)
        with pytest.raises(InvalidInput, match="does not advance"):
            model.rollout(batch.tail(4), batch.ends + 3)
    assert model.loss(batch).total.isnan()


def test_a_long_sequence_is_not_quadratic() -> None:
    """Two hundred times as many observations in one sequence as in the others' tests."""
    batch = random_batch(0, [5000])
    losses, gradients = trained(tuned(small_pcode(0), tolerance=1.0), batch, Draws())
    assert losses.mean_step > 1
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
