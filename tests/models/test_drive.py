"""Controls that drive the latent motion, at no cost in updates."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers import random_batch, small_pcode
from skipstone import PCODE, Sequences, find_knots
from skipstone.models import fast
from skipstone.models.controls import ControlSignal, Drive

pytestmark = pytest.mark.usefixtures("both_paths")


def close(one: Tensor, other: Tensor, within: float = 1e-10) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=within)


def context(control: float = 0.0) -> Sequences:
    values = random_batch(0, [4, 4], irregular=False).values
    return Sequences.from_array(values, controls=torch.full((2, 4, 1), control).double())


def driven(**options: Any) -> PCODE:
    return small_pcode(0, control=1, control_effect="drive", **options)


@given(st.integers(0, 1000))
def test_integrals_are_those_of_a_fine_sum(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    times = torch.rand(1, 5, generator=rng, dtype=torch.float64).cumsum(1)
    values = torch.randn(1, 5, 2, generator=rng, dtype=torch.float64)
    begin, end = times[0, 0] + torch.rand(2, generator=rng, dtype=torch.float64).sort().values * 3
    fine = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    at = begin + (end - begin) * (fine[1:] + fine[:-1]) / 2
    held = values[0, torch.searchsorted(times[0], at, right=True) - 1]
    step = (end - begin) / len(at)
    once = (held * step).cumsum(0)
    twice = (once * step).sum(0)
    unit = 0.5
    drive = Drive(ControlSignal(times, values, unit), torch.tensor([0]), begin[None])
    found = drive.upto(((end - begin) / unit)[None])[0]
    close(found[:2], once[-1] / unit, within=1e-3)
    close(found[2:], twice / unit**2, within=1e-2)


def test_a_change_of_control_costs_no_update() -> None:
    """And acts from its time on, exactly."""
    model = driven()
    plan = torch.tensor([5.0, 7.0]).double(), torch.tensor([[1.0], [-2.0]]).double()
    path = model.rollout(context(), 9.0, controls=plan, step=100.0)
    assert path.num_updates.tolist() == [1, 1]
    calm = model.rollout(context(), 9.0, step=100.0)
    before, after = torch.tensor([3.5, 5.0]), torch.tensor([5.1, 8.0])
    assert torch.equal(path.evaluate(before), calm.evaluate(before))
    difference = path.evaluate(after) - calm.evaluate(after)
    assert float(difference.detach().abs().min()) > 1e-6


def test_a_control_that_is_given_twice_changes_nothing() -> None:
    model = driven(reads="motion")
    at = torch.linspace(3, 9, 25)
    once = [5.0], torch.tensor([[1.0]])
    twice = [4.0, 5.0, 6.0, 8.5], torch.tensor([[0.0], [1.0], [1.0], [1.0]])
    paths = [model.rollout(context(), 9.0, controls=plan, step=2.2) for plan in (once, twice)]
    close(paths[0].evaluate(at), paths[1].evaluate(at))


def test_a_training_segment_goes_on_where_a_control_changes() -> None:
    batch = random_batch(4, [30], control=1)
    options = {"control": 1, "tolerance": 1e30}
    stopped = find_knots(small_pcode(2, control_effect="update", **options), batch)
    crossing = find_knots(small_pcode(2, control_effect="drive", **options), batch)
    assert int(crossing.count) == 4
    assert int(stopped.count) > 5


def test_controls_have_three_forms() -> None:
    """A pair of times and values; values alone, an interval after the other; a function of time."""
    model, levels = driven(), torch.tensor([[1.0], [3.0], [2.0]]).double()
    pair = model.rollout(context(), 6.9, controls=([4.0, 5.0, 6.0], levels))
    alone = model.rollout(context(), 6.9, controls=levels)

    def at(times: Tensor) -> Tensor:
        return torch.where(times < 5, 1.0, torch.where(times < 6, 3.0, 2.0))[..., None]

    function = model.rollout(context(), 6.9, controls=at)
    times = torch.linspace(3, 6.9, 20)
    for other in (alone, function):
        assert torch.equal(pair.evaluate(times), other.evaluate(times))


@pytest.mark.parametrize("reads", ["values", "motion"])
def test_a_very_short_rollout_is_the_beginning_of_a_long_one(reads: str) -> None:
    """Shorter than the chord that rates are taken over, which begins before all controls then."""
    model = driven(reads=reads)
    with torch.no_grad():
        short, long = (model.rollout(context(1.0), until) for until in (3.02, 9.0))
        close(short.evaluate(3.02), long.evaluate(3.02))
        here = model.rollout(context(1.0), 3.2, step=0.05).evaluate(3.2)
        with fast.readable_path():
            close(here, model.rollout(context(1.0), 3.2, step=0.05).evaluate(3.2))
