"""The closed-form continuous-time network (Hasani et al. 2022), with the cell of ncps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.extras import require_installed
from skipstone.models.arithmetic import observation_inputs, with_inputs
from skipstone.models.config import ModelConfig
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.intervals import EvenModel, updates_in_turn
from skipstone.models.typing import (
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
    Inputs,
    State,
)

NEEDS = ("ncps",)
"""Modules that bring the cell."""


@dataclass(frozen=True, kw_only=True)
class CfCConfig(ModelConfig):
    """Configuration of a `CfC`."""


class CfC(EvenModel[CfCConfig]):
    """A closed-form continuous-time cell: its gate between two candidate states is a function of
    the time since the last update, so nothing has to be integrated."""

    Config: ClassVar[type[CfCConfig]] = CfCConfig
    title: ClassVar[str] = "CfC"
    needs: ClassVar[tuple[str, ...]] = NEEDS

    def __init__(self, config: CfCConfig):
        super().__init__(config)
        self.encoder = encoder_of(config, 1)
        self.cell = _cell(config.hidden)
        self.decoder = decoder_of(config, 1)

    def initial_state(self, rows: int) -> State:
        """Zero."""
        return self.cell.ff1.weight.new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it."""
        return observation_inputs(values, gaps, self.config)

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input, and last the time that its gate is a function of."""
        elapsed = elapsed[..., None]
        return torch.cat([self.encoder(with_inputs(inputs, controls, elapsed)), elapsed], dim=-1)

    def update(self, state: State, encoded: Encoded) -> State:
        """The cell update."""
        return self.cell(encoded[:, :-1], state, encoded[:, -1:])[0]

    def features(self, state: State) -> Float[Tensor, "rows hidden"]:
        """All of it."""
        return state

    def all_features(
        self, encoded: Float[Tensor, "batch time encoded"]
    ) -> Float[Tensor, "batch time hidden"]:
        """Update by update."""
        return updates_in_turn(self.update, self.initial_state(len(encoded)), encoded)


def _cell(hidden: int) -> Any:
    require_installed(*NEEDS)
    from ncps.torch import CfCCell

    return CfCCell(hidden, hidden, backbone_units=hidden)
