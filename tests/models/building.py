"""Small models for tests, and how closely they agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from helpers import PAPER
from skipstone import PCODE

OPTIONS = {PCODE: PAPER}


def build(kind: Any, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    return kind.from_config({"dim": 2, "hidden": 8, **OPTIONS.get(kind, {}), **options}).double()


def close(one: Tensor, other: Tensor, within: float = 1e-10) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=within)
