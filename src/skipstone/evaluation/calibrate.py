"""`calibrate`: intervals for a model's predictions, by split-conformal prediction."""

from __future__ import annotations

from typing import Any, TypeVar

from skipstone.calibration import Calibration
from skipstone.evaluation.residuals import model_forecast, residuals_of
from skipstone.models.base import Model, require_model, require_sequences
from skipstone.sequences import Sequences

_Model = TypeVar("_Model", bound=Model[Any])


def calibrate(model: _Model, sequences: Sequences) -> _Model:
    """Give a model intervals: `path.interval(t, coverage=0.9)` for every path it rolls out.

    `sequences` must have neither trained the model nor chosen its weights. Each is predicted from
    its context to its end, and quantiles of the absolute errors are kept by elapsed time and
    feature, as `model.calibration`, and saved with it. Returns the model.

    What is promised: for a new trajectory that is exchangeable with these, an observation at some
    time after its context lies in its interval with at least the chosen probability. That is
    marginal: on average over trajectories, for one feature at one time. It is not promised for each
    kind of trajectory, for a whole path at once, or for data that have changed since.
    """
    require_model(model)
    require_sequences(sequences)
    count = model.config.num_context
    sequences.require_length(count + 1)
    training = model.training
    found = residuals_of(model_forecast(model.eval()), sequences, count)
    model.train(training)
    model.calibration = Calibration.from_errors(found.elapsed, found.errors, model.config.time_unit)
    return model
