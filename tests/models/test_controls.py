"""Known inputs after the context."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from helpers import random_batch, small_pcode
from skipstone import InvalidInput, Sequences


def context() -> Sequences:
    """Two sequences that end at time 3 with control 0."""
    values = random_batch(0, [4, 4], irregular=False).values
    return Sequences.from_array(values, controls=torch.zeros(2, 4, 1).double())


def model(**options: Any) -> Any:
    return small_pcode(0, control=1, **options)


def after(*levels: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Controls at times 4, 5, 6, ... for each row."""
    values = torch.tensor(levels)[..., None]
    return torch.arange(4.0, 4.0 + values.shape[1]), values


def test_a_control_holds_until_the_next_and_a_change_is_a_knot() -> None:
    path = model().rollout(
        context(), 9.0, controls=after([0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]), step=100.0
    )
    assert path.knots.tolist() == [[3, 6, float("inf")], [3, 4, 5]]


def test_a_control_matters_only_from_its_time_on() -> None:
    rollout = model().rollout
    calm = rollout(context(), 9.0, controls=after([0.0] * 3, [0.0] * 3), step=1.0)
    pushed = rollout(context(), 9.0, controls=after([0.0, 5.0, 5.0], [0.0] * 3), step=1.0)
    before, later = torch.tensor([3.5, 4.5, 5.0]), torch.tensor([5.5, 7.0, 9.0])
    assert torch.equal(calm.evaluate(before), pushed.evaluate(before))
    difference = (calm.evaluate(later) - pushed.evaluate(later)).abs().amax(dim=(1, 2))
    assert difference[0] > 1e-6
    assert difference[1] == 0


def test_without_later_controls_the_last_one_holds() -> None:
    rollout = model().rollout
    held = rollout(context(), 9.0)
    given = rollout(context(), 9.0, controls=after([0.0], [0.0]))
    at = torch.linspace(3, 9, 12)
    assert torch.equal(held.evaluate(at), given.evaluate(at))


def test_times_of_controls_may_differ_between_rows() -> None:
    times = torch.tensor([[4.5, 6.0], [7.0, 8.0]])
    path = model().rollout(
        context(), 9.0, controls=(times, torch.tensor([[[1.0], [1.0]]] * 2)), step=99.0
    )
    assert path.knots.tolist() == [[3, 4.5], [3, 7]]


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        (5, "controls must be a pair of times and values, values alone"),
        (([4.0], [1.0]), "values of shape (2, 1, 1), or (1, 1) for all rows; got (1,) and (1,)"),
        ((4.0, [[[1.0]]]), "got () and (1, 1, 1)"),
        (
            ([4.0], [[[1.0]], [[float("nan")]]]),
            "controls must be finite; trajectory 1 has NaN or infinity at index 0. Controls are "
            "known at all times",
        ),
        (([float("inf")], [[[1.0]]] * 2), "times of controls must be finite; trajectory 0 has"),
        (([4.0], [[["push"]]] * 2), "controls must be real numbers"),
        (([4.0], [[[True]]] * 2), "controls must be real numbers"),
        (([None], [[[1.0]]] * 2), "times of controls must be real numbers; got object"),
        (([4.0], None), "controls must be real numbers"),
        (([5.0, 4.0], [[[1.0]] * 2] * 2), "times of controls must increase; those of trajectory 0"),
        (
            ([2.0], [[[1.0]]] * 2),
            "later than its last observation, whose control it holds already; trajectory 0 has one "
            "at 2 and its context ends at 3",
        ),
    ],
)
def test_bad_controls_are_explained(controls: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        model().rollout(context(), 9.0, controls=controls)


def test_one_plan_can_be_for_all_rows() -> None:
    plan = [4.0, 6.0], torch.tensor([[1.0], [2.0]])
    shared = model().rollout(context(), 9.0, controls=plan)
    each = model().rollout(context(), 9.0, controls=(plan[0], plan[1].expand(2, -1, -1)))
    assert torch.equal(shared.knots, each.knots)
    assert torch.equal(shared.evaluate(9.0), each.evaluate(9.0))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:, ::-1][:, ::-1],
        lambda a: a[..., ::-1].copy()[..., ::-1],
        lambda a: a[::-1].copy()[::-1],
        lambda a: a.astype(">f8"),
        lambda a: a.astype(np.longdouble),
        lambda a: a.tolist(),
    ],
    ids=["reversed", "at the end", "at the start", "big-endian", "wide", "list"],
)
def test_controls_of_any_layout_are_the_same(change: Any) -> None:
    times, values = np.array([[4.0, 6.0]] * 2), np.array([[[1.0], [2.0]]] * 2)
    plain = model().rollout(context(), 9.0, controls=(times, values))
    same = model().rollout(context(), 9.0, controls=(change(times), change(values)))
    assert torch.equal(plain.evaluate(9.0), same.evaluate(9.0))


def test_stamps_since_1970_are_not_taken_for_model_time() -> None:
    start = 1_700_000_000_000_000_000
    frame = pd.DataFrame({"t": start + np.arange(4), "x": np.arange(4.0), "u": np.zeros(4)})
    counted = Sequences.from_table(frame, time="t", values=["x"], controls=["u"])
    rolled = small_pcode(0, dim=1, control=1)
    stamps, levels = start + np.array([5, 6]), np.ones((2, 1))
    with pytest.raises(InvalidInput, match=r"the first is 1\.7e\+18 and until is 9\. Convert"):
        rolled.rollout(counted, 9.0, (stamps, levels))
    one, other = (
        rolled.rollout(counted, 9.0, (times, levels)).evaluate(9.0)
        for times in (counted.model_times(stamps), np.array([5, 6]))
    )
    assert torch.equal(one, other)


def test_a_function_is_not_asked_for_more_controls_than_fit() -> None:
    with pytest.raises(InvalidInput, match=r"at most 1,000,000 times; until is 1e\+12 units of 1 "):
        model().rollout(context(), 1e12, controls=lambda t: torch.zeros(*t.shape, 1))


def test_controls_for_a_model_without_are_explained() -> None:
    with pytest.raises(InvalidInput, match="controls were given to a model that takes none"):
        small_pcode(0).rollout(
            random_batch(0, [4], irregular=False), 9.0, controls=([5.0], [[[1.0]]])
        )
