"""The one exception for input that breaks a rule."""

import math
from typing import Any


class InvalidInput(ValueError):
    """Input that breaks a rule: the message says the rule, what arrived, and the fix."""


def require_number(name: str, value: Any, least: float, whole: bool = False) -> None:
    """Raise unless `value` is a finite number, or a whole one, of at least `least`."""
    kind = "a whole number" if whole else "a finite number"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InvalidInput(f"{name} must be {kind}; got {value!r}.")
    if not (least <= value < math.inf):
        raise InvalidInput(f"{name} must be at least {least}; got {value}.")
