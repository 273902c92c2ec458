"""Errors in own units beside naive forecasts: exact on data whose forecasts are known."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
import torch

from helpers import linear_pcode, random_batch
from skipstone import RNN, Sequences, calibrate, evaluate
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.own_units import ForecastErrors, forecast_errors
from skipstone.evaluation.residuals import follow_line, naive_forecasts, residuals_of


def measured(model: RNN, data: Sequences) -> ForecastErrors:
    return forecast_errors(model, data, Bootstrap(len(data), np.random.default_rng(0)))


def rising(slopes: list[float], count: int = 8) -> Sequences:
    """Straight lines, so that constant velocity is exact and persistence is off by slope · time."""
    line = torch.arange(count, dtype=torch.float64)
    values = torch.tensor(slopes, dtype=torch.float64) * line[:, None]
    return Sequences.from_array(values.expand(12, count, len(slopes)), spacing=1.0)


def test_naive_forecasts_are_exact_on_lines() -> None:
    data = rising([2.0, -0.001]).named(features=["big", "small"])
    model = RNN.for_data(data, hidden=4, num_context=3).double()
    found = measured(model, data)
    ahead = np.arange(1, 6)
    for feature, slope in zip(found.features, (2.0, 0.001), strict=True):
        assert feature.rmse["constant velocity"].value == pytest.approx(0, abs=1e-12)
        off = slope * math.sqrt((ahead**2).mean())
        assert feature.rmse["persistence"].value == pytest.approx(off)
        assert feature.rmse["persistence"].low == pytest.approx(off)
        assert feature.better_naive[-1] == "constant velocity"
    # Five observations in bins of elapsed time with about as many in each.
    assert found.horizons == (2.0, 3.0, 4.0, 5.0)
    by = found.features[0].by_horizon["persistence"]
    assert by == pytest.approx((2 * math.sqrt(2.5), 6.0, 8.0, 10.0))
    assert [each.name for each in found.features] == ["big", "small"]
    shown = repr(found)
    assert "does not beat constant velocity in big, small" in shown
    assert shown.splitlines()[0].split() == [
        "RMSE",
        "model",
        "persistence",
        "constant",
        "velocity",
    ]


def test_a_model_that_wins_is_not_warned_of() -> None:
    """A line that the model has learned, where persistence stands still and velocity is noisy."""
    data = rising([1.0])
    noise = 0.3 * torch.randn(data.values.shape, generator=torch.Generator().manual_seed(0))
    noisy = Sequences(data.times, data.values + noise)
    found = measured(linear_pcode(rate=1.0, step=2.0), noisy)  # pyright: ignore
    assert found.warnings() == []
    assert found.features[0].better_naive == []


def test_features_have_their_own_scale() -> None:
    data = random_batch(0, [9, 12, 7, 10] * 3)
    small = Sequences(data.times, data.values * torch.tensor([1.0, 1e-5]), mask=data.mask)
    model = RNN.for_data(data, hidden=4).double()
    one, other = measured(model, data), measured(model, small)
    for name in ("persistence", "constant velocity"):
        a, b = (found.features[1].rmse[name].value for found in (one, other))
        assert b == pytest.approx(1e-5 * a)


def test_lines_go_by_what_was_observed_of_each_feature() -> None:
    """Values that are missing are skipped; a feature that was seen once stands still."""
    nan = math.nan
    times = torch.tensor([[0.0, 1.0, 3.0, 4.0]], dtype=torch.float64)
    context = Sequences(times, torch.zeros(1, 4, 4, dtype=torch.float64))
    context.values = torch.tensor(
        [[[1.0, 5.0, nan, nan], [3.0, nan, 2.0, nan], [nan, 6.0, nan, nan], [nan, 9.0, nan, nan]]],
        dtype=torch.float64,
    )
    later = torch.tensor([[5.0, 6.0]], dtype=torch.float64)
    still = follow_line(context, later, velocity=False)[0]
    moving = follow_line(context, later, velocity=True)[0]
    assert still[:, :3].tolist() == [[3.0, 9.0, 2.0]] * 2
    assert moving[:, :3].tolist() == [[11.0, 12.0, 2.0], [13.0, 15.0, 2.0]]
    assert still[:, 3].isnan().all()
    assert moving[:, 3].isnan().all()


def test_naive_residuals_agree_with_a_plain_loop() -> None:
    data = random_batch(3, [9, 12, 7])
    forecasts = naive_forecasts(4)
    found = {name: residuals_of(each, data, 4) for name, each in forecasts.items()}
    for row in range(3):
        t, x = data.times[row], data.values[row]
        for at in range(4, 12):
            for name, residuals in found.items():
                error = residuals.errors[row, at - 4]
                if at >= int(data.lengths[row]):
                    assert np.isnan(error).all()
                    continue
                rate = (x[3] - x[2]) / (t[3] - t[2]) if name == "constant velocity" else 0
                expected = x[3] + rate * (t[at] - t[3]) - x[at]
                np.testing.assert_allclose(error, expected.numpy(), atol=1e-12)
                assert residuals.elapsed[row, at - 4] == pytest.approx(float(t[at] - t[3]))


def test_coverage_of_a_calibrated_model() -> None:
    data = random_batch(0, [12] * 60, irregular=False)
    model = calibrate(RNN.for_data(data, hidden=4).double(), data[:40])
    found = measured(model, data[40:])
    for feature in found.features:
        assert feature.coverage is not None
        assert feature.interval_score is not None
        assert 0.6 < feature.coverage.value <= 1
        assert feature.interval_score.value > feature.rmse["model"].value
    assert "% in 90 % intervals" in repr(found)


def test_horizons_are_told_in_the_units_of_the_table() -> None:
    rows = [
        {"id": i, "time": datetime(2026, 1, 1) + timedelta(hours=6 * h), "x": float(h * i)}
        for i in range(5)
        for h in range(8)
    ]
    data = Sequences.from_table(pl.DataFrame(rows), id="id", time="time", values="x")
    found = measured(RNN.for_data(data, hidden=4), data)
    assert found.labels == ("6 h", "12 h", "18 h", "1 D")


def test_an_evaluation_shows_them() -> None:
    data = random_batch(0, [9, 12, 7, 10] * 3).named(features=["north", "east"])
    result = evaluate(RNN.for_data(data, hidden=4).double(), data, timing=False)
    assert result.forecasts is not None
    first, *table = repr(result).splitlines()
    assert first.startswith("Evaluation of 12 trajectories: sample MSE ")
    assert table == repr(result.forecasts).splitlines()
    assert len(repr(result).splitlines()) < 20
    content = result.to_dict()["forecasts"]
    assert content["features"][1]["name"] == "east"
    assert content["features"][1]["rmse"]["persistence"]["value"] > 0
    # The mean over features of both errors is that of the rollouts.
    squares = [each.rmse["model"].value ** 2 for each in result.forecasts.features]
    assert sum(squares) / 2 == pytest.approx(result.sample_mse.value)
    images = Sequences.from_array(torch.randint(0, 255, (3, 8, 4), dtype=torch.uint8))
    assert evaluate(RNN.for_data(images, hidden=4), images, timing=False).forecasts is None


def test_missing_values_are_left_out_for_all_forecasts() -> None:
    data = random_batch(0, [9, 12, 7, 10] * 3)
    holes = torch.rand(data.values.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    data = Sequences(data.times, data.values.masked_fill(holes, torch.nan), mask=data.mask)
    found = measured(RNN.for_data(data, hidden=4).double(), data)
    for at, feature in enumerate(found.features):
        squares = []
        for row in range(len(data)):
            x = data.values[row, : int(data.lengths[row]), at]
            before, after = x[:4], x[4:]
            before, after = before[~before.isnan()], after[~after.isnan()]
            if len(before):
                squares += ((after - before[-1]) ** 2).tolist()
        assert feature.rmse["persistence"].value == pytest.approx(math.sqrt(np.mean(squares)))
        assert math.isfinite(feature.rmse["model"].value)
