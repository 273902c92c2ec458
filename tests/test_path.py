from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import ScriptedPCODE, linear_pcode, random_batch, small_pcode
from skipstone import InvalidInput, Path, Sequences, Status

INF = float("inf")


def one_observation(rows: int, at: float = 0.0, value: float = 0.0) -> Sequences:
    return Sequences(
        torch.full((rows, 1), at, dtype=torch.float64),
        torch.full((rows, 1, 1), value, dtype=torch.float64),
    )


def test_knots_are_where_the_script_puts_them() -> None:
    model = ScriptedPCODE([[2.0, 3.5, 1.0, 9.0], [9.0, 1.0, 1.0, 1.0], [5.0, 5.0, 5.0, 5.0]])
    path = model.rollout(one_observation(3), until=10.0)
    assert path.knots.tolist() == [[0, 2, 5.5, 6.5], [0, 9, INF, INF], [0, 5, INF, INF]]
    assert path.steps.tolist() == [[2, 3.5, 1, 3.5], [9, 1, 0, 0], [5, 5, 0, 0]]
    assert path.num_updates.tolist() == [4, 2, 2]
    assert path.status.tolist() == [Status.REACHED_END] * 3
    assert path.end.tolist() == [10.0] * 3


def test_rows_may_end_at_different_times() -> None:
    model = ScriptedPCODE([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    path = model.rollout(one_observation(2), until=torch.tensor([2.0, 5.0]))
    assert path.knots.tolist() == [[0, INF, INF], [0, 2, 4]]
    assert path.end.tolist() == [2, 5]


def test_max_updates_ends_a_row_early_and_says_so() -> None:
    model = ScriptedPCODE([[2.0, 3.0, 1.0], [20.0, 1.0, 1.0]])
    path = model.rollout(one_observation(2), until=10.0, max_updates=2)
    assert path.status.tolist() == [Status.MAX_UPDATES, Status.REACHED_END]
    assert path.num_updates.tolist() == [2, 1]
    assert path.end.tolist() == [5, 10]
    with pytest.raises(InvalidInput, match=re.escape("trajectory 0 covers [0, 5] and was asked")):
        path.evaluate(6.0)


def test_steps_stay_inside_their_bounds() -> None:
    """A step of zero, of less, or without end would stop time or trust."""
    model = ScriptedPCODE([[-3.0, 0.0, 50.0, 50.0]], min_step=0.5, max_step=4.0)
    path = model.rollout(one_observation(1), until=6.0)
    assert path.knots.tolist() == [[0, 0.5, 1, 5]]


def test_a_remainder_below_the_shortest_step_is_taken_in() -> None:
    model = ScriptedPCODE([[4.0, 5.5, 9.0], [4.0, 4.0, 9.0], [4.0, 5.0, 9.0]])
    path = model.rollout(one_observation(3), until=10.0)
    assert path.knots.tolist() == [[0, 4, INF], [0, 4, 8], [0, 4, 9]]
    assert path.end.tolist() == [10.0] * 3
    assert path.steps[0].tolist() == [4, 6, 0]


def test_constant_steps_ignore_the_prediction() -> None:
    model = ScriptedPCODE([[7.0, 7.0, 7.0, 7.0]], time_unit=0.5)
    path = model.rollout(one_observation(1, at=3.0), until=4.0, step=0.375)
    assert path.knots.tolist() == [[3, 3.375, 3.75]]


def test_linear_model_is_known_in_closed_form() -> None:
    model = linear_pcode(rate=3.0, step=2.5)
    path = model.rollout(one_observation(2, at=1.0, value=10.0), until=20.0)
    assert path.num_updates.tolist() == [8, 8]
    t = torch.linspace(1.0, 20.0, 77, dtype=torch.float64)
    expected = 10.0 + 3.0 * (t - 1.0)
    torch.testing.assert_close(path.evaluate(t)[1, :, 0], expected, rtol=0, atol=1e-12)


def test_queries_may_be_shared_per_row_or_single() -> None:
    path = linear_pcode(1.0, 3.0).rollout(one_observation(2), until=6.0)
    assert path.evaluate(2.0).shape == (2, 1)
    assert path.evaluate(torch.tensor(2.0)).shape == (2, 1)
    assert path.evaluate(torch.tensor([5.0, 1.0, 2.0])).shape == (2, 3, 1)
    own = path.evaluate(torch.tensor([[1.0], [4.0]]))
    assert own[:, 0, 0].tolist() == pytest.approx([1, 4])
    assert len(path) == 2
    assert repr(path) == "Path(batch=2, times=[0, 6], updates per row=2)"


def test_queries_may_be_arrays_or_lists() -> None:
    path = linear_path()
    for times in (np.array([1.0, 4.0]), [1.0, 4.0], (1, 4)):
        assert path.evaluate(times)[1, :, 0].tolist() == pytest.approx([1, 4])
    assert path.evaluate(np.array([[1.0], [4.0]]))[:, 0, 0].tolist() == pytest.approx([1, 4])
    assert path.evaluate(np.float64(2.0)).shape == (2, 1)


def test_time_stamps_are_as_strict_as_other_times() -> None:
    path = linear_pcode(1.0, 3.0).rollout(one_observation(1, at=1.7e9), until=1.7e9 + 6)
    assert path.evaluate(1.7e9 + 4.5).item() == pytest.approx(4.5)
    with pytest.raises(InvalidInput, match=r"covers \[1700000000, 1700000006\] and .*1700000007"):
        path.evaluate(1.7e9 + 7)
    with pytest.raises(InvalidInput, match="in single precision they are up to 203 apart"):
        path.evaluate(torch.tensor([1.7e9 + 4], dtype=torch.float32))


def test_queries_of_single_precision_reach_the_end() -> None:
    path = linear_pcode(1.0, 3.0).rollout(one_observation(1), until=2.2)
    assert path.evaluate(torch.tensor([2.2], dtype=torch.float32)).item() == pytest.approx(2.2)


def test_left_and_right_limits_at_a_knot() -> None:
    """The absolute readout jumps at a knot; the displacement readout is continuous."""
    context = random_batch(0, [4])
    for readout, jumps in (("absolute", True), ("displacement", False)):
        model = small_pcode(3, readout=readout)
        path = model.rollout(context, until=context.ends + 10, step=2.0)
        at = path.knots[:, 1:3]
        left, right = path.evaluate(at), path.evaluate(at, side="right")
        assert torch.equal(left, path.evaluate(at, side="left"))
        assert bool((left - right).abs().max() > 1e-6) is jumps
        torch.testing.assert_close(path.evaluate(at - 1e-7), left, rtol=0, atol=1e-6)
        torch.testing.assert_close(path.evaluate(at + 1e-7), right, rtol=0, atol=1e-6)


@given(st.integers(0, 1000), st.integers(4, 6))
def test_displacement_is_exact_at_the_start(seed: int, length: int) -> None:
    context = random_batch(seed, [length]).tail(4)
    path = small_pcode(seed).rollout(context, until=context.ends + 5)
    torch.testing.assert_close(
        path.evaluate(context.ends[:, None])[:, 0], context.values[:, -1], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("t", [-0.1, 6.1, float("nan"), float("inf")])
def test_outside_is_an_error_with_the_range_in_it(t: float) -> None:
    path = linear_pcode(1.0, 3.0).rollout(one_observation(1), until=6.0)
    with pytest.raises(InvalidInput, match=re.escape(f"covers [0, 6] and was asked for {t:g}")):
        path.evaluate(torch.tensor([1.0, t], dtype=torch.float64))


def linear_path() -> Path:
    return linear_pcode(1.0, 3.0).rollout(one_observation(2), until=6.0)


def test_other_bad_queries_are_explained() -> None:
    path = linear_path()
    with pytest.raises(InvalidInput, match="side must be"):
        path.evaluate(1.0, side="middle")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("shape", [(3, 1), (2, 1, 1)])
def test_queries_of_the_wrong_shape_are_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"batch 2; got shape {shape}")):
        linear_path().evaluate(torch.ones(shape))


def test_queries_that_are_no_numbers_are_explained() -> None:
    with pytest.raises(InvalidInput, match=r"times must be real numbers; got torch\.bool"):
        linear_path().evaluate(torch.tensor([True]))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[::-1][::-1],
        lambda t: t.astype(">f8"),
        lambda t: t.astype(np.longdouble),
        lambda t: np.broadcast_to(t, t.shape),
        lambda t: t.tolist(),
        lambda t: tuple(t),
    ],
    ids=["reversed", "big-endian", "wide", "read-only", "list", "tuple"],
)
def test_times_of_any_layout_are_the_same_times(change: Any) -> None:
    path = linear_path()
    times = np.linspace(path.start[0].item(), path.end[0].item(), 7)
    assert torch.equal(path.evaluate(change(times)), path.evaluate(torch.as_tensor(times)))


@pytest.mark.parametrize("times", ["noon", None, [True], np.array([0.5], dtype=object)])
def test_times_that_are_no_numbers_are_refused(times: Any) -> None:
    with pytest.raises(InvalidInput, match=r"(times|stamps) must be (real )?numbers"):
        linear_path().evaluate(times)
