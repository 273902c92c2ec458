"""The latent ODE: read the context, then integrate one neural ODE with no further update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.models.base import (
    Losses,
    Model,
    mean_error,
    squared_error,
    start_error,
    with_inputs,
)
from skipstone.models.networks import ResidualMLP
from skipstone.models.ode import Dynamics, ODEConfig, integrate
from skipstone.models.stepping import read_context, roll_out
from skipstone.path import Path
from skipstone.sequences import Sequences


@dataclass(frozen=True, kw_only=True)
class LatentODEConfig(ODEConfig):
    """Configuration of a `LatentODE`."""


class Orbits(NamedTuple):
    """Segments of a `LatentODE`: one per trajectory, integrated when it is read."""

    values: Float[Tensor, "orbits dim"]
    state: Float[Tensor, "orbits state"]


class LatentODE(Model[LatentODEConfig]):
    """A GRU reads the context; from its state one neural ODE is integrated to all times.

    Nothing is read after the context, so later controls cannot reach the prediction.
    """

    Config: ClassVar[type[LatentODEConfig]] = LatentODEConfig

    def __init__(self, config: LatentODEConfig):
        nn.Module.__init__(self)
        self.config = config
        hidden, layers = config.hidden, config.layers
        self.encoder = ResidualMLP(config.dim + config.control + 1, hidden, hidden, layers)
        self.cell = nn.GRUCell(hidden, hidden)
        self.dynamics = Dynamics(hidden)
        # A displacement is a difference of two readings, from which a bias would cancel.
        bias = not config.moves
        self.decoder = ResidualMLP(hidden, hidden, config.dim, layers, output_bias=bias)

    def initial_state(self, rows: int) -> Float[Tensor, "rows state"]:
        """Zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def readings(
        self, values: Float[Tensor, "batch time dim"], gaps: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time dim"]:
        """The encoder is shown every observation, as it is."""
        return values

    def encode(
        self,
        readings: Float[Tensor, "*rows dim"],
        controls: Float[Tensor, "*rows control"] | None,
        elapsed: Float[Tensor, "*rows"],
    ) -> Float[Tensor, "*rows encoded"]:
        """What the cell reads of an observation of the context."""
        return self.encoder(with_inputs(readings, controls, elapsed[..., None]))

    def update(
        self, state: Float[Tensor, "rows state"], encoded: Float[Tensor, "rows encoded"]
    ) -> Float[Tensor, "rows state"]:
        """The cell update."""
        return self.cell(encoded, state)

    def move(
        self, state: Float[Tensor, "rows state"], lengths: Float[Tensor, " rows"]
    ) -> Float[Tensor, "rows state"]:
        """Nothing changes while the context is read."""
        return state

    def segments(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Orbits:
        """Keep where the integration begins."""
        return Orbits(values, state)

    def advance(
        self,
        segments: Orbits,
        state: Float[Tensor, "rows state"],
        lengths: Float[Tensor, " rows"],
    ) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows dim"], Float[Tensor, "rows state"]]:
        """Never reached: the one segment lasts to the end."""
        raise AssertionError("a LatentODE has no update after its context")

    def read(
        self,
        segments: Orbits,
        index: Int[Tensor, "batch time"],
        offsets: Float[Tensor, "batch time"],
    ) -> tuple[Float[Tensor, "batch time dim"], Int[Tensor, " batch"]]:
        """Predictions of a path, by one integration through all times asked for, in order."""
        ordered, order = offsets.sort(dim=1)
        predicted, calls = self._predict(segments, ordered)
        back = order.argsort(dim=1)[..., None].expand(predicted.shape)
        return predicted.gather(1, back), torch.full_like(index.sum(1), calls)

    def _predict(
        self, orbits: Orbits, offsets: Float[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch time dim"], int]:
        states, calls = integrate(self.dynamics, orbits.state, offsets, self.config)
        decoded = self.decoder(states)
        if self.config.moves:
            decoded = orbits.values[:, None] + decoded - self.decoder(orbits.state)[:, None]
        return decoded, calls

    def rollout(self, context: Sequences, until: float | Tensor, *, controls: Any = None) -> Path:
        """Predict from the last `num_context` observations; the integration waits for queries."""
        context = self.prepare(context, self.config.num_context)

        def to_the_end(state: Tensor) -> Tensor:
            return torch.full_like(state[:, 0], torch.inf)

        return roll_out(self, context, until, None, to_the_end)

    def loss(
        self, batch: Sequences, *, seen: Float[Tensor, "batch time dim"] | None = None
    ) -> Losses:
        """Error at every observation after the context; with the absolute readout also the error
        where the integration begins (`start_error`).

        `seen` is what the encoder reads instead of the values, for training with noise.
        """
        count = self.config.num_context
        batch = self.prepare(batch, count + 1)
        seen = None if seen is None else seen[:, :count]
        state = read_context(self, batch.head(count), seen)
        orbits = Orbits(batch.values[:, count - 1], state)
        offsets = (batch.times[:, count:] - batch.times[:, count - 1, None]).div(
            self.config.time_unit
        )
        predicted, calls = self._predict(orbits, offsets.to(batch.values.dtype))
        valid = batch.mask[:, count:]
        wanted = torch.nn.functional.pad(valid, (count, 0))
        error = squared_error(predicted, batch.values[:, count:])[valid]
        prediction, errors = mean_error(batch, error, wanted)
        total = prediction
        if not self.config.moves:
            total = total + start_error(self.decoder(state), orbits.values, len(error))
        return Losses(
            total=total,
            prediction=prediction,
            step=torch.zeros_like(prediction),
            errors=errors,
            num_steps=0,
            mean_step=float(offsets[:, -1].mean()),
            num_updates=len(batch) * count,
            num_evaluations=calls * len(batch),
        )
