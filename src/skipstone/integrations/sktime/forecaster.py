"""`SkipstoneForecaster`: the models of this library as a forecaster of sktime."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from skipstone.errors import InvalidInput, require_number, require_seed, shortened
from skipstone.evaluation.calibrate import calibrate
from skipstone.models.base import Model
from skipstone.models.registry import BASELINE, MODELS, RECOMMENDED
from skipstone.path import Path
from skipstone.sequences import Sequences
from skipstone.training.cuts import FEW, keep_apart, keep_targets
from skipstone.training.in_memory import train_in_memory
from skipstone.training.objective import Objective
from skipstone.training.recipe import Recipe

from .series import (
    Frame,
    align_columns,
    framed,
    later_controls,
    model_times,
    moments_after,
    sequences_of,
)

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

_SAME = 1e-6  # Times this close, as a share of the horizon, are the same.


class SkipstoneForecaster(BaseForecaster):
    """Forecasts by a continuous-time sequence model.

    `pretrain(panel)` trains on many series, and `fit(y)` then only sets the context. Without it,
    `fit` trains on `y`. On irregular time stamps a horizon is given in moments. `X` are controls,
    of which `X[t]` holds over the time up to `t`. Intervals are split-conformal, from data that are
    kept apart; see `skipstone.calibrate`. Columns go by their names, in any order.

    A rollout cuts its last segment off where it ends. So that a moment has one forecast, whatever
    else is asked for, rollouts end `horizon` observations after the data, or at the first multiple
    of that which a moment needs.

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
    random_state : int or None, default=0
        Seed of weights, windows and exploration; None draws another for each training.

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
        random_state: int | None = 0,
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

    def _pretrain(self, y: Frame, X: Frame | None = None, fh: Any = None) -> SkipstoneForecaster:
        given = self.model if isinstance(self.model, Model) else None
        self._learn(y, X, given)
        return self

    def _pretrain_update(
        self, y: Frame, X: Frame | None = None, fh: Any = None
    ) -> SkipstoneForecaster:
        self._learn(*self._aligned(y, X), self.model_)
        return self

    def _fit(self, y: Frame, X: Frame | None, fh: Any) -> SkipstoneForecaster:
        self._check_settings()
        self._trained_here = False
        if not hasattr(self, "model_"):
            if isinstance(self.model, Model):
                self.model_, self.times_ = copy.deepcopy(self.model).eval(), None
                self.columns_ = _columns(y, X)
            else:
                self._learn(y, X, None)
                self._trained_here = True
        self._seen, self._shown = self._aligned(y, X), y.columns
        order = self._seen[0].columns.get_indexer(y.columns)
        # Without names, in the order of the training.
        self._order = order if (order >= 0).all() else np.arange(len(order))
        # What cannot be predicted from is said here, not later.
        self.model_.prepare_context(self._context(None)[0])
        if self._fh is not None:
            self._moments(self._fh)
        return self

    def _update(
        self, y: Frame, X: Frame | None = None, update_params: bool = True
    ) -> SkipstoneForecaster:
        """Move the context on, and go on training if the data before were trained on."""
        before, (y, X) = self._seen, self._aligned(y, X)
        self._seen = update_data(before[0], y), update_data(before[1], X)
        if update_params and self._trained_here:
            self._learn(*self._seen, self.model_)
        return self

    def _aligned(self, y: Frame, X: Frame | None) -> tuple[Frame, Frame | None]:
        """Data with the columns in the order of the training."""
        trained, controls = self.columns_
        return align_columns(y, trained, "y"), X if X is None else align_columns(X, controls, "X")

    def _check_settings(self) -> None:
        require_number("intervals, a share of the data,", self.intervals, 0, below=1)
        require_number("horizon, the observations to predict,", self.horizon, 1, whole=True)
        if self.random_state is not None:
            require_seed(self.random_state)
        if not isinstance(self.options, dict | None):
            raise InvalidInput(
                'options must be a dictionary, such as {"hidden": 64}; got '
                f"{shortened(self.options)}."
            )

    def _learn(self, y: Frame, X: Frame | None, start: Model[Any] | None) -> None:
        """Train a model, new or from a trained one, and make its intervals."""
        self._check_settings()
        data, seed = sequences_of(y, X), self.random_state
        seed = int(np.random.default_rng().integers(2**31) if seed is None else seed)
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
        self.model_, self.times_, self.columns_ = model, data.clock.kind, _columns(y, X)

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
        """Check a horizon. sktime counts moments in steps, which irregular stamps do not have;
        `moments_after` checks those."""
        cutoff, fh = self.cutoff, self._fh if fh is None else fh
        if fh is None or not isinstance(cutoff, pd.DatetimeIndex) or cutoff.freq is not None:
            return super()._check_fh(fh, pred_int)
        self._fh = check_fh(fh)
        return self._fh

    @torch.inference_mode()
    def _predict(self, fh: ForecastingHorizon, X: Frame | None = None) -> Frame:
        return self._read(fh, X, Path.evaluate, self._shown)

    @torch.inference_mode()
    def _predict_quantiles(
        self, fh: ForecastingHorizon, X: Frame | None, alpha: list[float]
    ) -> Frame:
        # A quantile is an end of the interval that leaves as much out on either side.
        coverages = [abs(1 - 2 * level) for level in alpha]
        if self.model_.calibration is None and max(coverages, default=0) > _MIDDLE:
            raise InvalidInput(
                "intervals come from errors on data that were kept apart; this forecaster has "
                f"none. Fit with intervals=0.2 (now {self.intervals}) and more or longer series, "
                "or calibrate a given model: skipstone.calibrate(model, sequences)."
            )

        def quantiles(path: Path, times: Tensor) -> Tensor:
            found = []
            for level, coverage in zip(alpha, coverages, strict=True):
                bounds = path.interval(times, coverage) if coverage > _MIDDLE else None
                found.append(path.evaluate(times) if bounds is None else bounds[int(level > 0.5)])
            return torch.stack(found, dim=-1)

        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return self._read(fh, X, quantiles, columns)

    def _read(
        self,
        fh: ForecastingHorizon,
        X: Frame | None,
        read: Callable[[Path, Tensor], Tensor],
        columns: Any,
    ) -> Frame:
        """What paths from the context say at the moments of a horizon, in the user's order."""
        moments = self._moments(fh)
        context, controls = self._context(X)
        times = model_times(context, moments)
        reach = self.horizon * self.model_.config.time_unit
        ahead = (times - context.ends[:, None]) / reach
        number = (ahead - _SAME).ceil().clamp(min=1)
        found: Any = 0.0
        for each in number.unique():
            path = self.model_.rollout(context, context.ends + each * reach, controls)
            own = number == each
            values = read(path, torch.where(own, times, path.start[:, None]))
            found = torch.where(own.view(*own.shape, *[1] * (values.ndim - 2)), values, found)
        return framed(found[:, :, self._order].flatten(2), self._seen[0].index, moments, columns)

    def _moments(self, fh: ForecastingHorizon) -> list[pd.Index]:
        return moments_after(self._seen[0].index, fh, getattr(self.cutoff, "freq", None))

    def _context(self, later: Frame | None) -> tuple[Sequences, Any]:
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
        later = align_columns(later, self.columns_[1], "X")
        return later_controls(context, y.index, later, self.model_.config.time_unit)


def _columns(y: Frame, X: Frame | None) -> tuple[pd.Index, pd.Index]:
    return y.columns, pd.Index([]) if X is None else X.columns
