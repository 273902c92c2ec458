"""Every model of ours keeps the contract, and models that break it are found out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from skipstone import ODERNN, PCODE, RNN, Draws, InvalidInput, LatentODE, Losses, Path, Sequences
from skipstone.testing import LAWS, BrokenContract, check_model

# A solver has one grid for all rows: there a row depends on its company within the solver's error.
WITHIN = {ODERNN: 1e-5, LatentODE: 1e-5}


@pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN, LatentODE])
def test_our_models_keep_the_contract(kind: Any) -> None:
    kept = check_model(kind, within=WITHIN.get(kind, 1e-9), hidden=8)
    assert len(kept) == 2 * len(LAWS)


class Leaky(RNN):
    """Looks at the whole batch."""

    def update(self, state: Tensor, encoded: Tensor) -> Tensor:
        return super().update(state, encoded) + state.mean()


class Dicey(RNN):
    """Not a function of its input."""

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        losses = super().loss(batch, draws)
        return replace(losses, total=losses.total + torch.rand(()))


class Forgetful(RNN):
    """Has weights that nothing trains."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.spare = torch.nn.Linear(2, 2)


class Careless(RNN):
    """Checks nothing."""

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        try:
            return super().prepare(batch, least)
        except InvalidInput:
            return batch.to(dtype=next(self.parameters()).dtype)


class Clairvoyant(RNN):
    """Knows the last control from the start."""

    def rollout(self, context: Sequences, until: Any, controls: Any = None, **options: Any) -> Path:
        if controls is not None:
            controls = (context.ends[:, None] + 0.1, controls[1][:, -1:])
        return super().rollout(context, until, controls, **options)


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Leaky, "must not depend on its company"),
        (Dicey, "the same draws must give the same loss"),
        (Forgetful, "every weight must get a finite gradient from the loss; spare.weight"),
        (Careless, "must be refused with InvalidInput"),
        (Clairvoyant, "a control must not act before its time"),
    ],
)
def test_models_that_break_a_law_are_found_out(kind: Any, law: str) -> None:
    with pytest.raises(BrokenContract, match=law):
        check_model(kind, within=1e-9, hidden=8)
