"""The fast training step against the literal one: same knots, losses and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from helpers import forced, lengths, random_batch, small_pcode
from skipstone import PCODE, Draws, Sequences, find_knots

pytestmark = pytest.mark.usefixtures("both_paths")

EXACT = 1e-10


def gradients(model: PCODE, loss: torch.Tensor) -> list[torch.Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [
        torch.zeros_like(weight) if gradient is None else gradient
        for weight, gradient in zip(model.parameters(), found, strict=True)
    ]


def drawn(batch: Sequences, seed: int, explore: float) -> torch.Tensor:
    """A random mask."""
    return torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed)) < explore


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    sizes=lengths(5),
    control=st.sampled_from([0, 2]),
    control_effect=st.sampled_from(["drive", "update"]),
    missing=st.sampled_from([0.0, 0.3]),
    readout=st.sampled_from(["displacement", "absolute"]),
    reads=st.sampled_from(["values", "motion"]),
    step_layers=st.sampled_from([1, 3]),
    num_context=st.integers(1, 4),
    min_step=st.sampled_from([0.1, 1.0, 2.5]),
    tolerance=st.sampled_from([0.0, 1e-3, 0.03, 0.1, 0.3, 1.0, 1e30]),
    explore=st.sampled_from([0.0, 0.01, 0.3]),
    own_steps=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_fast_training_step_is_the_papers(
    seed: int,
    sizes: list[int],
    control: int,
    control_effect: str,
    missing: float,
    readout: str,
    reads: str,
    step_layers: int,
    num_context: int,
    min_step: float,
    tolerance: float,
    explore: float,
    own_steps: float,
) -> None:
    """With `own_steps` it is the paper's with segments that the model ends itself."""
    batch = random_batch(seed, sizes, control=control, spacing=0.3, missing=missing)
    model = small_pcode(
        seed,
        control=control,
        control_effect=control_effect,
        missing=missing > 0,
        center=(0.5, -1.0),
        scale=(1.5, 0.7),
        control_scale=(2.0,),
        readout=readout,
        reads=reads,
        step_layers=step_layers,
        num_context=num_context,
        min_step=min_step,
        time_unit=0.3,
        tolerance=tolerance,
        explore=0.5,
        own_steps=0.5,
    )
    longer, own = drawn(batch, seed, explore), drawn(batch, seed + 1, own_steps)
    expected = oracle.masked_training_step(model, batch, tolerance, longer, own)
    draws = forced(longer, own)
    knots = find_knots(model, batch, draws)
    assert torch.equal(knots.at, expected.knots)
    losses = model.loss(batch, draws)
    if not own_steps:
        assert torch.equal(model.loss(batch, Draws(knots=knots)).total, losses.total)
    assert abs(losses.prediction - expected.prediction) < EXACT
    assert abs(losses.step - expected.step) < EXACT
    assert abs(losses.total - expected.total) < EXACT
    for fast, literal in zip(
        gradients(model, losses.total), gradients(model, expected.total), strict=True
    ):
        assert (fast - literal).abs().max() < EXACT


def test_the_comparison_covers_segments_of_many_lengths() -> None:
    """The oracle test would prove little if every segment had one observation, or none ended."""
    batch = random_batch(1, [40] * 20)
    model = small_pcode(1)
    knots = find_knots(model, batch)
    steps = torch.cat([row.nonzero()[3:, 0].diff() for row in knots.at])
    assert set(steps.tolist()) >= {1, 2, 3}
    assert 0 < knots.cut.sum() < knots.at.sum()
