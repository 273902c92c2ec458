"""`evaluate`: every number that is reported of a model, with how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from skipstone.console import short_number
from skipstone.errors import InvalidInput, require_flag, require_kind, require_seed
from skipstone.evaluation.alignment import Alignment, TimedEvents, align
from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.evaluation.own_units import ForecastErrors, forecast_errors
from skipstone.evaluation.rollouts import Errors, Rollouts, roll_out_all, teacher_forced_errors
from skipstone.evaluation.timing import WallTime, time_rollouts
from skipstone.evaluation.validity import ValidTime, valid_times
from skipstone.models.base import Model, require_model, require_sequences
from skipstone.sequences import Sequences

# Steps closer than this, relative to their length, are the same step.
_SAME_STEP = 1e-6


@dataclass(frozen=True)
class ConstantStep:
    """Rollouts at a constant step instead of the model's own: one point of the curve to beat."""

    step: float
    """Time between two updates, in the model's unit."""

    mean_step: Estimate
    """As it came out: ends, and changes of the controls, cut steps short."""

    sample_mse: Estimate
    """The error of the rollouts."""


@dataclass(frozen=True)
class Evaluation:
    """How well a model predicts and what it costs.

    Intervals are 95 % bootstrap intervals over trajectories. Errors are squared, averaged over
    features, and over the observations after the context.
    """

    num_trajectories: int
    """Sequences evaluated."""

    test_mse: Estimate
    """Error of one teacher-forced pass: each observation predicted from those before it."""

    sample_mse: Estimate
    """Error of rollouts from the context to the end."""

    mean_step: Estimate
    """Time covered by all rollouts over the number of updates, in the model's unit. The last step
    of a rollout counts as far as the end, which cuts it."""

    updates: Estimate
    """Cell updates per rollout, the first at the last observation of the context."""

    function_evaluations: Estimate
    """Evaluations of an ODE's right-hand side per rollout, read at all observations."""

    horizon_mse: tuple[Estimate, ...]
    """Error of rollouts by horizon: at the first observation after the context, the second, ..."""

    valid_times: tuple[ValidTime, ...]
    """How long rollouts stay close to the truth, for two meanings of close."""

    constant_steps: tuple[ConstantStep, ...]
    """Rollouts at constant steps, for comparison; empty for models that do not choose theirs."""

    alignment: Alignment | None
    """Updates against true collisions, where those are known."""

    wall_times: tuple[WallTime, ...]
    """Wall time of rollouts on this machine; empty if not asked for."""

    forecasts: ForecastErrors | None
    """Errors of rollouts by feature and elapsed time, in the data's own units, beside persistence
    and constant velocity; None for images."""

    def __repr__(self) -> str:
        numbers = {
            "sample MSE": self.sample_mse,
            "test MSE": self.test_mse,
            "updates": self.updates,
            "mean step": self.mean_step,
        }
        shown = ", ".join(f"{name} {short_number(each.value)}" for name, each in numbers.items())
        lines = [f"Evaluation of {self.num_trajectories} trajectories: {shown}"]
        lines += [] if self.forecasts is None else [repr(self.forecasts)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers for JSON, with None for what is not known."""
        return _plain(asdict(self))


@torch.inference_mode()
def evaluate(
    model: Model[Any],
    sequences: Sequences,
    *,
    events: TimedEvents | None = None,
    timing: bool = True,
    seed: int = 0,
) -> Evaluation:
    """Measure a model on sequences it was not trained on.

    `events` are what truly happened in the same trajectories, collisions say, if that is known.
    `timing=False` leaves out the wall times, the only numbers that are not a function of model,
    data and seed.
    """
    _check(model, sequences, events)
    require_flag("timing", timing)
    require_seed(seed)
    unit = model.config.time_unit
    resampling, placement = np.random.default_rng(seed).spawn(2)
    bootstrap = Bootstrap(len(sequences), resampling)
    forced = teacher_forced_errors(model, sequences)
    rollouts = roll_out_all(model, sequences, keep=True)
    one_each = np.ones(len(sequences))
    return Evaluation(
        num_trajectories=len(sequences),
        test_mse=_mse(forced, bootstrap),
        sample_mse=_mse(rollouts.errors, bootstrap),
        mean_step=_mean_step(rollouts, unit, bootstrap),
        updates=bootstrap.ratio(rollouts.updates, one_each),
        function_evaluations=bootstrap.ratio(rollouts.evaluations, one_each),
        horizon_mse=tuple(bootstrap.ratios(rollouts.errors.values, rollouts.errors.observed)),
        valid_times=valid_times(model, sequences, rollouts, bootstrap),
        constant_steps=tuple(
            _constant_steps(model, sequences, bootstrap) if model.chooses_steps else ()
        ),
        alignment=None
        if events is None or len(events) == 0
        else align(rollouts, events, unit, bootstrap, placement),
        wall_times=time_rollouts(model, sequences) if timing else (),
        forecasts=forecast_errors(model, sequences, bootstrap, rollouts)
        if sequences.values.is_floating_point()
        else None,
    )


def _check(model: Model[Any], sequences: Sequences, events: TimedEvents | None) -> None:
    """Whatever is wrong is said before the work begins."""
    require_model(model)
    require_sequences(sequences)
    sequences.require_length(model.config.num_context + 1)
    if events is not None:
        require_kind("events must be those of a task, or alike", events, TimedEvents)
    if events is not None and events.batch != len(sequences):
        raise InvalidInput(
            "events must be those of the sequences, trajectory by trajectory; got events of "
            f"{events.batch} trajectories for {len(sequences)} sequences. Take both from the same "
            'part of a task: data.test and data.events["test"].'
        )


def _mse(errors: Errors, bootstrap: Bootstrap) -> Estimate:
    return bootstrap.ratio(errors.values.sum(1), errors.observed.sum(1))


def _mean_step(rollouts: Rollouts, unit: float, bootstrap: Bootstrap) -> Estimate:
    return bootstrap.ratio((rollouts.end - rollouts.start) / unit, rollouts.updates)


def _constant_steps(
    model: Model[Any], sequences: Sequences, bootstrap: Bootstrap
) -> Iterator[ConstantStep]:
    """The sweep over constant steps: error against mean step, without any choice of when."""
    unit = model.config.time_unit
    spans = sequences.ends - sequences.times[:, model.config.num_context - 1]
    for step in _steps_up_to(float(spans.max()) / unit):
        rollouts = roll_out_all(model, sequences, step * unit)
        yield ConstantStep(
            step, _mean_step(rollouts, unit, bootstrap), _mse(rollouts.errors, bootstrap)
        )


def _steps_up_to(length: float) -> list[float]:
    """1, 2, 3, 5, 8, ... evenly spread on a logarithmic axis; the last crosses the whole length."""
    steps, following = [], (1.0, 2.0)
    while following[0] < (1 - _SAME_STEP) * length:
        steps.append(following[0])
        following = following[1], sum(following)
    return [*steps, length]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
