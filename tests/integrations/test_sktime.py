"""The forecaster passes sktime's own suite, and says what the library's own rollouts say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch

from skipstone import InvalidInput, Sequences

pytest.importorskip("sktime")

from sktime.exceptions import NotFittedError
from sktime.forecasting.base import ForecastingHorizon

from skipstone.integrations.sktime import SkipstoneForecaster, sequences_of

TINY: dict[str, Any] = SkipstoneForecaster.get_test_params()[0]

CORE = [
    "test_constructor",
    "test_valid_object_class_tags",
    "test_doctest_examples",
    "test_predict_quantiles",
    "test_hierarchical_with_exogenous",
    "test_unequal_length_hierarchical_fit_predict",
    "test_update_with_exogenous_variables",
    "test_pretrain_state_transitions",
    "test_pretrain_clone_preserves_state",
]

# In an interpreter of its own: sktime inspects signatures, which checks of shapes wrap.
SUITE = """
import json, sys, warnings
from skipstone.integrations.sktime import SkipstoneForecaster
from sktime.utils.estimator_checks import check_estimator

only = json.loads(sys.argv[1])
found = check_estimator(SkipstoneForecaster, tests_to_run=only or None, verbose=False)
print(json.dumps({name: str(result) for name, result in found.items()}))
"""


def wave(count: int = 40, start: float = 0.0) -> np.ndarray:
    return np.sin(start + np.arange(count) / 3)


def days(count: int = 40) -> pd.DatetimeIndex:
    return pd.date_range("2026-01-01", periods=count, freq="D")


def irregular(count: int = 40) -> pd.DatetimeIndex:
    hours = np.cumsum(np.random.default_rng(0).integers(1, 50, count))
    return pd.DatetimeIndex(pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, unit="h"))


def panel(index: Any, instances: int = 3) -> pd.DataFrame:
    parts = {
        f"i{at}": pd.DataFrame({"a": wave(len(index), at)}, index=index) for at in range(instances)
    }
    return pd.concat(parts, names=["instance", "time"])


def tiny(**settings: Any) -> Any:
    return SkipstoneForecaster(**{**TINY, **settings})


def suite(only: list[str]) -> list[str]:
    """Run the suite of sktime, or some of its tests; return the names of those that ran."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SUITE, json.dumps(only)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}
    return list(results)


def test_the_core_of_the_suite_of_sktime() -> None:
    assert {name.partition("[")[0] for name in suite(CORE)} == set(CORE)


@pytest.mark.slow
def test_all_of_the_suite_of_sktime() -> None:
    assert len(suite([])) > 800


def test_a_forecast_is_a_rollout_from_the_last_rows() -> None:
    y = pd.Series(wave(), index=days())
    forecaster = tiny().fit(y)
    data = Sequences.from_lists([wave()[:, None]], [86400.0 * np.arange(40)])
    path = forecaster.model_.rollout(data.tail(2), until=86400.0 * 44)
    expected = path.evaluate([86400.0 * 41, 86400.0 * 44])[0, :, 0].detach().numpy()
    found = forecaster.predict([2, 5])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert list(found.index) == [pd.Timestamp("2026-02-11"), pd.Timestamp("2026-02-14")]


def test_steps_moments_and_kinds_of_index_agree() -> None:
    indices = [days(), days().to_period(), pd.RangeIndex(40), pd.Index(np.arange(40) + 7)]
    found = []
    for index in indices:
        forecaster = tiny().fit(pd.Series(wave(), index=index))
        steps = forecaster.predict([1, 3])
        moments = forecaster.predict(ForecastingHorizon(steps.index, is_relative=False))
        pd.testing.assert_series_equal(steps, moments, check_freq=False)
        found.append(steps.to_numpy())
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-4)


def test_irregular_stamps_take_moments_and_lengths_of_time_but_no_steps() -> None:
    y = pd.Series(wave(), index=irregular())
    forecaster = tiny().fit(y)
    moments = y.index[-1] + pd.to_timedelta([3, 50], unit="h")
    at = forecaster.predict(ForecastingHorizon(moments, is_relative=False))
    after = forecaster.predict(pd.to_timedelta([3, 50], unit="h"))
    pd.testing.assert_series_equal(at, after)
    assert list(at.index) == list(moments)
    rule = r"in steps needs a time index with a frequency; .* of y has none.*y\.asfreq\("
    with pytest.raises(ValueError, match=rule):
        forecaster.predict([1, 2])
    with pytest.raises(ValueError, match=rule):
        tiny().fit(y, fh=[1])
    with pytest.raises(NotImplementedError, match="must lie after the data, which end at 2026"):
        forecaster.predict(ForecastingHorizon(y.index[-2:], is_relative=False))


def test_irregular_integers_are_time() -> None:
    index = np.cumsum(np.random.default_rng(0).integers(1, 5, 40))
    forecaster = tiny().fit(pd.Series(wave(), index=index))
    found = forecaster.predict([1, 4])
    assert list(found.index) == [index[-1] + 1, index[-1] + 4]
    again = forecaster.predict(ForecastingHorizon(found.index, is_relative=False))
    pd.testing.assert_series_equal(found, again)


def test_fit_after_pretrain_only_sets_the_context() -> None:
    forecaster = tiny().pretrain(panel(days()))
    before = {name: each.clone() for name, each in forecaster.model_.state_dict().items()}
    model = forecaster.model_
    first = forecaster.fit(pd.Series(wave(20), index=days(20))).predict([1])
    second = forecaster.fit(pd.Series(wave(30), index=days(30))).predict([1])
    assert forecaster.model_ is model
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert first.iloc[0] != second.iloc[0]
    forecaster.pretrain(panel(days(), instances=2))
    assert any(
        not torch.equal(before[name], each) for name, each in forecaster.model_.state_dict().items()
    )


def test_instances_do_not_know_each_other() -> None:
    y = panel(days())
    X = pd.DataFrame({"u": np.random.default_rng(1).random(len(y))}, index=y.index)
    forecaster = tiny().pretrain(y, X)
    # The second ends early, and the first has controls further on.
    y = y.drop(y.index[50:80])
    later = pd.concat(
        {
            name: pd.DataFrame({"u": np.linspace(0, 1, n)}, index=days(40 + n)[-n:])
            for name, n in (("i0", 6), ("i1", 3), ("i2", 3))
        },
        names=["instance", "time"],
    )
    moments = ForecastingHorizon(days(43)[-3:], is_relative=False)
    together = forecaster.fit(y, X.loc[y.index]).predict(moments, later)
    for name in ("i0", "i1", "i2"):
        alone = forecaster.fit(y.loc[name], X.loc[y.index].loc[name])
        np.testing.assert_allclose(
            alone.predict(moments, later.loc[name]), together.loc[name], rtol=1e-5
        )


def test_a_control_holds_over_the_time_up_to_its_row() -> None:
    y = pd.DataFrame({"a": wave()}, index=days())
    X = pd.DataFrame({"u": np.arange(45.0)}, index=days(45))
    held = sequences_of(y, X.head(40)).controls
    assert held is not None
    assert held[0, :, 0].tolist() == [*range(1, 40), 39]
    forecaster = tiny().fit(y, X[:40])
    usual = forecaster.predict([1, 2, 3], X[40:])
    for row in range(40, 45):
        changed = X.copy()
        changed.iloc[row] += 10.0
        moved = (forecaster.predict([1, 2, 3], changed[40:]) != usual)["a"].tolist()
        # That of a row reaches predictions from that row on, and none before it.
        assert moved == [row <= 40 + at for at in range(3)]


def test_quantiles_are_ends_of_the_conformal_intervals() -> None:
    y = pd.DataFrame({"a": wave(60), "b": wave(60, 1.0)}, index=days(60))
    forecaster = tiny(intervals=0.5).fit(y)
    fh = [1, 5]
    found = forecaster.predict_quantiles(fh, alpha=[0.25, 0.5, 0.75])
    middle = forecaster.predict(fh)
    for at, name in enumerate("ab"):
        low, half, high = (found[name, level] for level in (0.25, 0.5, 0.75))
        assert half.tolist() == middle[name].tolist()
        np.testing.assert_allclose(high - half, half - low, rtol=1e-4)
        radius = forecaster.model_.calibration.radius(86400.0 * torch.tensor([fh]), 0.5)
        np.testing.assert_allclose(high - half, radius[0, :, at], rtol=1e-4)
    wide = forecaster.predict_interval(fh, coverage=0.8)
    assert (wide["a", 0.8, "lower"] <= found["a", 0.25]).all()
    with pytest.raises(ValueError, match="intervals reach as far as their calibration did"):
        forecaster.predict_interval([6], coverage=0.5)
    with pytest.raises(ValueError, match=r"Fit with intervals=0\.2 \(now 0\)"):
        tiny(intervals=0).fit(y).predict_interval(fh)


def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    walks = pd.DataFrame({"a": rng.standard_normal((60, 12)).cumsum(1).ravel()})
    walks.index = pd.MultiIndex.from_product([range(60), range(12)], names=["walk", "time"])
    options = TINY["options"] | {"num_context": 7}
    forecaster = tiny(intervals=0.8, options=options).pretrain(walks)
    later = rng.standard_normal((300, 12)).cumsum(1)
    seen = pd.DataFrame({"a": later[:, :7].ravel()})
    seen.index = pd.MultiIndex.from_product([range(300), range(7)], names=["walk", "time"])
    bounds = forecaster.fit(seen).predict_interval([1, 5], coverage=0.8)
    low, high = (bounds["a", 0.8, side].to_numpy().reshape(300, 2) for side in ("lower", "upper"))
    hits = ((low <= later[:, [7, 11]]) & (later[:, [7, 11]] <= high)).mean(axis=0)
    # 0.8 of 48 walks, seen on 300: two standard deviations are 0.12.
    assert (hits > 0.68).all()
    assert (hits < 0.95).all()


def test_update_moves_the_context_and_goes_on_training_if_asked() -> None:
    y = pd.Series(wave(), index=days())
    forecaster = tiny().fit(y[:30])
    given = SkipstoneForecaster(model=forecaster.model_).fit(y)
    weight = next(forecaster.model_.parameters()).clone()
    forecaster.update(y[30:], update_params=False)
    assert torch.equal(weight, next(forecaster.model_.parameters()))
    pd.testing.assert_series_equal(forecaster.predict([1, 2]), given.predict([1, 2]))
    forecaster.update(pd.Series(wave(41), index=days(41))[40:])
    assert not torch.equal(weight, next(forecaster.model_.parameters()))


def test_values_may_be_missing() -> None:
    y = pd.DataFrame({"a": wave(), "b": wave(start=1.0)}, index=days())
    y.iloc[5, 0] = y.iloc[38, 1] = y.iloc[39, 0] = np.nan
    found = tiny().fit(y).predict([1, 2])
    assert np.isfinite(found.to_numpy()).all()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"model": "pcod"}, "there is no model 'pcod'. Did you mean pcode?"),
        ({"intervals": 1.0}, "intervals, a share of the data, must be at least 0 and below 1"),
        ({"horizon": 0}, "horizon, the observations to predict, must be at least 1; got 0."),
        ({"steps": 0}, "steps must be at least 1 and at most 1000000000; got 0."),
        ({"random_state": -1}, "seed must be a whole number, zero or more"),
        ({"options": "hidden"}, "options must be a dictionary, such as {"),
        ({"options": {"hiden": 4}}, "Did you mean hidden?"),
        ({"options": {"num_context": 50}}, "at least 51 observations"),
    ],
)
def test_settings_that_break_a_rule(
    settings: dict[str, Any], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A user's annotations are checked by nobody.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=re.escape(rule)) as raised:
        tiny(**settings).fit(pd.Series(wave()))
    assert raised.type is InvalidInput


def test_data_that_break_a_rule() -> None:
    y = pd.Series(wave(), index=days())
    with pytest.raises(NotFittedError):
        tiny().predict([1])
    forecaster = tiny().pretrain(panel(days()))
    with pytest.raises(ValueError, match="times must be datetimes, as those that the model was"):
        forecaster.fit(pd.Series(wave()))
    for wrong, names in ((pd.DataFrame({"a": y, "b": y}), "'a', 'b'"), (y.rename("b"), "'b'")):
        rule = f"y must have the columns .* trained on, .'a'., in any order; it has .{names}"
        with pytest.raises(ValueError, match=rule):
            forecaster.fit(wrong)
    with pytest.raises(ValueError, match=r"X must have the columns .* \[\], .* it has \['u'\]"):
        forecaster.fit(y).predict([1], pd.DataFrame({"u": [1.0]}, index=days(41)[40:]))


def test_errors_use_the_names_and_rows_of_the_user() -> None:
    y, several = pd.DataFrame({"warmth": wave()}, index=days()), panel(days())
    X = pd.DataFrame({"u": np.where(np.arange(40) == 7, np.nan, 1.0)}, index=days())
    with pytest.raises(ValueError, match=r"X must be finite; it has nan at 2026-01-08.* 'u'"):
        sequences_of(y, X)
    inputs = pd.DataFrame({"u": 1.0}, index=several.index)
    inputs.iloc[[0, 40]] = np.nan  # Nothing reads the first of a series.
    sequences_of(several, inputs)
    inputs.iloc[47] = np.inf
    with pytest.raises(ValueError, match="X must be finite; 'i1' has inf at 2026-01-08"):
        sequences_of(several, inputs)
    several.iloc[43] = np.inf
    with pytest.raises(ValueError, match="id 'i1', row 43 has inf in column 'a'"):
        sequences_of(several)
    # Names that would be the same are told apart.
    named = sequences_of(y.set_axis(["time"], axis=1), X.fillna(0.0).set_axis(["time"], axis=1))
    assert (named.dim, named.control_dim) == (1, 1)


def test_columns_go_by_their_names() -> None:
    y = pd.DataFrame({"a": wave(), "b": 2 + wave(start=1.0)}, index=days())
    X = pd.DataFrame({"u": wave(45, 2.0), "v": wave(45, 3.0)}, index=days(45))
    forecaster = tiny(horizon=3, intervals=0.5)
    forecaster.pretrain(*(pd.concat({"one": part}, names=["instance"]) for part in (y, X[:40])))
    usual = forecaster.fit(y, X[:40]).predict([1, 2], X[40:])
    bounds = forecaster.predict_interval([1, 2], X[40:], coverage=0.1)
    forecaster.fit(y[["b", "a"]][:30], X[["v", "u"]][:30])
    forecaster.update(y[["b", "a"]][30:], X[["v", "u"]][30:40], update_params=False)
    turned = forecaster.predict([1, 2], X[["v", "u"]][40:])
    assert list(turned.columns) == ["b", "a"]
    pd.testing.assert_frame_equal(turned[["a", "b"]], usual)
    again = forecaster.predict_interval([1, 2], X[["v", "u"]][40:], coverage=0.1)
    pd.testing.assert_frame_equal(again[["a", "b"]], bounds)
    with pytest.raises(ValueError, match=r"X must have the columns .* it has \['u', 'w'\]"):
        forecaster.predict([1], X[40:].set_axis(["u", "w"], axis=1))
    # What was never named has a place alone.
    plain = forecaster.fit(y.set_axis([0, 1], axis=1), X[:40]).predict([1, 2], X[40:])
    np.testing.assert_array_equal(plain, usual)


@pytest.mark.parametrize("model", ["pcode", "rnn"])
def test_a_moment_has_one_forecast_whatever_else_is_asked_for(model: str) -> None:
    forecaster = tiny(model=model, horizon=4).fit(pd.Series(wave(), index=days()))
    every = forecaster.predict(list(range(1, 12)))
    for steps in ([2], [4], [1, 3], [5, 6], [7], [11]):
        pd.testing.assert_series_equal(
            forecaster.predict(steps), every.iloc[[step - 1 for step in steps]], check_freq=False
        )


def test_steps_count_from_the_end_of_each_series() -> None:
    """As those of forecasters that sktime runs series by series."""
    y = pd.concat({"long": panel(days(), 1).loc["i0"], "short": panel(days(20), 1).loc["i0"]})
    forecaster = tiny().fit(y)
    found = forecaster.predict([1, 3])
    assert list(found.loc["long"].index) == [days(43)[40], days(43)[42]]
    assert list(found.loc["short"].index) == [days(43)[20], days(43)[22]]
    alone = SkipstoneForecaster(model=forecaster.model_, horizon=5).fit(y.loc["short"])
    np.testing.assert_allclose(alone.predict([1, 3]), found.loc["short"], rtol=1e-5)
    counted = pd.concat({name: y.loc[name].reset_index(drop=True) for name in ("long", "short")})
    assert list(tiny().fit(counted).predict([2]).index) == [("long", 41), ("short", 21)]
    odd = pd.concat({"long": y.loc["long"], "odd": panel(irregular(), 1).loc["i0"]})
    with pytest.raises(ValueError, match="with a frequency; that of 'odd' has none"):
        tiny().fit(odd).predict([1])
    lengths = tiny().fit(odd).predict(pd.to_timedelta([24], unit="h"))
    assert list(lengths.index.get_level_values(1)) == [
        odd.loc[name].index[-1] + pd.Timedelta("24h") for name in ("long", "odd")
    ]


def test_without_a_random_state_trainings_differ() -> None:
    y = pd.Series(wave(), index=days())
    one, other = (tiny(random_state=None).fit(y).predict([1]) for _ in range(2))
    assert one.iloc[0] != other.iloc[0]
