"""`evaluate`: closed forms, every model against a plain loop, and every error message."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers import PAPER, linear_pcode, random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Sequences, load
from skipstone.evaluation import (
    Estimate,
    Evaluation,
    evaluate,
    metrics,
    residuals,
    rollouts,
    timing,
)
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.own_units import forecast_errors
from skipstone.paper.tasks import Events

SPAN = 20
MODELS = [PCODE, RNN, ODERNN, LatentODE]
any_model = pytest.mark.parametrize("kind", MODELS)


def line(rate: float, rows: int = 3, unit: float = 1.0) -> Sequences:
    """x = rate·t, in units of time, from a different start in each row."""
    times = torch.arange(SPAN + 1, dtype=torch.float64)
    starts = torch.arange(rows, dtype=torch.float64)[:, None]
    return Sequences.from_array((starts + rate * times)[..., None], spacing=unit)


def build(kind: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    own = PAPER if kind is PCODE else {}
    return kind.from_config({"dim": 2, "hidden": 8, **own, **options}).double()


def quick(model: Any, sequences: Sequences, **options: Any) -> Evaluation:
    return evaluate(model, sequences, **{"timing": False, **options})


def values(estimates: Any) -> list[float]:
    return [estimate.value for estimate in estimates]


# A model and data that are known in closed form.


def test_data_that_are_predicted_exactly() -> None:
    found = quick(linear_pcode(0.5, step=4), line(0.5))
    assert found.num_trajectories == 3
    assert max(found.test_mse.high, found.sample_mse.high) < 1e-28
    assert max(values(found.horizon_mse)) < 1e-28
    assert found.mean_step == Estimate(4.0, 4.0, 4.0)
    assert found.updates == Estimate(5.0, 5.0, 5.0)
    assert found.function_evaluations == Estimate(0.0, 0.0, 0.0)


def test_the_last_step_counts_as_far_as_the_end() -> None:
    found = quick(linear_pcode(0.5, step=3), line(0.5))
    assert found.updates.value == 7
    assert found.mean_step.value == pytest.approx(SPAN / 7, rel=1e-15)


def test_a_known_offset_is_the_error_at_every_horizon() -> None:
    data = line(0.5)
    data.values[:, 1:] += 0.5
    found = quick(linear_pcode(0.5, step=4, tolerance=0.2), data)
    np.testing.assert_allclose(values(found.horizon_mse), [0.25] * SPAN, rtol=1e-12)
    for estimate in (found.sample_mse, *found.horizon_mse):
        np.testing.assert_allclose([estimate.low, estimate.high], 0.25, rtol=1e-12)
    # Teacher-forced, the first step misses the tolerance; an update there and all is exact again.
    assert found.test_mse.value == pytest.approx(0.25 / SPAN, rel=1e-12)
    lenient = quick(linear_pcode(0.5, step=4, tolerance=0.3), data)
    assert lenient.test_mse.value == pytest.approx(0.25, rel=1e-12)


def test_a_wrong_speed_is_an_error_that_grows_with_the_horizon() -> None:
    found = quick(linear_pcode(0.5, step=4), line(1.5))
    squares = np.arange(1, SPAN + 1) ** 2
    np.testing.assert_allclose(values(found.horizon_mse), squares, rtol=1e-12)
    assert found.sample_mse.value == pytest.approx(squares.mean(), rel=1e-12)


@pytest.mark.parametrize("unit", [1.0, 0.05, 60.0])
def test_constant_steps_are_in_the_unit_of_the_model(unit: float) -> None:
    model = linear_pcode(0.5, step=4)
    model.config = dataclasses.replace(model.config, time_unit=unit)
    found = quick(model, line(1.5, unit=unit))
    steps = [1, 2, 3, 5, 8, 13, SPAN]
    np.testing.assert_allclose([point.step for point in found.constant_steps], steps)
    taken = [SPAN / math.ceil(SPAN / step) for step in steps]
    np.testing.assert_allclose(values(point.mean_step for point in found.constant_steps), taken)
    assert found.mean_step.value == pytest.approx(4)
    for point in found.constant_steps:
        assert point.sample_mse.value == pytest.approx(found.sample_mse.value, rel=1e-9)


def test_constant_steps_end_with_the_length_itself_and_once() -> None:
    assert metrics._steps_up_to(8 + 1e-9) == [1, 2, 3, 5, 8 + 1e-9]
    assert metrics._steps_up_to(0.4) == [0.4]


def test_updates_at_known_collisions() -> None:
    # Updates at 4, 8, 12, 16; row by row: met, missed, met by one of two.
    times = [[4.5], [6.0], [12.0, 18.0]]
    offsets = np.cumsum([0, *map(len, times)])
    flat = np.concatenate(times)
    column, place = np.zeros(4, dtype=np.int64), np.zeros((4, 1, 1))
    events = Events(offsets, flat, column, column, column, place, place)
    found = quick(linear_pcode(0.5, step=4), line(0.5), events=events).alignment
    assert found is not None
    assert (found.num_collisions, found.num_updates) == (4, 12)
    assert (found.recall.value, found.precision.value) == (2 / 4, 2 / 12)


# Every model, against a plain loop over sequences.


@any_model
@pytest.mark.parametrize("control", [0, 1])
def test_ragged_sequences_agree_with_one_at_a_time(kind: Any, control: int) -> None:
    data = random_batch(5, [9, 5, 14], control=control)
    model = build(kind, control=control)
    found = quick(model, data)
    count = model.config.num_context
    errors, updates, evaluations, time = [], 0, 0, 0.0
    with torch.no_grad():
        for row in range(3):
            one = data[row]
            later = (
                None if one.controls is None else (one.times[:, count:], one.controls[:, count:])
            )
            path = model.rollout(one.head(count), one.ends, controls=later)
            predicted = path.evaluate(one.times[:, count:])
            errors.append((predicted - one.values[:, count:]).square().mean(-1)[0].numpy())
            updates += int(path.num_updates)
            evaluations += int(path.num_evaluations)
            time += float(path.end - path.start)
    # A solver's grid has the substeps of the longest gap in the batch: equal within its error.
    within = 1e-4 if kind in (ODERNN, LatentODE) else 1e-9
    np.testing.assert_allclose(found.sample_mse.value, np.concatenate(errors).mean(), rtol=within)
    longest = max(map(len, errors))
    by_horizon = [np.mean([row[i] for row in errors if i < len(row)]) for i in range(longest)]
    np.testing.assert_allclose(values(found.horizon_mse), by_horizon, rtol=within)
    np.testing.assert_allclose(found.updates.value, updates / 3)
    np.testing.assert_allclose(found.mean_step.value, time / updates)
    if kind is not LatentODE:  # whose one solver goes on until the last row ends
        np.testing.assert_allclose(found.function_evaluations.value, evaluations / 3)


@any_model
def test_test_error_is_the_loss_after_the_context(kind: Any) -> None:
    data = random_batch(6, [9, 5, 14])
    model = build(kind)
    predicted = model.in_data_units(model.loss(data).predicted)
    after = (predicted - data.values).square().mean(-1)[:, model.config.num_context :]
    assert int((~after.isnan()).sum()) == 9 + 5 + 14 - 3 * model.config.num_context
    assert quick(model, data).test_mse.value == pytest.approx(float(after.nanmean()), rel=1e-12)


def test_batches_of_different_lengths_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_batch(7, [6, 14, 5, 9, 8], control=2)
    model = build(PCODE, control=2)
    whole = quick(model, data).to_dict()
    monkeypatch.setattr(rollouts, "BATCH", 2)
    monkeypatch.setattr(residuals, "BATCH", 2)
    parts = quick(model, data).to_dict()
    for one, other in zip(leaves(whole), leaves(parts), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def leaves(tree: Any) -> list[float]:
    if isinstance(tree, dict | list):
        parts = tree.values() if isinstance(tree, dict) else tree
        return [leaf for part in parts for leaf in leaves(part) if not isinstance(part, str)]
    return [np.nan if tree is None else tree]


@any_model
def test_only_a_pcode_is_swept(kind: Any) -> None:
    found = quick(build(kind), random_batch(8, [9, 7]))
    assert bool(found.constant_steps) == (kind is PCODE)


def test_rounding_costs_no_function_evaluations() -> None:
    # Eight times 0.1 and 0.1 added eight times differ: the observation is just after its knot.
    # Four evaluations a step and none to read the path at its knots.
    data = Sequences.from_array(torch.randn(2, 31, 2, dtype=torch.float64), spacing=0.1)
    found = quick(build(ODERNN, time_unit=0.1), data)
    assert found.updates.value == 27
    assert found.function_evaluations.value == 4 * 27


def test_images_are_measured_between_0_and_1() -> None:
    pixels = torch.randint(0, 256, (3, 8, 2), dtype=torch.uint8)
    found = quick(build(RNN), Sequences.from_array(pixels))
    same = quick(build(RNN), Sequences.from_array(pixels.double() / 255))
    assert found.sample_mse.value == pytest.approx(same.sample_mse.value, rel=1e-9)
    assert found.test_mse.value == pytest.approx(same.test_mse.value, rel=1e-9)


def test_a_model_that_diverges_does_not_look_good() -> None:
    model = build(RNN)
    with torch.no_grad():
        model.decoder.last.bias.fill_(torch.nan)
    found = quick(model, random_batch(9, [9, 7]))
    assert math.isnan(found.sample_mse.value)
    assert math.isnan(found.test_mse.value)


# What surrounds the numbers.


def test_numbers_are_a_function_of_model_data_and_seed() -> None:
    data, model = random_batch(10, [9, 7, 12, 8] * 4), build(PCODE)
    events = Events.none(16)
    before = torch.random.get_rng_state()
    first = quick(model, data, events=events, seed=1)
    assert str(first) == str(quick(model, data, events=events, seed=1))
    assert first.sample_mse.low != quick(model, data, seed=2).sample_mse.low
    assert torch.equal(torch.random.get_rng_state(), before)
    # The model can still be trained.
    model.loss(data).total.backward()


def test_sequences_are_rolled_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors, valid times and forecasts are of the same rollouts."""
    model, rolled = build(RNN), []
    usual = model.rollout
    monkeypatch.setattr(model, "rollout", lambda *a, **k: (rolled.append(1), usual(*a, **k))[1])
    data = random_batch(0, [12, 9, 12])
    found = quick(model, data)
    assert len(rolled) == 1
    assert found.forecasts is not None
    monkeypatch.undo()
    bootstrap = Bootstrap(len(data), np.random.default_rng(0).spawn(2)[0])
    assert found.forecasts == forecast_errors(model, data, bootstrap)


def test_json_holds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    found = evaluate(linear_pcode(0.5, 4), line(0.5, 1), events=Events.none(1))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(plain) == {field.name for field in dataclasses.fields(Evaluation)}
    assert plain["updates"] == {"value": 5.0, "low": None, "high": None}
    # Without collisions there is nothing to line up with.
    assert plain["alignment"] is None
    assert [point["batch"] for point in plain["wall_times"]] == [1, 256]
    assert plain == found.to_dict()


@any_model
def test_a_saved_model_needs_nothing_but_data(kind: Any, tmp_path: Path) -> None:
    """Its tolerance, if it has one, is saved with it."""
    data, model = random_batch(6, [9, 5, 14]), build(kind)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").double()
    assert str(quick(again, data)) == str(quick(model, data))


def test_there_must_be_something_to_predict() -> None:
    with pytest.raises(InvalidInput, match="at least 5 observations here; sequence 1 has 4"):
        quick(build(RNN), random_batch(11, [9, 4]))


def test_events_must_belong_to_the_sequences() -> None:
    with pytest.raises(InvalidInput, match="events of 4 trajectories for 3 sequences"):
        quick(linear_pcode(0.5, 4), line(0.5), events=Events.none(4))
