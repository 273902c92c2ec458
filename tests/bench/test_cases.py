"""Data and models of the benchmark: their mean step is what they are named after."""

from __future__ import annotations

import pytest
import torch

from benchmarks.cases import (
    STEP_SPREAD,
    TOLERANCE,
    mean_step,
    pcode_loss,
    recommended_pcode,
    staircase,
    stepping_pcode,
    still_pcode,
    training_step_length,
    typical_row,
    updates,
)
from benchmarks.peers import train_pcode
from skipstone import PCODE, find_knots


@pytest.mark.parametrize("wanted", [1, 2.7, 5, 17])
def test_the_search_finds_the_steps_of_a_staircase(wanted: float) -> None:
    batch = staircase(64, wanted, observations=45, dim=4)
    model = still_pcode(4, hidden=16)
    losses = model.loss(batch)
    # Exactly so many segments as the mean asks for, and no others.
    assert losses.num_steps == round(64 * 41 / wanted)
    assert losses.mean_step == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("wanted", [1, 2.7, 5, 17])
def test_exploration_changes_the_mean_step_by_a_few_percent(wanted: float) -> None:
    batch = staircase(256, wanted, observations=45, dim=4)
    losses = pcode_loss(still_pcode(4, hidden=16), batch)
    assert losses.mean_step == pytest.approx(wanted, rel=0.04)


def test_rows_of_a_staircase_differ() -> None:
    """Rows of equal length would leave together, and lengths without spread would suit a search
    that guesses from the last one."""
    batch = staircase(256, 5, observations=45, dim=4)
    knots = find_knots(still_pcode(4, hidden=16), batch)
    assert knots.count.double().std() > 1
    lengths = torch.cat([row.nonzero()[3:, 0].diff() for row in knots.at])
    assert lengths.double().std() > 2
    assert lengths.min() == 1


def test_long_sequences_keep_their_events() -> None:
    rate = 64
    batch = staircase(4, (45 * rate - 4) / 8, observations=45 * rate, dim=4)
    model = still_pcode(4, hidden=16, velocity_scale=0.2 / rate, max_step=45.0 * rate)
    assert model.loss(batch).num_steps == 4 * 8


@pytest.mark.parametrize("wanted", [1, 2.7, 5, 17])
def test_the_recommended_model_trains_with_the_steps_it_was_set_to(wanted: float) -> None:
    batch = staircase(64, wanted, observations=45, dim=4)
    model = recommended_pcode(batch, wanted, hidden=16)
    defaults = PCODE.Config(dim=4, hidden=16, tolerance=TOLERANCE)
    assert model.config == defaults
    assert training_step_length(model, batch) == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize("recommended", [False, True])
def test_training_leaves_the_steps_as_they_are(recommended: bool) -> None:
    batch = staircase(16, 5, observations=45, dim=4)
    model = recommended_pcode(batch, 5, hidden=16) if recommended else still_pcode(4, hidden=16)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    run = train_pcode(model, batch)
    for _ in range(2):
        run()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    gradients = [weight.grad for weight in model.parameters()]
    assert all(gradient is not None and bool(gradient.any()) for gradient in gradients)


@pytest.mark.parametrize("wanted", [1, 2.7, 5, 17])
def test_rollouts_have_the_mean_step_they_were_set_to(wanted: float) -> None:
    batch = staircase(100, 5, observations=45, dim=4)
    model = stepping_pcode(batch, wanted, hidden=16)
    path = updates(model, batch)
    assert mean_step(path, model) == pytest.approx(wanted, rel=0.03)
    row = typical_row(path)
    alone = updates(model, batch[row])
    assert alone.num_updates[0] == path.num_updates[row]
    # One update more or less is all that can separate a row from the mean.
    assert abs(41 / wanted - float(alone.num_updates[0])) <= 1


def test_predicted_steps_vary() -> None:
    batch = staircase(100, 5, observations=45, dim=4)
    steps = updates(stepping_pcode(batch, 5, hidden=16), batch).steps[:, 0]
    assert steps.std() > STEP_SPREAD
