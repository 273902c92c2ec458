"""Sequences that break a rule: the rule, what arrived and the fix."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from helpers import random_batch
from skipstone import InvalidInput, Sequences

GOOD = {"times": [[0.0, 1.0, 2.0]] * 2, "values": np.zeros((2, 3, 1))}
NAN = float("nan")


def broken(**changes: object) -> dict[str, object]:
    return {**GOOD, **changes}


def with_bad_value(bad: float) -> np.ndarray:
    values = np.zeros((2, 3, 1))
    values[1, 2] = bad
    return values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            broken(values=with_bad_value(np.inf)),
            "values must be finite; sequence 1 has inf at index 2. Write NaN for what was not",
        ),
        (
            broken(controls=with_bad_value(NAN)),
            "controls must be finite; sequence 1 has nan at index 2. Controls are known at all",
        ),
        (
            broken(controls=with_bad_value(-np.inf)),
            "controls must be finite; sequence 1 has -inf at index 2",
        ),
        (
            broken(times=[[0, 1, 2], [0, NAN, 2]]),
            "times must be finite; sequence 1 has nan at index 1",
        ),
        (
            broken(times=[[0.0, 1, 2], [0.1, 0.5, 0.3]]),
            "times must increase within a sequence; sequence 1 has 0.3 after 0.5 (index 2). "
            "Sort it, or drop duplicates.",
        ),
        (broken(times=[[0.0, 0, 2], [0, 1, 2]]), "sequence 0 has 0 after 0 (index 1)"),
        (
            broken(times=(1.7e9 + np.array([[0.0, 1, 2], [0, 1, 2]])).astype(np.float32)),
            "Times this large must be in double precision from the start",
        ),
        (broken(times=[0.0, 1, 2]), "times must have shape (batch, time) of the values, (2, 3)"),
        (broken(values=np.zeros((2, 3))), "values must have shape (batch, time, dim); got (2, 3)"),
        (broken(values=np.zeros((2, 0, 1))), "there must be at least one sequence"),
        (broken(controls=np.zeros((2, 2, 1))), "controls must have shape (batch, time, control)"),
        (broken(values=np.zeros((2, 3, 1), bool)), "values must be real numbers (or uint8 images"),
        (broken(values=torch.zeros((2, 3, 1)).bool()), "values must be real numbers (or uint8"),
        (broken(values=[[["a"]]]), "images in [0, 255]); got <U1. Convert first, for example"),
        (broken(values=None), "values must be real numbers (or uint8 images in [0, 255]); got obj"),
        (broken(values=np.zeros((2, 3, 1), object)), "values must be real numbers"),
        (broken(values=np.zeros((2, 3, 1), complex)), "values must be real numbers"),
        (broken(values=torch.zeros((2, 3, 1), dtype=torch.complex64)), "must be real numbers"),
        (broken(controls=np.zeros((2, 3, 1), bool)), "controls must be real numbers"),
        (broken(times=None), "times must be real numbers; got object"),
        (broken(times=[["a"] * 3] * 2), "times must be real numbers; got <U1"),
        (broken(mask=[["a"] * 3] * 2), "mask must be boolean; got <U1"),
        (broken(times=np.zeros((2, 3), bool)), "times must be real numbers; got bool"),
        (broken(times=torch.zeros(2, 3, dtype=torch.bool)), "real numbers; got torch.bool"),
        (
            broken(times=np.zeros((2, 3), "datetime64[s]")),
            "times must increase within a sequence; sequence 0 has 0 after 0 (index 1)",
        ),
        (broken(times=np.full((2, 3), "NaT", "datetime64[s]")), "times must be finite; one is NaT"),
        (broken(times=np.zeros((2, 3), "datetime64[ps]")), "a unit from weeks to nanoseconds; got"),
        (broken(times=np.zeros((2, 3), "timedelta64[M]")), "a unit from weeks to nanoseconds; got"),
        (broken(times=[[2**63, 2**63 + 9, 2**64 - 1]] * 2), "integer times must be below 2**63"),
        (broken(times=[[2**70, 2**71, 2**72]] * 2), "integer times must lie within 64 bits"),
        (
            broken(times=1.7e18 + 1e3 * np.arange(6.0).reshape(2, 3)),
            "near 1.7e+18 such floats are 377 apart, and observations 1.02e+03. Give double",
        ),
        (
            broken(times=(1e6 + 0.7 * np.arange(6.0).reshape(2, 3)).astype(np.float32)),
            "near 1000003.5 such floats are 0.119 apart, and observations 0.688. Give double",
        ),
        (broken(dtype=torch.int64), "dtype must be a floating-point dtype of torch, such as"),
        (broken(values=[[[0.0]], [[0.0], [1.0]]]), "values must nest evenly"),
        (broken(mask=np.zeros((2, 3))), "mask must be boolean; got torch.float64"),
        (broken(mask=np.ones((2, 2), bool)), "mask must have the shape of times, (2, 3)"),
        (
            broken(mask=[[True] * 3, [False] * 3]),
            "each sequence must have at least one observation; sequence 1 is empty. Drop it.",
        ),
        (
            broken(mask=[[True] * 3, [True, False, True]]),
            "mask marks padding, so it must be True first and False after; sequence 1 is False at "
            "index 1 and True at index 2",
        ),
    ],
)
def test_bad_input_is_explained(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Sequences(**arguments)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "there must be at least one sequence; got an empty list."),
        (([np.zeros((2, 1)), np.zeros((2, 3))],), "sequence 1 has shape (2, 3) and sequence 0 has"),
        (([np.zeros(4)],), "sequence 0 has shape (4,). Reshape it; a single feature needs"),
        (
            ([np.zeros((2, 1)), np.zeros((0, 1))],),
            "each sequence must have at least one observation; sequence 1 is empty",
        ),
        (
            ([np.zeros((2, 1))], [[0.0, 1.0, 2.0]]),
            "sequence 0 has 2 observations and times of shape (3,) instead of (2,)",
        ),
        (([np.zeros((2, 1))], []), "times must have one entry per sequence; got 0 for 1"),
        (
            ([np.zeros((2, 1))], None, [np.zeros((3, 1))]),
            "sequence 0 has 2 observations and controls of shape (3, 1) instead of (2, 1)",
        ),
        (([[[True], [False]]],), "values of sequence 0 must be real numbers"),
    ],
)
def test_bad_lists_are_explained(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Sequences.from_lists(*arguments)  # pyright: ignore[reportArgumentType]


def test_other_bad_uses_are_explained() -> None:
    batch = random_batch(0, [5, 3])
    for act, message in [
        (lambda: batch.head(4), "at least 4 observations here; sequence 1 has 3. Drop the short"),
        (lambda: batch.tail(4), "sequence 1 has 3"),
        (lambda: batch.head(0), "must be at least 1; got 0"),
        (lambda: batch.split([0.5, 0.4]), "fractions must be positive and sum to 1"),
        (lambda: batch.split([0.9, 0.1]), "leave a part empty"),
        (lambda: batch[[]], "keep at least one sequence"),
        (lambda: batch[torch.tensor([False, False])], "keep at least one sequence"),
        (lambda: batch.select(torch.zeros_like(batch.mask)), "sequence 0 keeps none"),
        (lambda: Sequences.concat([]), "there must be at least one"),
        (lambda: Sequences.concat([batch, random_batch(0, [3], dim=1)]), "must agree"),
        (
            lambda: Sequences.from_array(np.zeros((1, 2, 1)), spacing=0.0),
            "must be above 0; got 0.0",
        ),
        (lambda: Sequences.from_array(np.zeros((2, 1))), "values must have shape"),
        (lambda: batch[True], "sequences are picked by a whole number"),
        (lambda: batch["a"], "sequences are picked by a whole number"),
        (lambda: batch[0.5], "sequences are picked by a whole number"),
        (lambda: batch[[True]], "or a mask of shape (2,); got bool of shape (1,)"),
        (lambda: batch[0.0:1.0], "a slice must be of whole numbers"),
        (lambda: batch.select([[1.0]]), "keep must be boolean"),
        (lambda: batch.select([[True]]), "keep must have the shape of times, (2, 5); got (1, 1)"),
        (lambda: batch.named(features="ab"), "features must be a list of texts; got 'ab'"),
        (lambda: batch.split([0.5, 0.5], seed=-1), "seed must be a whole number"),
        (lambda: batch.windows(2**63 - 1), "the longest stretch without a gap above"),
        (lambda: batch.to(dtype=torch.int32), "dtype must be a floating-point dtype"),
        (lambda: Sequences.from_array(np.zeros((2, 1, 1))).typical_spacing, "at least two obs"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            act()
    with pytest.raises(IndexError, match="sequence 2 of 2"):
        batch[2]
