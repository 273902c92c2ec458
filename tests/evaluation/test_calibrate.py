"""Intervals: their coverage on trajectories that nobody has seen, and where they come from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scoringrules
import torch
from scipy.stats import betabinom, binom

from helpers import random_batch
from skipstone import PCODE, RNN, InvalidInput, LatentODE, Recipe, Sequences, calibrate, fit, load
from skipstone.calibration import Calibration
from skipstone.evaluation.residuals import model_forecast, residuals_of
from skipstone.evaluation.scoring import crps_of_members, interval_score


def walks(count: int, seed: int, length: int = 9) -> Sequences:
    """Random walks in two features of different size: nothing to learn but how uncertain it is."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(count, length, 2, generator=generator)
    return Sequences.from_array(steps.cumsum(1) * torch.tensor([1.0, 100.0]), spacing=0.5)


def untrained(data: Sequences, kind: Any = RNN) -> Any:
    torch.manual_seed(0)
    return kind.for_data(data, hidden=4, num_context=2)


def test_coverage_is_exact_over_calibrations() -> None:
    """With 99 trajectories, 90 % means 90 %: the next one is equally likely to have any rank."""
    data = walks(40_000, seed=0, length=5)
    found = residuals_of(model_forecast(untrained(data)), data, num_context=2)
    groups = found.errors.reshape(400, 100, 3, 2)
    elapsed = found.elapsed[:100]
    inside = np.zeros((3, 2))
    for group in groups:
        made = Calibration.from_errors(elapsed[:99], group[:99], width=0.5)
        radius = made.radius(torch.as_tensor(elapsed[:1]), 0.9)[0].numpy()
        inside += np.abs(group[99]) <= radius
    low, high = binom.interval(0.9999, 400, 0.9)
    assert (inside >= low).all(), inside
    assert (inside <= high).all(), inside


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_intervals_of_a_model_cover_held_out_trajectories(coverage: float) -> None:
    model = calibrate(untrained(walks(200, seed=1)), walks(199, seed=2))
    new = walks(300, seed=3)
    path = model.rollout(new.head(2), new.ends)
    lower, upper = (bound.detach() for bound in path.interval(new.times[:, 2:], coverage))
    later = new.values[:, 2:]
    inside = ((lower <= later) & (later <= upper)).sum(0).numpy()
    # Given its calibration, an interval's own coverage is a draw from a beta distribution.
    rank = round(200 * coverage)
    low, high = betabinom.interval(0.9999, 300, rank, 200 - rank)
    assert (inside >= low).all(), inside
    assert (inside <= high).all(), inside
    # In own units: the second feature is a hundred times as wide.
    widths = (upper - lower).mean((0, 1))
    assert 10 < float(widths[1] / widths[0]) < 1000


def test_missing_values_count_for_nothing() -> None:
    """Quantiles of a feature are those of the trajectories in which it was observed."""
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((60, 3, 2))
    errors[rng.random((60, 3, 2)) < 0.3] = np.nan
    elapsed = np.broadcast_to(np.arange(1.0, 4.0), (60, 3)).copy()
    made = Calibration.from_errors(elapsed, errors, width=1.0)
    radius = made.radius(torch.arange(1.0, 4.0)[None], 0.8)[0].numpy()
    for at in range(3):
        for feature in range(2):
            known = np.abs(errors[:, at, feature])
            known = np.sort(known[~np.isnan(known)])
            assert radius[at, feature] == known[int(np.ceil(0.8 * (len(known) + 1) - 1e-9)) - 1]


def test_intervals_cover_what_was_observed() -> None:
    data = walks(500, seed=5)
    holes = torch.rand(data.values.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    holes[:, :2] = False
    data = Sequences(data.times, data.values.masked_fill(holes, torch.nan))
    model = calibrate(untrained(data), data[:200])
    new = data[200:]
    path = model.rollout(new.head(2), new.ends)
    lower, upper = (bound.detach() for bound in path.interval(new.times[:, 2:], 0.8))
    later = new.values[:, 2:]
    seen = ~later.isnan()
    share = (((lower <= later) & (later <= upper)).sum(0) / seen.sum(0)).numpy()
    assert (np.abs(share - 0.8) < 0.15).all(), share


def test_quantiles_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((30, 4, 2))
    elapsed = np.broadcast_to(np.arange(1.0, 5.0), (30, 4)).copy()
    made = Calibration.from_errors(elapsed, errors, width=1.0)
    for coverage in (0.1, 0.55, 0.9, 0.93):
        radius = made.radius(torch.arange(1.0, 5.0)[None], coverage)[0].numpy()
        rank = int(np.ceil(np.round(31 * np.ceil(np.round(100 * coverage, 6)) / 100, 9)))
        np.testing.assert_allclose(radius, np.sort(np.abs(errors), axis=0)[rank - 1])
    # 30 trajectories cannot speak of 1 in 100.
    assert made.radius(torch.ones(1, 1), 0.99).isinf().all()
    # Nothing was observed at once, so the first bin begins there.
    assert torch.equal(made.radius(torch.zeros(1, 1), 0.5), made.radius(torch.ones(1, 1), 0.5))


def test_a_trajectory_counts_once_with_its_largest_error() -> None:
    errors = np.array([[[1.0], [-5.0], [np.nan]], [[2.0], [np.nan], [7.0]]])
    elapsed = np.array([[0.8, 1.2, 2.0], [1.1, 1.3, 2.2]])
    made = Calibration.from_errors(elapsed, errors, width=1.0)
    assert made.edges.tolist() == [1.5, 2.5]
    assert made.radius(torch.tensor([[1.0, 2.0]]), 0.5).flatten().tolist() == [5.0, 7.0]


def test_bins_grow_until_half_of_the_trajectories_are_in_them() -> None:
    elapsed = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]] * 4)
    errors = np.ones((4, 5, 1))
    errors[:3, 1] = np.nan  # One in four at 2, which are too few,
    errors[1:, 4] = np.nan  # and at 5.
    made = Calibration.from_errors(elapsed, errors, width=1.0)
    assert made.edges.tolist() == [1.5, 3.5, 5.5]


def test_a_forecast_that_is_not_a_number_is_never_inside() -> None:
    data = walks(20, seed=0)
    found = residuals_of(lambda batch: batch.values[:, 2:] * torch.nan, data, num_context=2)
    made = Calibration.from_errors(found.elapsed, found.errors, width=0.5)
    assert made.radius(torch.ones(1, 1), 0.5).isinf().all()


@pytest.mark.parametrize("kind", [PCODE, RNN, LatentODE])
def test_intervals_are_saved_with_the_model(kind: Any, tmp_path: Path) -> None:
    data = random_batch(0, [9, 12, 7, 10] * 6, dtype=torch.float32)
    model = calibrate(untrained(data, kind), data)
    context = data[:3].head(2)
    until = context.ends + 3
    times = context.ends[:, None] + torch.tensor([0.0, 1.3, 2.9])
    lower, upper = model.rollout(context, until).interval(times)
    middle = model.rollout(context, until).evaluate(times)
    torch.testing.assert_close((lower + upper) / 2, middle)
    model.save(tmp_path)
    again = load(tmp_path).rollout(context, until).interval(times)
    assert torch.equal(again[0], lower)
    assert torch.equal(again[1], upper)
    last = float(context.ends.max())
    one = model.rollout(context, until=last + 2).interval(last + 0.7)
    assert one[0].shape == (3, 2)
    model.calibration = None
    model.save(tmp_path)
    assert load(tmp_path).calibration is None


def test_a_run_takes_the_calibration_of_its_own_model(tmp_path: Path) -> None:
    data = random_batch(0, [9, 12, 7, 10] * 6, dtype=torch.float32)
    recipe = Recipe(steps=2, batch_size=8)
    model = untrained(data)
    options: dict[str, Any] = {"recipe": recipe, "progress": False, "device": "cpu"}
    run = fit(model, data, folder=tmp_path / "run", **options)
    result = run.result
    calibrate(model, data).save(run.folder)
    assert run.result == result
    assert run.load().calibration is not None
    again = untrained(data)
    fit(again, data, folder=tmp_path / "run", **options)
    assert again.calibration is not None
    # Another training has other weights, and none of these intervals.
    fit(again, data, folder=tmp_path / "other", **options)
    assert again.calibration is None
    with pytest.raises(InvalidInput, match="holds a training with other weights"):
        again.save(run.folder)
    fit(untrained(data), data, folder=tmp_path / "run", overwrite=True, **options)
    assert run.load().calibration is None


def test_intervals_of_other_weights_are_refused(tmp_path: Path) -> None:
    data = walks(30, seed=0)
    model = calibrate(untrained(data), data)
    model.save(tmp_path / "one")
    torch.manual_seed(5)
    other = RNN.for_data(data, hidden=4, num_context=2)
    calibrate(other, data).save(tmp_path / "other")
    file = "calibration.safetensors"
    (tmp_path / "other" / file).write_bytes((tmp_path / "one" / file).read_bytes())
    with pytest.raises(InvalidInput, match="must be of the weights beside it; it is of others"):
        load(tmp_path / "other")
    # A model that was saved without any has none, whatever lies beside it.
    other.calibration = None
    other.save(tmp_path / "none")
    (tmp_path / "none" / file).write_bytes((tmp_path / "one" / file).read_bytes())
    assert load(tmp_path / "none").calibration is None


def test_what_cannot_be_told_is_explained() -> None:
    data = walks(30, seed=0)
    model = untrained(data)
    path = model.rollout(data.head(2), until=6.0)
    with pytest.raises(InvalidInput, match=re.escape("skipstone.calibrate(model, sequences)")):
        path.interval(1.0)
    with pytest.raises(InvalidInput, match=re.escape("skipstone.Ensemble([model, ...])")):
        path.spread(1.0)
    calibrate(model, data)
    path = model.rollout(data.head(2), until=6.0)
    with pytest.raises(InvalidInput, match=r"reach as far as their calibration did, 3.75 after"):
        path.interval(6.0)
    for coverage in (0.0, 1.0, 0.995):
        with pytest.raises(InvalidInput, match=r"coverage must be above 0 and at most 0\.99"):
            path.interval(1.0, coverage)
    with pytest.raises(InvalidInput, match="at least 3 observations"):
        calibrate(model, data.head(2))


def test_a_table_has_the_bounds() -> None:
    data = walks(30, seed=0).named(features=["a", "b"])
    model = calibrate(untrained(data), data)
    path = model.rollout(data.head(2), until=4.0)
    table = path.to_table([1.0, 2.5], interval=0.8, like="polars")
    assert table.columns == [
        "id", "time", "a", "b", "a_lower", "a_upper", "b_lower", "b_upper",
    ]  # fmt: skip
    lower, upper = path.interval([1.0, 2.5], 0.8)
    assert table["b_lower"].to_list() == lower[..., 1].flatten().tolist()
    assert table["a_upper"].to_list() == upper[..., 0].flatten().tolist()


def test_bounds_do_not_overwrite_features() -> None:
    data = walks(30, seed=0).named(features=["a", "a_lower"])
    path = calibrate(untrained(data), data).rollout(data.head(2), until=4.0)
    with pytest.raises(InvalidInput, match="'a_lower' is a feature already"):
        path.to_table([1.0], interval=0.8, like="polars")


def test_scores_agree_with_scoringrules() -> None:
    rng = np.random.default_rng(0)
    observed, centre = rng.standard_normal((2, 7, 5))
    lower, upper = centre - rng.random((7, 5)), centre + rng.random((7, 5))
    for coverage in (0.5, 0.9):
        ours = interval_score(observed, lower, upper, coverage)
        theirs = scoringrules.interval_score(observed, lower, upper, 1 - coverage)
        np.testing.assert_allclose(ours, theirs)
    members = rng.standard_normal((4, 7, 5))
    theirs = scoringrules.crps_ensemble(observed, np.moveaxis(members, 0, -1), estimator="nrg")
    assert theirs is not None
    np.testing.assert_allclose(crps_of_members(observed, members), theirs)
    np.testing.assert_allclose(
        crps_of_members(observed, members[:1]), np.abs(members[0] - observed)
    )
