"""Own steps: segments that end where the model would have ended them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers import ScriptedPCODE, forced, lengths, random_batch, small_pcode, tuned
from skipstone import PCODE, Draws, Knots, Sequences
from skipstone.models.loop import TeacherForcing, walk
from skipstone.models.pcode_training import search_policy, walk_data
from skipstone.models.targets import Targets

pytestmark = pytest.mark.usefixtures("both_paths")

seeds = st.integers(0, 10_000)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def walked(model: PCODE, batch: Sequences, own: Tensor) -> tuple[Knots, Tensor, Targets]:
    """Knots of a walk whose own steps are where `own` says, what it should have reached, and its
    targets."""
    draws = forced(torch.zeros_like(own), own)
    tuned(model, own_steps=0.5)
    source = TeacherForcing(model, batch, batch.values, range(model.config.num_context))
    search = search_policy(model, batch, draws, source)
    list(walk(model, source.begin(), search, source))
    found = walk_data(model, batch, draws)
    return found.knots, search.reach, found.targets


def test_own_steps_end_at_the_observation_nearest_to_the_predicted_end() -> None:
    """Steps of 2.4 and 4.7 from the last observation of the context, at 0, on a grid of one."""
    model = ScriptedPCODE([[2.4, 2.4, 2.4, 9.0], [4.7, 4.7, 4.7, 4.7]])
    batch = Sequences.from_array(torch.zeros(2, 11, 1, dtype=torch.float64))
    everywhere = torch.ones(2, 11, dtype=torch.bool)
    knots, reach, _ = walked(tuned(model, tolerance=1e30), batch, everywhere)
    assert [row.nonzero()[:, 0].tolist() for row in knots.at] == [[0, 2, 4, 6], [0, 5]]
    # What is taught is where the search would have ended: at the end, which is a lower bound.
    assert reach[knots.at].tolist() == [10] * 6
    assert bool(knots.cut[knots.at].all())


def test_own_steps_never_cross_a_change_of_control() -> None:
    model, batch = small_pcode(2, control=1, min_step=5.0), random_batch(4, [30], control=1)
    own = torch.ones(1, 30, dtype=torch.bool)
    knots, _, _ = walked(model, batch, own)
    assert batch.controls is not None
    changed = (batch.controls.diff(dim=1) != 0).any(-1)[0].nonzero()[:, 0] + 1
    assert len(changed) > 2
    assert bool(knots.at[0, changed[changed < 29]].all())


@settings(max_examples=40)
@given(seeds, lengths(5, 12), st.sampled_from(["displacement", "absolute"]))
def test_own_steps_are_fitted_where_they_end_and_taught_where_they_should_have(
    seed: int, sizes: list[int], readout: str
) -> None:
    batch, model = random_batch(seed, sizes), small_pcode(seed, readout=readout)
    own = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    knots, reach, _ = walked(model, batch, own)
    losses = model.loss(batch, forced(torch.zeros_like(own), own))
    fitted = model.loss(batch, Draws(knots=knots))
    close(losses.prediction, fitted.prediction)
    steps, clock = [], model.clock(batch.times)
    for row, index in knots.at.nonzero().tolist():
        if index >= model.config.num_context - 1:
            steps.append(clock[row, reach[row, index]] - clock[row, index])
    assert losses.mean_step == pytest.approx(torch.stack(steps).mean().item())


def test_overshoot_is_not_asked_of_lines_that_went_too_far() -> None:
    """Own steps that end before, at and beyond where the search would end them, at 3."""
    values = torch.tensor([0.0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1], dtype=torch.float64)
    batch = Sequences.from_array(values[None, :, None].expand(3, -1, -1))
    model = ScriptedPCODE([[2.0, 20.0], [3.0, 20.0], [4.0, 20.0]])
    with torch.no_grad():
        model.decoder.last.weight.zero_()
    own = torch.ones(3, 11, dtype=torch.bool)
    _, reach, targets = walked(tuned(model, tolerance=0.5), batch, own)
    assert reach[:, 0].tolist() == [3, 3, 3]
    assert targets.past.tolist() == [3, 11 + 4]
    close(targets.free_lengths[:3], torch.full((3,), 3.0).double())
