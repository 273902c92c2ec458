"""Peers of the PC-ODE compute what they are said to compute, behind the same contract."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers import random_batch
from skipstone import RNN, Draws, InvalidInput, Sequences
from skipstone.models.base import MODELS
from skipstone.models.cfc import CfC
from skipstone.models.gru_d import GRUD
from skipstone.models.intervals import updates_in_turn
from skipstone.models.state_space import StateSpace
from skipstone.models.time_aware import TimeAware
from skipstone.testing import LAWS, check_model

PEERS: list[Any] = [CfC, GRUD, StateSpace, TimeAware]


@pytest.mark.parametrize("kind", PEERS)
def test_peers_keep_the_contract(kind: Any) -> None:
    assert len(check_model(kind, within=1e-9, hidden=8)) == 2 * len(LAWS)


def test_peers_can_be_chosen_by_name() -> None:
    named = {"cfc": CfC, "grud": GRUD, "statespace": StateSpace, "timeaware": TimeAware}
    assert {name: MODELS.find(name) for name in named} == named


@pytest.mark.parametrize("kind", [RNN, *PEERS])
def test_a_whole_sequence_at_once_is_one_update_after_the_other(kind: Any) -> None:
    torch.manual_seed(0)
    batch = random_batch(1, [7, 7, 7])
    model = kind.for_data(batch, hidden=8).double()
    gaps = model.clock(batch.times).diff(dim=1, prepend=model.clock(batch.times)[:, :1])
    encoded = model.encode(model.encoder_inputs(batch.values, gaps), None, gaps)
    states = updates_in_turn(model.update, model.initial_state(3), encoded)
    slowly = torch.stack([model.features(state) for state in states.unbind(1)], dim=1)
    assert torch.allclose(model.all_features(encoded), slowly, atol=1e-12)


@pytest.mark.parametrize("kind", PEERS)
def test_missing_values_are_predicted_the_same_one_by_one(kind: Any) -> None:
    """A batch of which nothing is missing is the same on both ways."""
    torch.manual_seed(0)
    batch = random_batch(2, [9, 7])
    model = kind.for_data(batch, hidden=8, missing=True).double()
    prepared = model.prepare(batch, 5)
    fast, _ = model._in_one_pass(prepared, prepared.values)
    slow, _ = model._one_by_one(prepared, prepared.values)
    assert torch.allclose(fast, slow, atol=1e-12)


def test_oscillators_do_not_care_how_a_gap_is_cut() -> None:
    """Moving on by a, then by b, is moving on by a + b."""
    torch.manual_seed(0)
    block: Any = StateSpace.from_config({"dim": 1, "hidden": 8}).double().blocks[0]
    one, other = torch.tensor([0.7, 2.0]).double(), torch.tensor([1.1, 0.0]).double()
    assert torch.allclose(block.passage(one) * block.passage(other), block.passage(one + other))
    assert bool((block.passage(one).abs() < 1).all())


def test_a_state_space_has_an_even_number_of_units() -> None:
    with pytest.raises(InvalidInput, match="hidden must be even"):
        StateSpace.from_config({"dim": 1, "hidden": 7})


def test_gru_d_reads_a_missing_value_as_its_last_one_on_the_way_to_the_mean() -> None:
    model = GRUD.from_config({"dim": 2, "missing": True, "hidden": 4, "reads": "values"}).double()
    with torch.no_grad():
        model.value_decay.copy_(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    nan = torch.nan
    values = torch.tensor([[[2.0, nan], [nan, 3.0], [nan, nan]]], dtype=torch.float64)
    inputs = model.encoder_inputs(values, torch.tensor([[0.0, 1.0, 2.0]], dtype=torch.float64))
    read, observed, since = inputs[0].split(2, dim=1)
    decay = torch.exp(-0.5 * torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64))
    expected = torch.tensor([[2.0, 0.0], [2 * decay[0], 3.0], [2 * decay[1], 3 * decay[2]]])
    assert torch.allclose(read, expected.double())
    assert observed.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert since.tolist() == [[0, 0], [1, 1], [3, 2]]


def test_gru_d_forgets_with_time() -> None:
    torch.manual_seed(0)
    model = GRUD.from_config({"dim": 1, "hidden": 4}).double()
    with torch.no_grad():
        model.state_decay.weight.fill_(100.0)
        model.state_decay.bias.zero_()
    inputs, state = torch.ones(1, 3).double(), torch.ones(1, 4).double()
    inputs[:, -1] = 1.0
    forgotten = model.update(state, model.encode(inputs, None, inputs[:, -1]))
    fresh = model.update(torch.zeros_like(state), model.encode(inputs, None, inputs[:, -1]))
    assert torch.allclose(forgotten, fresh)
    inputs[:, -1] = 0.0
    kept = model.update(state, model.encode(inputs, None, inputs[:, -1]))
    assert not torch.allclose(kept, fresh, atol=1e-2)


def time_aware(batch: Sequences, **options: Any) -> TimeAware:
    torch.manual_seed(0)
    return TimeAware.for_data(batch, hidden=8, num_context=2, **options).double()


def test_training_keeps_one_observation_in_so_many() -> None:
    batch = random_batch(3, [9, 6], irregular=False)
    model = time_aware(batch, longest=3)
    # 4 to the power of the draw: intervals of 1, and of 3.
    draws = Draws(uniform=lambda purpose: torch.tensor([[0.0], [0.9]]).expand(2, 9))
    kept = model.kept(batch, draws)
    assert kept is not None
    assert kept[0].tolist() == [True] * 9
    assert kept[1].tolist() == [True, True, False, False, True, True, False, False, False]
    losses = model.loss(batch, draws)
    assert losses.num_points == 7 + 2
    assert losses.predicted[1].isfinite().all(1).nonzero()[:, 0].tolist() == [4, 5]
    assert model.kept(batch, Draws()) is None


def test_no_training_interval_crosses_a_change_of_control() -> None:
    batch = random_batch(4, [12, 12], control=1)
    assert batch.controls is not None
    draws = Draws(uniform=lambda purpose: torch.full((2, 12), 0.99))
    kept = time_aware(batch).kept(batch, draws)
    assert kept is not None
    changed = (batch.controls.diff(dim=1) != 0).any(2)
    assert bool(changed.any())
    assert bool(kept[:, 1:][changed].all())


def test_larger_steps_take_fewer_updates_and_begin_at_the_observation() -> None:
    batch = random_batch(5, [4, 4], irregular=False)
    model = time_aware(batch)
    paths = [model.rollout(batch.head(2), batch.times[:, 1] + 8, step=step) for step in (1, 4)]
    assert [path.num_updates.tolist() for path in paths] == [[8, 8], [2, 2]]
    for path in paths:
        assert torch.allclose(path.evaluate(path.start[:, None])[:, 0], batch.values[:, 1])
