"""`SkipstoneForecaster`: the models of this library as a forecaster of sktime."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput, require_number, require_seed
from skipstone.evaluation.calibrate import calibrate
from skipstone.models.base import Model
from skipstone.models.registry import BASELINE, MODELS, RECOMMENDED
from skipstone.path import Path
from skipstone.sequences import Sequences
from skipstone.training.cuts import FEW, keep_apart, keep_targets
from skipstone.training.in_memory import train_in_memory
from skipstone.training.objective import Objective
from skipstone.training.recipe import Recipe

try:
    from sktime.datatypes import update_data
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
    from sktime.utils.validation.forecasting import check_fh
except ModuleNotFoundError as error:
    told = "sktime must be installed for its forecaster. Run: pip install 'skipstone[sktime]'"
    raise ModuleNotFoundError(told) from error

CALIBRATED = 1_000
"""Windows that intervals are made from at most, about."""

_MIDDLE = 1e-9  # Coverage of the median: anything below is rounding.

Rows = pd.DataFrame  # Of one series, by time, or of several, by instance and time.


class SkipstoneForecaster(BaseForecaster):
    """Forecasts by a continuous-time sequence model.

    `pretrain(panel)` trains on many series, and `fit(y)` then only sets the context. Without it,
    `fit` trains on `y`. On irregular time stamps a horizon is given in moments. `X` are controls,
    of which `X[t]` holds over the time up to `t`. Intervals are split-conformal, from data that are
    kept apart; see `skipstone.calibrate`.

    Parameters
    ----------
    model : str or Model, default=the one we recommend
        Name of a model to train, or a trained one, which `fit` uses as it is.
    horizon : int, default=12
        Observations ahead to train for. Intervals reach as far as that.
    steps : int, default=1000
        Gradient steps of a training.
    batch_size : int, default=64
        Windows per step.
    learning_rate : float, default=6e-3
        Peak of the learning rate.
    intervals : float, default=0.2
        Share of the data that is kept apart for intervals: of the series, or of fewer than 10 the
        end of each. 0 trains on all, without intervals.
    options : dict, optional
        Settings of the model, such as `{"hidden": 64, "num_context": 8}`.
    random_state : int, default=0
        Seed of weights, windows and exploration.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skipstone.integrations.sktime import SkipstoneForecaster
    >>> y = pd.Series(np.sin(np.arange(60) / 5))
    >>> forecaster = SkipstoneForecaster(horizon=3, steps=2, options={"hidden": 8})
    >>> forecaster.fit(y).predict(fh=[1, 2, 3]).index.tolist()
    [60, 61, 62]
    """

    _tags = {  # noqa: RUF012 - sktime's own form.
        "authors": ["skipstone"],
        "python_dependencies": ["torch"],
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:missing_values": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:pretrain": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
        "capability:update": True,
        "capability:categorical_in_X": False,
    }
    # What a context needs is kept here; sktime need not keep it again.
    _config = {"remember_data": False}  # noqa: RUF012 - sktime's own form.

    def __init__(
        self,
        model: Any = RECOMMENDED,
        horizon: int = 12,
        steps: int = 1_000,
        batch_size: int = 64,
        learning_rate: float = 6e-3,
        intervals: float = 0.2,
        options: dict[str, Any] | None = None,
        random_state: int = 0,
    ):
        self.model = model
        self.horizon = horizon
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.intervals = intervals
        self.options = options
        self.random_state = random_state
        super().__init__()
        self._y = self._X = None  # Until somebody asks sktime to remember data.

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings that train in an instant, for sktime's own tests."""
        tiny = {"hidden": 4, "layers": 2, "num_context": 2}
        small = {"horizon": 5, "steps": 2, "batch_size": 4, "options": tiny}
        return [small, {**small, "model": BASELINE, "intervals": 0.5, "random_state": 1}]

    def _pretrain(self, y: Rows, X: Rows | None = None, fh: Any = None) -> SkipstoneForecaster:
        given = self.model if isinstance(self.model, Model) else None
        self._learn(sequences_of(y, X), given)
        return self

    def _pretrain_update(
        self, y: Rows, X: Rows | None = None, fh: Any = None
    ) -> SkipstoneForecaster:
        self._learn(sequences_of(y, X), self.model_)
        return self

    def _fit(self, y: Rows, X: Rows | None, fh: Any) -> SkipstoneForecaster:
        self._seen = y, X
        self._trained_here = False
        if not hasattr(self, "model_"):
            if isinstance(self.model, Model):
                self.model_, self.times_ = copy.deepcopy(self.model).eval(), None
            else:
                self._learn(sequences_of(y, X), None)
                self._trained_here = True
        # What cannot be predicted from is said here, not later.
        self.model_.prepare_context(self._context(None)[0])
        return self

    def _update(
        self, y: Rows, X: Rows | None = None, update_params: bool = True
    ) -> SkipstoneForecaster:
        """Move the context on, and go on training if the data before were trained on."""
        before, controls = self._seen
        self._seen = update_data(before, y), update_data(controls, X)
        if update_params and self._trained_here:
            self._learn(sequences_of(*self._seen), self.model_)
        return self

    def _learn(self, data: Sequences, start: Model[Any] | None) -> None:
        """Train a model, new or from a trained one, and make its intervals."""
        require_number("intervals, a share of the data,", self.intervals, 0, below=1)
        require_number("horizon, the observations to predict,", self.horizon, 1, whole=True)
        require_seed(self.random_state)
        seed = int(self.random_state)
        recipe = Recipe(
            steps=self.steps, batch_size=self.batch_size, learning_rate=self.learning_rate
        )
        model = copy.deepcopy(start) if start is not None else self._new(data, seed)
        context = model.config.num_context
        data.require_length(context + 1)
        train, kept = self._parts(data, context, seed)
        train_in_memory(model, Objective(train, recipe, seed, context + self.horizon))
        if kept is not None:
            calibrate(model, kept)
        self.model_, self.times_ = model, data.clock.kind

    def _new(self, data: Sequences, seed: int) -> Model[Any]:
        options = {"missing": not data.complete, **(self.options or {})}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return MODELS.find(self.model).for_data(data, **options)

    def _parts(
        self, data: Sequences, context: int, seed: int
    ) -> tuple[Sequences, Sequences | None]:
        """Data to train on, and windows for intervals, None if there is not enough for both."""
        if not self.intervals:
            return data, None
        window = context + self.horizon
        if len(data) < FEW:
            train, kept = keep_targets(data, context, self.horizon, self.intervals)
        else:
            train, kept = keep_apart(data, window, seed, self.intervals)
        starts = 0 if kept is None else int((kept.lengths - window + 1).clamp(min=0).sum())
        if kept is None or not starts:
            return data, None
        return train, kept.windows(window, stride=max(1, starts // CALIBRATED), max_gap=np.inf)

    def _check_fh(self, fh: Any, pred_int: bool = False) -> Any:
        """Check a horizon. sktime counts moments in steps, which irregular stamps do not have."""
        cutoff, fh = self.cutoff, self._fh if fh is None else fh
        if fh is None or not isinstance(cutoff, pd.DatetimeIndex) or cutoff.freq is not None:
            return super()._check_fh(fh, pred_int)
        fh = check_fh(fh)
        if fh.is_relative and not isinstance(fh.to_pandas(), pd.TimedeltaIndex):
            raise InvalidInput(
                "a horizon in steps needs a time index with a frequency; this one has none, and "
                f"fh is {list(fh.to_pandas())}. Give moments, ForecastingHorizon(moments, "
                "is_relative=False), or lengths of time, pandas.to_timedelta([6, 12], unit='h')."
            )
        if (first := fh.to_absolute_index(cutoff).min()) <= cutoff[0]:
            raise NotImplementedError(
                f"a horizon must lie after the data, which end at {cutoff[0]}; fh has {first}."
            )
        self._fh = fh
        return fh

    @torch.inference_mode()
    def _predict(self, fh: ForecastingHorizon, X: Rows | None = None) -> Rows:
        path, times, index = self._roll_out(fh, X)
        return _framed(path.evaluate(times), index, self._seen[0].columns)

    @torch.inference_mode()
    def _predict_quantiles(
        self, fh: ForecastingHorizon, X: Rows | None, alpha: list[float]
    ) -> Rows:
        path, times, index = self._roll_out(fh, X)
        found = []
        for level in alpha:
            # A quantile is an end of the interval that leaves as much out on either side.
            coverage = abs(1 - 2 * level)
            bounds = path.interval(times, coverage) if coverage > _MIDDLE else None
            found.append(path.evaluate(times) if bounds is None else bounds[int(level > 0.5)])
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return _framed(torch.stack(found, dim=-1).flatten(-2), index, columns)

    def _roll_out(
        self, fh: ForecastingHorizon, X: Rows | None
    ) -> tuple[Path, Float[Tensor, "batch time"], pd.Index]:
        """A path from the context through the horizon, the times asked for, and their index."""
        moments = fh.to_absolute_index(self.cutoff)
        context, controls = self._context(X)
        times = context.model_times(_stamps(moments))
        path = self.model_.rollout(context, times.max(dim=1).values, controls)
        return path, times, _index_of(self._seen[0].index, moments)

    def _context(self, later: Rows | None) -> tuple[Sequences, Any]:
        """What to predict from, and the controls after it."""
        y, X = self._seen
        data = sequences_of(y, X)
        if self.times_ not in (None, data.clock.kind):
            raise InvalidInput(
                f"times must be {self.times_}s, as those that the model was trained on; they are "
                f"{data.clock.kind}s. Convert the index, or pretrain on such data."
            )
        context = data.tail(self.model_.config.num_context)
        if later is None:
            return context, None
        if later.shape[1] != context.control_dim:
            raise InvalidInput(
                f"X in predict must have the columns that it had in fit, {context.control_dim}; it "
                f"has {later.shape[1]}."
            )
        return _with_controls(context, y.index, later, self.model_.config.time_unit)


def sequences_of(y: Rows, X: Rows | None = None) -> Sequences:
    """Rows of sktime as sequences, in the order in which instances appear.

    In sktime `X[t]` belongs to `y[t]`; here a control holds from its row on. So that of a row is
    the `X` of the next one.
    """
    instances = _instance_rows(y.index, y.index)
    stamps = _stamps(y.index.get_level_values(-1))
    frame = pd.DataFrame({"instance": instances, "time": stamps})
    values = [f"y{at}" for at in range(y.shape[1])]
    frame[values] = y.to_numpy(dtype=np.float64)
    controls = None
    if X is not None:
        controls = [f"x{at}" for at in range(X.shape[1])]
        own = pd.DataFrame(X.reindex(y.index).to_numpy(dtype=np.float64), columns=controls)
        last = ~frame["instance"].duplicated(keep="last")
        frame[controls] = own.groupby(instances).shift(-1).mask(last, own)
    return Sequences.from_table(frame, id="instance", time="time", values=values, controls=controls)


def _with_controls(
    context: Sequences, seen: pd.Index, later: Rows, unit: float
) -> tuple[Sequences, Any]:
    """A context whose last control is the first of the later ones, and the others, each from the
    row before its own on. Past its last one a control holds."""
    assert context.controls is not None
    rows, values = _instance_rows(seen, later.index), later.to_numpy(dtype=np.float64)
    stamps = _stamps(later.index.get_level_values(-1))
    latest, moments, held = context.controls.clone(), [], []
    for row in range(len(context)):
        own = rows == row
        at = context.clock.pick([row]).to_model(stamps[own])[0]
        after = at > float(context.ends[row])
        at, control = at[after], torch.as_tensor(values[own][after]).to(latest)
        if len(at):
            latest[row, -1] = control[0]
        moments.append(at[:-1])
        held.append(control[1:])
    context = context.replaced(context.values, latest)
    longest = max(len(at) for at in moments)
    if longest == 0:
        return context, None
    for row, at in enumerate(moments):
        missing = longest - len(at)
        start = at[-1] if len(at) else float(context.ends[row])
        last = held[row][-1:] if len(at) else latest[row, -1:]
        moments[row] = np.concatenate([at, start + unit * np.arange(1, missing + 1)])
        held[row] = torch.cat([held[row], last.expand(missing, -1)])
    return context, (torch.as_tensor(np.stack(moments)), torch.stack(held))


def _instance_rows(seen: pd.Index, index: pd.Index) -> np.ndarray:
    """The sequence of each row of an index, -1 for an instance that was not seen."""
    if not isinstance(seen, pd.MultiIndex):
        return np.zeros(len(index), dtype=np.int64)
    return seen.droplevel(-1).unique().get_indexer(index.droplevel(-1))


def _stamps(times: pd.Index) -> Any:
    """Stamps as tables have them: periods are counted, one after another."""
    periods = isinstance(times, pd.PeriodIndex)
    return times.asi8 if periods else times.to_series(index=range(len(times)))


def _index_of(seen: pd.Index, moments: pd.Index) -> pd.Index:
    """The index of predictions: the moments, of each instance in turn."""
    if not isinstance(seen, pd.MultiIndex):
        return moments
    instances = seen.droplevel(-1).unique()
    keys = [each if isinstance(each, tuple) else (each,) for each in instances]
    return pd.MultiIndex.from_tuples(
        [(*key, moment) for key in keys for moment in moments], names=seen.names
    )


def _framed(values: Float[Tensor, "batch time columns"], index: pd.Index, columns: Any) -> Rows:
    rows = values.flatten(0, 1).cpu().double().numpy()
    return pd.DataFrame(rows, index=index, columns=columns)
