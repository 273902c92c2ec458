"""Checks of arguments: each says the rule and what arrived."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from skipstone.errors import (
    LARGEST,
    InvalidInput,
    as_plain,
    require_choice,
    require_flag,
    require_function,
    require_kind,
    require_number,
    require_seed,
    shortened,
)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (1, {}),
        (0.5, {"least": 0.5}),
        (np.float32(0.5), {"above": 0, "below": 1}),
        (np.int64(3), {"least": 3, "most": 3, "whole": True}),
        (10**300, {"least": 0}),
        (LARGEST, {"whole": True}),
    ],
)
def test_numbers_of_python_and_numpy_count(value: Any, bounds: dict[str, Any]) -> None:
    require_number("n", value, **bounds)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.longdouble(2), 2.0),
        (np.bool_(True), True),
        (True, True),
        ("3", "3"),
        (None, None),
    ],
)
def test_numbers_of_numpy_become_plain_ones(value: Any, plain: Any) -> None:
    assert type(as_plain(value)) is type(plain)
    assert as_plain(value) == plain


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (True, {}, "n must be a number; got True."),
        (np.bool_(True), {"whole": True}, "n must be a whole number; got"),
        ("3", {}, "n must be a number; got '3'."),
        (None, {"whole": True}, "n must be a whole number; got None."),
        (2.5, {"whole": True}, "n must be a whole number; got 2.5."),
        (math.nan, {}, "n must be a finite number; got nan."),
        (np.inf, {"least": 0}, "n must be a finite number; got inf."),
        (0, {"least": 1}, "n must be at least 1; got 0."),
        (0, {"above": 0}, "n must be above 0; got 0."),
        (1, {"least": 0, "below": 1}, "n must be at least 0 and below 1; got 1."),
        (3, {"most": 2}, "n must be at most 2; got 3."),
        (10**400, {}, "n must be a finite number; got a number of about 400 digits."),
        (10**400, {"whole": True}, "n must be a finite number; got a number of about 400 digits."),
        (LARGEST + 1, {"whole": True}, "n must be below 2**63; got 9223372036854775808."),
        ("x" * 100, {}, "n must be a number; got 'xxx"),
    ],
)
def test_what_is_no_number_or_out_of_bounds(
    value: Any, bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        require_number("n", value, **bounds)


@pytest.mark.parametrize("value", [-1, 1.0, True, None, LARGEST + 1])
def test_seeds_are_whole_numbers(value: Any) -> None:
    with pytest.raises(InvalidInput, match="seed must be a whole number, zero or more"):
        require_seed(value)
    require_seed(np.int64(3))
    require_seed(LARGEST)


@pytest.mark.parametrize("value", ["no", 0, None, 1.0])
def test_flags_are_not_guessed(value: Any) -> None:
    with pytest.raises(InvalidInput, match="n must be True or False"):
        require_flag("n", value)
    require_flag("n", np.bool_(False))
    require_flag("n", True)


def test_what_is_of_another_kind_is_named() -> None:
    require_kind("n must be a text", "x", str)
    with pytest.raises(InvalidInput, match=r"^n must be a text; got int\. Write it\.$"):
        require_kind("n must be a text", 3, str, "Write it.")
    with pytest.raises(InvalidInput, match=r"^n must be a text; got the class str\.$"):
        require_kind("n must be a text", str, str)


def test_functions_take_what_they_are_given() -> None:
    for good in (lambda a, b: 0, lambda a, b=1: 0, lambda *a: 0, max, print):
        require_function("n must count", good, "a", "b")
    with pytest.raises(InvalidInput, match=r"^n must count, a function of \(a, b\); got 3\.$"):
        require_function("n must count", 3, "a", "b")
    for bad in (lambda a: 0, lambda a, b, c: 0):
        with pytest.raises(InvalidInput, match=r"\(a, b\); got one that cannot be called so: "):
            require_function("n must count", bad, "a", "b")


LONG = {"text": "x" * 10**6, "list": [1.0] * 10**5, "number": 10**5000, "lines": "two\nlines"}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_what_arrived_is_short_and_in_one_line(value: Any) -> None:
    assert len(shortened(value)) <= 60
    assert "\n" not in shortened(value)


def test_a_wrong_choice_names_the_nearest() -> None:
    require_choice("side", "left", ["left", "right"])
    with pytest.raises(InvalidInput, match=r'side must be "left" or "right"; got \'up\'\.$'):
        require_choice("side", "up", ["left", "right"])
    with pytest.raises(InvalidInput, match=r"got 'lefft'\. Did you mean left\?"):
        require_choice("side", "lefft", ["left", "right"])
    with pytest.raises(InvalidInput, match='must be "a", "b" or "c"; got None'):
        require_choice("letter", None, ["a", "b", "c"])
