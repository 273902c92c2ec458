"""Both paths of the PC-ODE, for the tests of what it computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from skipstone.models import fast
from skipstone.models.fast import build

NO_LIBRARY = "the fast path cannot be built here: no C++ compiler, or SKIPSTONE_FAST=0"


@pytest.fixture(scope="module")
def fast_path() -> None:
    """For tests of the fast path alone."""
    if build.library(torch.float64) is None:
        pytest.skip(NO_LIBRARY)


@pytest.fixture(scope="module", params=["readable", "fast"])
def both_paths(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of a module on either path."""
    if request.param == "readable":
        with fast.readable_path():
            yield
        return
    request.getfixturevalue("fast_path")
    yield
