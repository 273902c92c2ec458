"""An example is one trajectory, seen and predicted at the same times."""

from __future__ import annotations

import numpy as np
import pytest

from skipstone import PCODE, RNN
from skipstone.paper.examples import FINE, make_example
from skipstone.paper.tasks.base import CONTEXT
from skipstone.paper.tasks.registry import TASKS


@pytest.mark.parametrize("name", list(TASKS))
def test_moments_pass_through_the_observations(name: str) -> None:
    example = make_example(name, {})
    assert len(example.times) == TASKS[name].options.observations
    np.testing.assert_allclose(example.moments[::FINE], example.times, atol=1e-12)
    np.testing.assert_allclose(example.track[::FINE], example.values, atol=1e-6)
    # It moves between observations, too, and not by leaps.
    steps = np.abs(np.diff(example.track, axis=0)).max(1)
    assert steps.max() > 0
    assert np.isfinite(steps).all()


def test_models_start_from_the_context_and_are_told_of_the_shot() -> None:
    sizes = {"dim": 4, "control": 2, "hidden": 8, "time_unit": 0.05}
    models = {"PC-ODE": PCODE.from_config(sizes), "RNN": RNN.from_config(sizes)}
    example = make_example("shots", models, row=3)
    begin = (CONTEXT - 1) * FINE
    assert np.ptp(example.track[: begin + 1], axis=0).max() == 0
    assert np.abs(example.track[begin + 1] - example.track[begin]).max() > 0
    for prediction in example.predictions.values():
        np.testing.assert_array_equal(prediction.times, example.moments[begin:])
        np.testing.assert_allclose(prediction.values[0], example.values[CONTEXT - 1], atol=1e-6)
        assert prediction.knots[0] == pytest.approx(example.times[CONTEXT - 1])
    # The cue is taken away with the next observation: a change of control is an update.
    assert example.predictions["PC-ODE"].knots[1] == pytest.approx(example.times[CONTEXT])


def test_rows_are_different_trajectories() -> None:
    first, second = (make_example("circles", {}, row).values for row in (0, 1))
    assert np.abs(first - second).max() > 0.1
