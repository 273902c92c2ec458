"""Every rollout ends: limits on updates, and times that cannot advance."""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from helpers import linear_pcode, random_batch
from skipstone import ODERNN, PCODE, RNN, Ensemble, InvalidInput, LatentODE, Sequences, Status
from skipstone.models import fast, limits
from skipstone.models.base import Model

NANOSECOND = 10**9

# That units differ is said, too; here the limits are what is asked about.
pytestmark = pytest.mark.filterwarnings("ignore:observations of the context are")


def in_nanoseconds() -> Sequences:
    """Observations every second, in nanoseconds since 1970."""
    times = 1_700_000_000 * NANOSECOND + NANOSECOND * np.arange(4)[None]
    return Sequences(times, np.random.default_rng(0).normal(size=(1, 4, 2)))


def in_seconds(kind: Any) -> Any:
    """A model of observations every second, in seconds."""
    torch.manual_seed(0)
    return kind.for_data(random_batch(0, [9, 9], irregular=False), hidden=4)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """A lower limit, so that tests are short."""
    monkeypatch.setattr(limits, "MOST_UPDATES", 20)
    return 20


def test_the_limit_is_what_the_documentation_says() -> None:
    assert limits.MOST_UPDATES == 10_000
    assert "10,000" in str(PCODE.rollout.__doc__ or "") + str(Model.rollout.__doc__)


@pytest.mark.parametrize("kind", [PCODE, RNN])
@pytest.mark.parametrize("path_taken", [contextlib.nullcontext, fast.readable_path])
def test_a_rollout_in_the_wrong_unit_ends_with_a_warning(
    kind: Any, path_taken: Any, few: int
) -> None:
    model, context = in_seconds(kind), in_nanoseconds()
    until = context.ends + 60 * NANOSECOND
    with path_taken(), torch.inference_mode(), pytest.warns(UserWarning, match="20 updates") as w:
        path = model.rollout(context, until)
    assert "unit of time is 1, and `until` is up to 6e+10 of them after the context" in str(
        w[-1].message
    )
    assert path.status.tolist() == [Status.MAX_UPDATES]
    assert path.num_updates.tolist() == [few]
    assert float(path.end) < float(context.ends) + NANOSECOND
    with pytest.raises(InvalidInput, match=r"It stopped after 20 updates, .* each: raise max_upd"):
        path.evaluate(until[:, None])
    with pytest.raises(InvalidInput, match="a prediction must reach its end; trajectory 0 ended"):
        path.require_end()


def test_a_limit_of_ones_own_needs_no_warning() -> None:
    model, context = in_seconds(RNN), random_batch(1, [4], irregular=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = model.rollout(context, float(context.ends) + 9.0, max_updates=3)
        assert path.status.tolist() == [Status.MAX_UPDATES]
        model.rollout(context, float(context.ends) + 9.0).require_end()


def test_every_member_of_an_ensemble_has_the_limit(few: int) -> None:
    both = Ensemble([in_seconds(RNN), in_seconds(PCODE)])
    with torch.inference_mode(), pytest.warns(UserWarning, match="stopped after 20 updates"):
        path = both.rollout(in_nanoseconds(), 60.0 * NANOSECOND)
    assert path.status.tolist() == [Status.MAX_UPDATES]


def test_a_latent_ode_integrates_as_many_units_of_time(few: int) -> None:
    model, context = in_seconds(LatentODE), in_nanoseconds()
    with pytest.warns(UserWarning, match="stopped after 20 updates"):
        path = model.rollout(context, context.ends + 60 * NANOSECOND)
    assert path.status.tolist() == [Status.MAX_UPDATES]
    assert float(path.end - path.start) == few


def test_a_step_of_an_ode_has_a_limit_too() -> None:
    model, context = in_seconds(ODERNN), random_batch(1, [4], irregular=False)
    with pytest.raises(InvalidInput, match="an integration must take at most 1,000,000 steps"):
        model.rollout(context, 1e9, step=1e8)


@pytest.mark.parametrize("path_taken", [contextlib.nullcontext, fast.readable_path])
def test_time_that_cannot_advance_is_an_error(path_taken: Any) -> None:
    """Near 1.7e18 a float64 has steps of 256, so that 2.5 more is no later."""
    model, start = linear_pcode(rate=1.0, step=2.5), 1.7e18
    context = Sequences(np.array([[start]]), np.zeros((1, 1, 1)))
    message = re.escape("from 1.7e+18, does not advance. Its unit of time is 1:")
    with path_taken(), torch.inference_mode(), pytest.raises(InvalidInput, match=message):
        model.rollout(context, start + 1e6)


def test_the_unit_is_named_as_the_table_names_it(few: int) -> None:
    times = np.datetime64("2026-01-01", "s") + 3600 * np.arange(4)[None]
    context = Sequences(times, np.zeros((1, 4, 2)))
    with torch.inference_mode(), pytest.warns(UserWarning, match="unit of time is 1 s, and"):
        in_seconds(RNN).rollout(context, context.ends + 1e6)


def test_steps_of_any_length_end_where_the_rollout_does() -> None:
    context = random_batch(1, [4], irregular=False, dtype=torch.float32)
    model = in_seconds(RNN)
    assert model.rollout(context, 99.0, step=1e300).knots.shape == (1, 1)


@pytest.mark.parametrize("kind", [PCODE, RNN, LatentODE])
def test_a_context_in_another_unit_is_noticed(kind: Any) -> None:
    """Its rollout would end, and be about a thousandth of the time that was asked for."""
    model = in_seconds(kind)
    times, values = torch.arange(4.0, dtype=torch.float64)[None], torch.zeros(1, 4, 2)
    for factor, wrong in ((1e-4, True), (0.01, False), (1.0, False), (100.0, False), (1e4, True)):
        context = Sequences(times * factor, values)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.rollout(context, until=float(context.ends[0]) + factor, max_updates=5)
        said = any("in the same unit" in str(each.message) for each in found)
        assert said == wrong
