"""`torch.export`: exported steps, queries and whole rollouts are what the model computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

from exportable import SETTINGS, context_of, trained_like
from helpers import linear_pcode, random_batch
from skipstone import ODERNN, PCODE, RNN, Ensemble, InvalidInput, LatentODE, Sequences
from skipstone.integrations.exporting import (
    ContextReader,
    FixedRollout,
    HeldControls,
    Query,
    Stepper,
)
from skipstone.integrations.onnx import example_inputs
from skipstone.models.controls import ControlSignal, Drive

UPDATES = 5
"""Enough for the models here to reach what is asked for."""


def test_held_controls_integrate_like_a_signal() -> None:
    generator = torch.Generator().manual_seed(0)
    times = torch.rand(3, 6, generator=generator, dtype=torch.float64).cumsum(1)
    values = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    signal, rows = ControlSignal(times, values, 2.0), torch.arange(3)
    begin = times[:, 1] + 0.1
    since = (times[:, 2:] - begin[:, None]) / 2.0
    assert bool((since > 0).all())
    ours = HeldControls(values[:, 1], since, values[:, 1:].diff(dim=1))
    offsets = torch.rand(3, 5, generator=generator, dtype=torch.float64) * 3
    torch.testing.assert_close(ours.upto(offsets), Drive(signal, rows, begin).upto(offsets))
    some = torch.tensor([2, 0])
    torch.testing.assert_close(
        ours.pick(some).upto(offsets[some, 0]),
        Drive(signal, rows, begin).pick(some).upto(offsets[some, 0]),
    )


@pytest.mark.parametrize("kind", [PCODE, RNN])
@pytest.mark.parametrize("grad", [pytest.param(True, marks=pytest.mark.slow), False])
def test_each_part_can_be_exported_for_any_number_of_rows(kind: Any, grad: bool) -> None:
    model = trained_like(kind, control=2)
    parts = {"context": ContextReader(model), "step": Stepper(model), "query": Query(model)}
    for name, part in parts.items():
        inputs = example_inputs(model, name, 5)
        rows, queries = Dim("rows"), Dim("queries")
        shapes = {key: {0: queries if key in ("index", "offsets") else rows} for key in inputs}
        with torch.set_grad_enabled(grad):
            program = torch.export.export(part, (), inputs, dynamic_shapes=shapes).module()
        for size in (1, 7):
            inputs = example_inputs(model, name, size)
            torch.testing.assert_close(program(**inputs), part(**inputs), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_fixed_rollout_is_a_rollout(name: str) -> None:
    kind, options = SETTINGS[name]
    model = trained_like(kind, **options)
    context = context_of(model, 4)
    times = context.ends[:, None] + torch.tensor([0.0, 0.7, 2.0, 3.3, 9.1]).double()
    later_times = context.ends[:, None] + 0.45 * torch.arange(1, 6).double()
    later = torch.randn(4, 5, model.config.control)
    controls = (later_times, later) if model.config.control else None
    inputs = [context.times, context.values, times]
    if controls is not None:
        inputs += [context.controls, later_times, later]
    with torch.no_grad():
        path = model.rollout(context, times[:, -1], controls)
        fixed = FixedRollout(model, int(path.num_updates.max()) + 1)
        torch.testing.assert_close(fixed(*inputs), path.evaluate(times), rtol=1e-5, atol=1e-5)


def test_a_fixed_rollout_reads_images_like_a_model() -> None:
    kind, options = SETTINGS["images"]
    model = trained_like(kind, **options)
    pixels = torch.randint(0, 256, (3, 2, 2), dtype=torch.uint8)
    images = Sequences.from_array(pixels)
    with torch.no_grad():
        path = model.rollout(images, 3.0)
        found = FixedRollout(model, int(path.num_updates.max()))(
            images.times, images.values, torch.full((3, 1), 3.0).double()
        )
    torch.testing.assert_close(found, path.evaluate([3.0]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["motion", *(pytest.param(name, marks=pytest.mark.slow) for name in ("driven", "RNN"))]
)
def test_a_fixed_rollout_can_be_exported(name: str) -> None:
    kind, options = SETTINGS[name]
    model = trained_like(kind, **options)
    fixed, rows = FixedRollout(model, UPDATES), Dim("rows")

    def inputs(count: int) -> list[Any]:
        context = context_of(model, count)
        times = context.ends[:, None] + torch.tensor([0.3, 0.9, 1.2]).double()
        given = [context.times, context.values, times]
        if model.config.control:
            given += [context.controls, times[:, :2] + 0.01, torch.randn(count, 2, 2)]
        return given

    shapes = [{0: rows} for _ in inputs(2)]
    shapes += [None] * (6 - len(shapes))
    given = [*inputs(5), None, None, None][:6]
    program = torch.export.export(fixed, tuple(given), dynamic_shapes=tuple(shapes)).module()
    for count in (1, 7):
        given = [*inputs(count), None, None, None][:6]
        expected = fixed(*given)
        assert expected.isfinite().all()
        torch.testing.assert_close(program(*given), expected, rtol=1e-6, atol=1e-6)


def test_times_that_are_not_reached_are_nan() -> None:
    model = linear_pcode(rate=2.0, step=1.5, reads="values").float()
    fixed = FixedRollout(model, 2)
    times, values = torch.zeros(1, 1).double(), torch.ones(1, 1, 1)
    found = fixed(times, values, torch.tensor([[0.0, 1.5, 3.0, 3.1, 9.0]]).double())[0, :, 0]
    torch.testing.assert_close(found[:3], torch.tensor([1.0, 4.0, 7.0]))
    assert found[3:].isnan().all()
    found = fixed(times, values, torch.tensor([[-1.0, 0.0]]).double())[0, :, 0]
    assert found[0].isnan()
    assert found[1] == 1


def test_what_cannot_be_exported_is_refused() -> None:
    data = random_batch(0, [9, 9], dtype=torch.float32)
    rnn = RNN.for_data(data, hidden=4)
    for model, message in [
        (ODERNN.for_data(data, hidden=4), "integrates an ODE"),
        (LatentODE.for_data(data, hidden=4), "a LatentODE does not"),
        (Ensemble([rnn, RNN.for_data(data, hidden=4)]), "one by one"),
        (RNN.for_data(data, hidden=4).double(), "single precision"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            FixedRollout(model, 3)
    with pytest.raises(InvalidInput, match="updates must be at least 1"):
        FixedRollout(rnn, 0)
