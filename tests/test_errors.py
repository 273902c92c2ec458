"""Checks of arguments: each says the rule and what arrived."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from skipstone.errors import (
    LARGEST_SEED,
    InvalidInput,
    require_choice,
    require_number,
    require_seed,
)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (1, {}),
        (0.5, {"least": 0.5}),
        (np.float32(0.5), {"above": 0, "below": 1}),
        (np.int64(3), {"least": 3, "most": 3, "whole": True}),
        (10**400, {"least": 0}),
    ],
)
def test_numbers_of_python_and_numpy_count(value: Any, bounds: dict[str, Any]) -> None:
    require_number("n", value, **bounds)


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
    ],
)
def test_what_is_no_number_or_out_of_bounds(
    value: Any, bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        require_number("n", value, **bounds)


@pytest.mark.parametrize("value", [-1, 1.0, True, None, LARGEST_SEED + 1])
def test_seeds_are_whole_numbers(value: Any) -> None:
    with pytest.raises(InvalidInput, match="seed must be a whole number, zero or more"):
        require_seed(value)
    require_seed(np.int64(3))
    require_seed(LARGEST_SEED)


def test_a_wrong_choice_names_the_nearest() -> None:
    require_choice("side", "left", ["left", "right"])
    with pytest.raises(InvalidInput, match=r'side must be "left" or "right"; got \'up\'\.$'):
        require_choice("side", "up", ["left", "right"])
    with pytest.raises(InvalidInput, match=r"got 'lefft'\. Did you mean left\?"):
        require_choice("side", "lefft", ["left", "right"])
    with pytest.raises(InvalidInput, match='must be "a", "b" or "c"; got None'):
        require_choice("letter", None, ["a", "b", "c"])
