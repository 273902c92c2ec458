"""The checker of the tests: it spares repeated calls, and nothing else."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

import shape_checks
from helpers import small_pcode


def test_new_shapes_are_checked_after_any_number_of_calls() -> None:
    model, state = small_pcode(0), torch.zeros(3, 8).double()
    for _ in range(3 * shape_checks.ENOUGH):
        model.move(state, torch.zeros(3).double())
    assert max(shape_checks.checks.values()) == shape_checks.ENOUGH
    with pytest.raises(TypeCheckError):
        model.move(state, torch.zeros(4).double())
    with pytest.raises(TypeCheckError):
        model.move(state, lengths=torch.zeros(4).double())


def test_another_test_checks_again() -> None:
    """Also if it runs in the same process as the one before."""
    assert max(shape_checks.checks.values(), default=0) < shape_checks.ENOUGH
    small_pcode(0)
    assert shape_checks.checks
