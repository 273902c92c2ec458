"""An example is one trajectory, seen and predicted at the same times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from skipstone import PCODE, RNN
from skipstone.errors import InvalidInput
from skipstone.paper import examples
from skipstone.paper.examples import (
    CANDIDATES,
    FINE,
    Prediction,
    make_example,
    make_examples,
    typical_for,
    typical_row,
)
from skipstone.paper.tasks.base import CONTEXT
from skipstone.paper.tasks.registry import TASKS


@pytest.mark.parametrize("name", list(TASKS))
def test_moments_pass_through_the_observations(name: str) -> None:
    example = make_example(name, {})
    assert len(example.times) == TASKS[name].options.observations
    np.testing.assert_allclose(example.moments[::FINE], example.times, atol=1e-12)
    np.testing.assert_allclose(example.track[::FINE], example.values, atol=1e-6)
    # It moves between observations, too, and not by leaps: balls at speeds below 2, and no pixel
    # of a film by more than a third of its range.
    steps = np.abs(np.diff(example.track, axis=0)).max(1)
    film = example.scene.kind == "film"
    assert 0 < steps.max() < (0.33 if film else 2 * example.spacing / FINE)
    assert (steps > 0).mean() > 0.8


def test_models_start_from_the_context_and_are_told_of_the_shot() -> None:
    sizes = {"dim": 4, "control": 2, "hidden": 8, "time_unit": 0.05}
    pcode = PCODE.from_config({**sizes, "control_effect": "update"})
    models = {"PC-ODE": pcode, "RNN": RNN.from_config(sizes)}
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


def test_a_model_that_scales_predicts_in_the_units_of_the_data() -> None:
    """One that hardly moves stays where the context ends, whatever its center and scale."""
    torch.manual_seed(0)
    model = RNN.from_config({"dim": 2, "hidden": 8, "center": [5.0], "scale": [3.0]})
    with torch.no_grad():
        for weight in model.decoder.parameters():
            weight.zero_()
    example = make_example("circles", {"RNN": model})
    values = example.predictions["RNN"].values
    np.testing.assert_allclose(values - example.values[CONTEXT - 1], 0, atol=1e-5)


def test_a_typical_trajectory_has_the_median_error_of_the_pcode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examples, "CANDIDATES", 8)
    torch.manual_seed(0)
    sizes = {"dim": 2, "hidden": 8}
    models = {"RNN": RNN.from_config(sizes), "PC-ODE": PCODE.from_config(sizes)}
    errors = []
    for example in make_examples("lines", models, 8):
        made = example.predictions["PC-ODE"].at(example.times[CONTEXT:])
        errors.append(np.square(made - example.values[CONTEXT:]).mean())
    row = typical_row("lines", models)
    # Half of the trajectories, itself included, have no larger error.
    assert sum(error <= errors[row] for error in errors) == 4
    assert typical_for(models) == "PC-ODE"
    assert typical_for({"mine": None, "RNN": None}) == "mine"


def test_examples_are_the_first_candidates() -> None:
    first, second = make_examples("lines", {}, 2)
    assert first.values[0, 1] != second.values[0, 1]
    with pytest.raises(InvalidInput, match=f"from 1 to {CANDIDATES}"):
        make_examples("lines", {}, 0)


def test_a_cut_example_has_only_what_was_by_then() -> None:
    whole = make_example("billiards1d", {})
    later = whole.moments[(CONTEXT - 1) * FINE :]
    knots = later[:: 2 * FINE]
    values = np.stack([later, 2 * later], axis=-1)
    whole = replace(whole, predictions={"mine": Prediction(later, values, knots)})
    early, late = whole.until(2 * whole.spacing), whole.until(whole.times[6] + 1e-12)
    assert len(early.times) == 3
    assert [len(part) for part in vars(early.predictions["mine"]).values()] == [0, 0, 0]
    assert (len(late.times), len(late.moments), len(late.track)) == (7, 6 * FINE + 1, 6 * FINE + 1)
    assert late.spacing == pytest.approx(whole.spacing)
    cut = late.predictions["mine"]
    assert cut.times[-1] == late.moments[-1]
    np.testing.assert_array_equal(cut.knots, knots[:2])
    np.testing.assert_allclose(cut.at(knots[:2]), np.stack([knots[:2], 2 * knots[:2]], axis=-1))
    happened = whole.events.times
    np.testing.assert_array_equal(late.events.times, happened[happened <= late.times[-1]])
    assert len(early.events) < len(happened)


def test_rows_are_different_trajectories() -> None:
    first, second = (make_example("circles", {}, row).values for row in (0, 1))
    assert np.abs(first - second).max() > 0.1
