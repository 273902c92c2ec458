"""A diagonal state-space model in the manner of S5 (Smith et al. 2023), for irregular times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.errors import InvalidInput
from skipstone.models.arithmetic import observation_inputs, with_inputs
from skipstone.models.config import ModelConfig
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.intervals import EvenModel
from skipstone.models.typing import (
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
    Inputs,
    State,
)

TIMESCALES = (0.01, 0.3)
"""Range of the units' timescales before training, per unit of time: memories of a few to a few
hundred observations."""


@dataclass(frozen=True, kw_only=True)
class StateSpaceConfig(ModelConfig):
    """Configuration of a `StateSpace`."""

    blocks: int = 2
    """State-space layers, each with a nonlinear one on top."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_size("blocks", 1)
        if self.hidden % 2:
            raise InvalidInput(
                f"hidden must be even, half real and half imaginary; got {self.hidden}."
            )


class StateSpace(EvenModel[StateSpaceConfig]):
    """Layers of linear oscillators that decay and turn with the time between observations.

    Each observation kicks them; in between x' = Λx has an exact solution, whatever the gap. Over a
    whole sequence only a product of numbers is left to do one after the other.
    """

    Config: ClassVar[type[StateSpaceConfig]] = StateSpaceConfig
    title: ClassVar[str] = "state space"

    def __init__(self, config: StateSpaceConfig):
        super().__init__(config)
        self.encoder = encoder_of(config, 1)
        self.blocks: Any = nn.ModuleList(_Block(config.hidden) for _ in range(config.blocks))
        self.decoder = decoder_of(config, 1)

    def initial_state(self, rows: int) -> State:
        """Zero: the oscillators of each layer, then the features that came out on top."""
        width = (len(self.blocks) + 1) * self.config.hidden
        return next(self.parameters()).new_zeros(rows, width)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it."""
        return observation_inputs(values, gaps, self.config)

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The first layer's input, and last the time that the oscillators move on by."""
        elapsed = elapsed[..., None]
        return torch.cat([self.encoder(with_inputs(inputs, controls, elapsed)), elapsed], dim=-1)

    def update(self, state: State, encoded: Encoded) -> State:
        """One observation through all layers."""
        features, elapsed = encoded[:, :-1], encoded[:, -1]
        parts = []
        for block, before in zip(self.blocks, state.split(self.config.hidden, dim=1), strict=False):
            kick = torch.complex(*block.kick(features).chunk(2, dim=1))
            now = torch.complex(*before.chunk(2, dim=1)) * block.passage(elapsed) + kick
            now = torch.cat([now.real, now.imag], dim=1)
            features = block.output(now, features)
            parts.append(now)
        return torch.cat([*parts, features], dim=1)

    def features(self, state: State) -> Float[Tensor, "rows hidden"]:
        """What came out on top."""
        return state[:, -self.config.hidden :]

    def all_features(
        self, encoded: Float[Tensor, "batch time encoded"]
    ) -> Float[Tensor, "batch time hidden"]:
        """Layer by layer, each for all times."""
        features, elapsed = encoded[..., :-1], encoded[..., -1]
        for block in self.blocks:
            kicks = torch.complex(*block.kick(features).chunk(2, dim=2)).unbind(1)
            passages, states = block.passage(elapsed).unbind(1), [kicks[0]]
            for passage, kick in zip(passages[1:], kicks[1:], strict=True):
                states.append(states[-1] * passage + kick)
            moved = torch.stack(states, dim=1)
            features = block.output(torch.cat([moved.real, moved.imag], dim=2), features)
        return features


class _Block(nn.Module):
    """Oscillators, and what is read of them: a gated layer beside a bypass.

    Real and imaginary parts are kept side by side, since optimisers and files know real numbers.
    """

    def __init__(self, hidden: int):
        super().__init__()
        units = hidden // 2
        low, high = (math.log(each) for each in TIMESCALES)
        scale = torch.exp(low + (high - low) * torch.rand(units))
        # As S4D has it: all decay alike but for their timescale, and frequencies are multiples.
        self.log_rate = nn.Parameter(torch.log(0.5 * scale))
        self.frequency = nn.Parameter(math.pi * torch.arange(units) * scale)
        self.norm = nn.LayerNorm(hidden)
        self.enter = nn.Linear(hidden, hidden, bias=False)
        self.leave = nn.Linear(hidden, hidden, bias=False)
        self.direct = nn.Parameter(torch.ones(hidden))
        self.gate = nn.Linear(hidden, 2 * hidden)

    def kick(self, features: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
        """What an observation adds to the oscillators."""
        return self.enter(self.norm(features))

    def passage(self, elapsed: Float[Tensor, "*rows"]) -> Tensor:
        """The complex factor by which some time decays and turns each oscillator."""
        elapsed = elapsed[..., None]
        return torch.polar(torch.exp(-self.log_rate.exp() * elapsed), self.frequency * elapsed)

    def output(
        self, state: Float[Tensor, "*rows hidden"], features: Float[Tensor, "*rows hidden"]
    ) -> Float[Tensor, "*rows hidden"]:
        """The features for the next layer."""
        read = F.gelu(self.leave(state) + self.direct * features)
        return features + F.glu(self.gate(read), dim=-1)
