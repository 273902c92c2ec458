"""The exception for invalid input, and the checks of arguments that raise it."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Hashable, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

LARGEST = 2**63 - 1
"""The largest whole number that counters and random number generators here can hold."""

_LONGEST_NAME = 200
"""Characters of a wrong name that are compared with the right ones."""


class InvalidInput(ValueError):
    """Input that breaks a rule: the message says the rule, what arrived, and the fix."""


class MissingExtra(InvalidInput, ModuleNotFoundError):
    """Something optional is needed and not installed: the message says how to install it."""


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

    Numbers of Python and of numpy count; booleans, NaN and infinity do not, nor what a double, or
    for a whole number 64 bits, cannot hold.
    """
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not is_number:
        kind = "a whole number" if whole else "a number"
        raise InvalidInput(f"{name} must be {kind}; got {shortened(value)}.")
    if not _is_finite(value):
        raise InvalidInput(f"{name} must be a finite number; got {shortened(value)}.")
    size: Any = value
    if whole and abs(int(size)) > LARGEST:
        raise InvalidInput(f"{name} must be below 2**63; got {shortened(value)}.")
    bounds = [
        ("at least", operator.ge, least),
        ("above", operator.gt, above),
        ("below", operator.lt, below),
        ("at most", operator.le, most),
    ]
    if not all(holds(value, bound) for _, holds, bound in bounds if bound is not None):
        rule = " and ".join(f"{words} {bound}" for words, _, bound in bounds if bound is not None)
        raise InvalidInput(f"{name} must be {rule}; got {value}.")


def as_plain(value: Any) -> Any:
    """A number or a flag of numpy as Python's own, which JSON has; all else as it is."""
    if type(value).__name__ in ("bool", "bool_"):  # As in `require_flag`.
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) and _is_finite(value) else value


def _is_finite(number: Any) -> bool:
    """Whether a double can hold it."""
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def require_flag(name: str, value: Any) -> None:
    """Raise unless `value` is True or False: a text such as "no" would count as True."""
    # By name, since numpy is not loaded for this: it has a class of its own.
    if type(value).__name__ not in ("bool", "bool_"):
        raise InvalidInput(f"{name} must be True or False; got {shortened(value)}.")


def require_kind(rule: str, value: Any, kind: type | tuple[type, ...], fix: str = "") -> None:
    """Raise unless `value` is an instance; `rule` says of what, and `fix` how to get one."""
    if not isinstance(value, kind):
        found = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise InvalidInput(f"{rule}; got {found}.{fix and ' '}{fix}")


def require_function(rule: str, value: Any, *arguments: str) -> None:
    """Raise unless `value` can be called with so many arguments; `rule` begins the message."""
    takes = f"{rule}, a function of ({', '.join(arguments)})"
    if not callable(value):
        raise InvalidInput(f"{takes}; got {shortened(value)}.")
    try:
        inspect.signature(value).bind(*arguments)
    except TypeError as error:
        raise InvalidInput(f"{takes}; got one that cannot be called so: {error}.") from None
    except ValueError:  # Some that are not written in Python do not say what they take.
        return


def require_seed(value: Any) -> None:
    """Raise unless `value` is a seed: a whole number, zero or more."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (is_whole and 0 <= int(value) <= LARGEST):
        raise InvalidInput(
            "seed must be a whole number, zero or more and at most 2**63 - 1; got "
            f"{shortened(value)}."
        )


def printable(text: str) -> str:
    """Text that cannot move the cursor or recolour a terminal: names come from files and tables."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


def shortened(value: Any, most: int = 60) -> str:
    """What arrived, for a message of one line."""
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) > 10**most:
        # Python refuses to write out whole numbers of thousands of digits.
        return f"a number of about {round(int(value).bit_length() * math.log10(2))} digits"
    known = float(value) if isinstance(value, Real) and not isinstance(value, Integral) else value
    text = repr(known).replace("\n", " ")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def require_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless `value` is one of `choices`; name the nearest of them."""
    choices = list(choices)
    if not choices:
        raise InvalidInput(f"{name} can be asked for where there are some; there are none here.")
    # An array is no choice, and cannot be compared with one either.
    if not isinstance(value, Hashable) or value not in choices:
        *others, last = [f'"{choice}"' for choice in choices]
        listed = f"{', '.join(others)} or {last}" if others else last
        near = get_close_matches(str(value)[:_LONGEST_NAME], map(str, choices))
        hint = f" {did_you_mean(value, choices)}" if near else ""
        raise InvalidInput(f"{name} must be {listed}; got {shortened(value)}.{hint}")


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """The known names nearest to a wrong one, or all of them."""
    known = [str(name) for name in known]
    near = get_close_matches(str(value)[:_LONGEST_NAME], known)
    return f"Did you mean {' or '.join(near)}?" if near else f"Use {', '.join(known)}."
