"""The exception for invalid input, and the checks of arguments that raise it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

LARGEST_SEED = 2**63 - 1
"""The largest seed that every random number generator here accepts."""


class InvalidInput(ValueError):
    """Input that breaks a rule: the message says the rule, what arrived, and the fix."""


def require_number(
    name: str,
    value: Any,
    least: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
    whole: bool = False,
) -> None:
    """Raise unless `value` is a finite number, or a whole one, within the bounds.

    Numbers of Python and of numpy count; booleans, NaN and infinity do not.
    """
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not is_number:
        kind = "a whole number" if whole else "a number"
        raise InvalidInput(f"{name} must be {kind}; got {value!r}.")
    if not (isinstance(value, Integral) or math.isfinite(value)):
        raise InvalidInput(f"{name} must be a finite number; got {value}.")
    bounds = [
        ("at least", operator.ge, least),
        ("above", operator.gt, above),
        ("below", operator.lt, below),
        ("at most", operator.le, most),
    ]
    if not all(holds(value, bound) for _, holds, bound in bounds if bound is not None):
        rule = " and ".join(f"{words} {bound}" for words, _, bound in bounds if bound is not None)
        raise InvalidInput(f"{name} must be {rule}; got {value}.")


def require_seed(value: Any) -> None:
    """Raise unless `value` is a seed: a whole number, zero or more."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (is_whole and 0 <= int(value) <= LARGEST_SEED):
        raise InvalidInput(
            f"seed must be a whole number, zero or more and at most 2**63 - 1; got {value!r}."
        )


def require_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless `value` is one of `choices`; name the nearest of them."""
    choices = list(choices)
    if value not in choices:
        *others, last = [f'"{choice}"' for choice in choices]
        listed = f"{', '.join(others)} or {last}" if others else last
        near = get_close_matches(str(value), map(str, choices))
        hint = f" {did_you_mean(value, choices)}" if near else ""
        raise InvalidInput(f"{name} must be {listed}; got {value!r}.{hint}")


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """The known names nearest to a wrong one, or all of them."""
    known = [str(name) for name in known]
    near = get_close_matches(str(value), known)
    return f"Did you mean {' or '.join(near)}?" if near else f"Use {', '.join(known)}."
