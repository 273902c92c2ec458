"""The configuration of the piecewise-constant model, its units, and what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest
import torch
from torch import Tensor

from helpers import (
    random_batch,
    small_pcode,
    step_layer,
    tuned,
)
from skipstone import PCODE, InvalidInput
from skipstone.models.config import READS


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_config_survives_json() -> None:
    model = PCODE(PCODE.Config(dim=3, control=1, hidden=16, readout="absolute", time_unit=0.05))
    again = PCODE.from_config(json.loads(json.dumps(asdict(model.config))))
    assert again.config == model.config


def test_for_data_takes_sizes_and_unit_from_the_data() -> None:
    batch = random_batch(0, [6], control=2, spacing=0.01, irregular=False)
    config = PCODE.for_data(batch, hidden=10).config
    assert (config.dim, config.control, config.hidden) == (2, 2, 10)
    assert config.time_unit == pytest.approx(0.01)


@pytest.mark.parametrize("reads", READS)
def test_units_of_time_do_not_matter(reads: str) -> None:
    """The same trajectories in milliseconds and in years give the same losses and paths."""
    fast, slow = random_batch(1, [9, 7], spacing=1e-3), random_batch(1, [9, 7], spacing=10.0)
    models = [small_pcode(1, time_unit=unit, reads=reads) for unit in (1e-3, 10.0)]
    losses = [
        tuned(model, tolerance=0.1).loss(batch).total
        for model, batch in zip(models, (fast, slow), strict=True)
    ]
    close(losses[0], losses[1])
    one = models[0].rollout(fast.head(4), fast.head(4).ends + 5e-3)
    other = models[1].rollout(slow.head(4), slow.head(4).ends + 50)
    close(one.evaluate(one.end[:, None]), other.evaluate(other.end[:, None]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim must be at least 1; got 0"),
        ({"dim": True}, "dim must be a whole number; got True"),
        ({"control": -1}, "control must be at least 0; got -1"),
        ({"hidden": 7}, "hidden must be even, half position and half velocity; got 7"),
        ({"layers": 1}, "layers must be at least 2 and at most 1000; got 1"),
        ({"num_context": 0}, "num_context must be at least 1; got 0"),
        ({"time_unit": 0.0}, "time_unit must be above 0; got 0.0"),
        ({"min_step": float("nan")}, "min_step must be a finite number; got nan"),
        ({"max_step": 0.5}, "max_step must not be below min_step; got 0.5 < 1.0"),
        ({"velocity_scale": -1.0}, "velocity_scale must be above 0; got -1.0"),
        ({"readout": "relative"}, 'readout must be "displacement" or "absolute"'),
        ({"step_layers": 0}, "step_layers must be at least 1 and at most 1000; got 0"),
        ({"reads": "nothing"}, 'reads must be "values" or "motion"; got'),
        ({"hiden": 7}, "got 'hiden'. Did you mean hidden"),
        ({"tolerance": -1.0}, "tolerance must be at least 0; got -1.0"),
        ({"tolerance": float("nan")}, "tolerance must be a finite number; got nan"),
        ({"explore": 2.0}, "explore must be at least 0 and at most 1; got 2.0"),
        ({"own_steps": -1.0}, "own_steps must be at least 0 and at most 1; got -1.0"),
        ({"step_loss": "log"}, 'step_loss must be "difference" or "ratio"; got'),
        ({"scale": (0.0,)}, "scale, each, must be above 0; got 0.0"),
        ({"center": (0.0, 1.0, 2.0)}, "center must be a list of one number for all features or 2"),
        ({"targets": (2,)}, "targets, each, must be at least 0 and at most 1; got 2"),
        ({"targets": (1, 1)}, "targets must be a list of different features; got (1, 1)"),
        ({"activation": "tanh"}, 'activation must be "relu" or "silu"; got'),
        ({"control_effect": "none"}, 'control_effect must be "drive" or "update"; got'),
        ({"target_step": 0.5}, "target_step must be at least 1.0 and at most 100.0; got 0.5"),
    ],
)
def test_bad_configurations_are_explained(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        PCODE.from_config({"dim": 2, **options})


def test_bad_uses_are_explained() -> None:
    model, batch = small_pcode(0), random_batch(0, [6, 3])
    good = batch[0].tail(4)
    until = good.ends.item() + 5
    for act, message in [
        (lambda: model.rollout(batch, 99.0), "at least 4 observations here; sequence 1 has 3"),
        (lambda: model.loss(batch), "at least 5 observations here; sequence 1 has 3"),
        (lambda: model.rollout(good, until, step=0.0), "step must be above 0; got 0.0"),
        (lambda: model.rollout(good, until, step=float("nan")), "step must be"),
        (lambda: model.rollout(good, until, max_updates=0), "max_updates must be at least 1"),
        (lambda: model.rollout(good, 0.0), "until must be a finite time after the context"),
        (lambda: model.rollout(good, float("inf")), "until must be a finite time"),
        (
            lambda: model.rollout(good, torch.ones(3)),
            "one per trajectory, shape (1,); got shape (3,",
        ),
        (
            lambda: model.loss(random_batch(0, [6], dim=3)),
            "takes 2 features and 0 controls; the data have 3 and 0. Build the model with",
        ),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            act()


def test_weights_that_are_not_finite_are_reported_not_looped_over() -> None:
    model, batch = small_pcode(0), random_batch(0, [4])
    with torch.no_grad():
        step_layer(model).bias.fill_(float("nan"))
    with pytest.raises(InvalidInput, match="a step must be a positive, finite length of time"):
        model.rollout(batch, batch.ends.item() + 5)
