"""The piecewise-constant neural ODE: straight lines in latent space, joined by cell updates."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.models import fast
from skipstone.models.arithmetic import CHORD, observation_inputs, select_rows, with_inputs
from skipstone.models.base import SteppingModel
from skipstone.models.controls import Drive
from skipstone.models.images import decoder_of, encoder_of
from skipstone.models.learning import Draws, Losses
from skipstone.models.networks import ResidualMLP
from skipstone.models.pcode_config import PCODEConfig
from skipstone.models.typing import (
    BatchIndex,
    BatchTimes,
    BatchValues,
    Controls,
    Elapsed,
    Encoded,
    Inputs,
    Lengths,
    State,
    Values,
)
from skipstone.sequences import Sequences

TOLERANCE_GAIN = 0.03
"""How fast the tolerance follows a target step: its change per training step, as a share, for a
mean step that is off by a factor e."""

BLOCK = 4096
"""Points that are decoded together: intermediate results should stay in the cache."""


class Lines(NamedTuple):
    """Latent lines, with the decoder's first layer already applied.

    That layer is affine and the latent state moves on a straight line, so its output does too:
    `first + slope·s` at offset s. The rest of the decoder makes the prediction of it.
    """

    values: Float[Tensor, "lines dim"]
    """Observation at the start."""

    first: Float[Tensor, "lines hidden"]
    """First layer's output at the start."""

    slope: Float[Tensor, "lines hidden"]
    """Its change per unit of time."""


class PCODESegments(NamedTuple):
    """Rollout segments: a line, with its decoded origin and end."""

    origin: Float[Tensor, "segments dim"]
    """What to add to what is decoded along the line."""

    first: Float[Tensor, "segments hidden"]
    slope: Float[Tensor, "segments hidden"]
    """As in `Lines`."""

    end: Float[Tensor, "segments dim"]
    """Prediction at the end."""

    rate: Float[Tensor, "segments rate"]
    """Rate of change there, per shortest step. Empty unless `reads="motion"`."""


class PCODE(SteppingModel[PCODEConfig]):
    """Piecewise-constant neural ODE.

    The state is [position, velocity]. Between updates the position moves with constant velocity, so
    the latent state is exact at any time. At an update a GRU cell sets both anew and says how long
    the next segment lasts.
    """

    Config: ClassVar[type[PCODEConfig]] = PCODEConfig
    title: ClassVar[str] = "PC-ODE"
    takes_missing: ClassVar[bool] = True
    chooses_steps: ClassVar[bool] = True

    found_tolerance: Tensor
    """Tolerance as a target step has it so far."""

    def __init__(self, config: PCODEConfig):
        super().__init__(config)
        hidden, activation = config.hidden, config.activation
        self.min_step = config.min_step
        self.encoder = encoder_of(config)
        self.cell = nn.GRUCell(hidden, hidden)
        # A displacement is a difference of two decodings, from which a bias would cancel.
        self.decoder = decoder_of(config, output_bias=not config.moves)
        self.step_size = (
            nn.Linear(hidden, 1)
            if config.step_layers == 1
            else ResidualMLP(hidden, hidden, 1, config.step_layers, activation=activation)
        )
        self.crosses_controls = config.control > 0 and config.control_effect == "drive"
        if self.crosses_controls:
            # Rows of the first half drive the position, the others the velocity.
            self.drive = nn.Parameter(torch.zeros(hidden, config.control))
        if config.target_step is not None:
            start = torch.tensor(config.anneal_from, dtype=torch.float64)
            self.register_buffer("found_tolerance", start)

    # One step: the arithmetic of section 2.

    def initial_state(self, rows: int) -> State:
        """Position and velocity zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """As all models have it; rates are per shortest step."""
        return observation_inputs(values, gaps, self.config, self.min_step)

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input. The time elapsed is in the state already, which has moved by it."""
        return self.encoder(with_inputs(inputs, controls))

    def update(self, state: State, encoded: Encoded) -> State:
        """The cell update."""
        return self.cell(encoded, state)

    def move(
        self,
        state: State,
        lengths: Lengths,
        drive: Drive | None = None,
        segments: PCODESegments | None = None,
    ) -> State:
        """Move the position along its velocity: one Euler step, exact (equation 5). Controls drive
        both: position' = velocity + B₁u and velocity' = B₂u have an exact solution, too."""
        position, velocity = state.chunk(2, dim=1)
        moved = position + velocity * (self.config.velocity_scale * lengths[:, None])
        moved = torch.cat([moved, velocity], dim=1)
        return moved if drive is None else moved + drive.upto(lengths) @ self.drive_effect().T

    def drive_effect(self) -> Float[Tensor, "state integrals"]:
        """What the integrals of the controls add to the state."""
        of_position, of_velocity = self.drive.chunk(2)
        scale = self.config.velocity_scale
        return torch.cat(
            [
                torch.cat([of_position, scale * of_velocity], dim=1),
                torch.cat([of_velocity, torch.zeros_like(of_velocity)], dim=1),
            ]
        )

    def predict_step(self, state: State) -> Lengths:
        """Predicted length of a segment, as trained: below `min_step` the LeakyReLU's slope keeps
        the gradient alive, so a rollout bounds it (`next_steps`)."""
        return self.min_step + F.leaky_relu(self.step_size(state)[:, 0])

    def next_steps(self, state: State) -> Lengths:
        """Predicted length of a segment, inside `[min_step, max_step]`: time always advances."""
        step = self.predict_step(state).clamp(self.min_step, self.config.max_step)
        if not self.config.whole_steps:
            return step
        return step.round().clamp(min=math.ceil(self.min_step))

    def lines(self, state: State, values: Values) -> Lines:
        """The lines that begin with this state at these values."""
        half, weight = self.config.hidden // 2, self.decoder.first.weight
        first = F.linear(state, weight, self.decoder.first.bias)
        velocity = self.config.velocity_scale * state[:, half:]
        return Lines(values, first, F.linear(velocity, weight[:, :half]))

    def along(
        self,
        lines: Lines,
        offsets: Float[Tensor, "rows points"],
        integrals: Float[Tensor, "rows points integrals"] | None = None,
    ) -> Float[Tensor, "rows points dim"]:
        """Predictions at several offsets from the start of each line."""
        if self.config.moves:
            offsets = F.pad(offsets, (1, 0))  # The start is decoded with the rest.
            integrals = None if integrals is None else F.pad(integrals, (0, 0, 1, 0))
        first = torch.addcmul(lines.first[:, None], lines.slope[:, None], offsets[..., None])
        first = self._driven(first, integrals)
        decoded = self.decoder.after_first(first, overwrite=True)
        if not self.config.moves:
            return decoded
        return lines.values[:, None] + (decoded[:, 1:] - decoded[:, :1])

    def _driven(self, first: Tensor, integrals: Tensor | None) -> Tensor:
        """The first layer's output with the controls' effect; it is affine, like the motion."""
        if integrals is None:
            return first
        return first + integrals @ (self.decoder.first.weight @ self.drive_effect()).T

    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None = None
    ) -> tuple[PCODESegments, int]:
        """Lines, decoded in one product at all that the loop has to know: at their ends, shortly
        before if the encoder reads rates, and at their starts if they move."""
        _, first, slope = self.lines(state, values)
        motion, chord = self.config.reads_motion, lengths.clamp(*CHORD)
        points = [lengths, lengths - chord] if motion else [lengths]
        inputs = [torch.addcmul(first, slope, offset[:, None]) for offset in points]
        if drive is not None:
            driven = zip(inputs, points, strict=True)
            inputs = [self._driven(each, drive.upto(offset)) for each, offset in driven]
        inputs += [first] if self.config.moves else []
        decoded = self.decoder.after_first(torch.cat(inputs), overwrite=True).split(len(values))
        origin = values - decoded[-1] if self.config.moves else torch.zeros_like(values)
        rate = values[:, :0]
        if motion:
            rate = (decoded[0] - decoded[1]) * (self.min_step / chord)[:, None]
        return PCODESegments(origin, first, slope, origin + decoded[0], rate), 0

    def ends(self, segments: PCODESegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        parts = [segments.end, segments.rate]
        parts += [torch.ones_like(segments.end)] if self.config.missing else []
        return segments.end, torch.cat(parts, dim=1)

    def predict(
        self,
        segments: PCODESegments,
        index: BatchIndex,
        offsets: BatchTimes,
        drive: Drive | None = None,
    ) -> tuple[BatchValues, int]:
        """Predictions of a path; nothing is integrated."""
        parts = segments.origin, segments.first, segments.slope
        integrals = None if drive is None else drive.upto(offsets).flatten(0, 1)
        points = index.reshape(-1), offsets.reshape(-1)
        values = fast.try_decode(self, parts, *points, integrals)
        if values is None:
            values = self.decode(*parts, *points, integrals)
        return values.reshape(*index.shape, self.config.dim), 0

    def decode(
        self,
        origin: Float[Tensor, "lines dim"],
        first: Float[Tensor, "lines hidden"],
        slope: Float[Tensor, "lines hidden"],
        index: Int[Tensor, " points"],
        offsets: Float[Tensor, " points"],
        integrals: Float[Tensor, "points integrals"] | None,
    ) -> Float[Tensor, "points dim"]:
        """Predictions at offsets from the start of some of the lines."""
        decoded = []
        for begin in range(0, max(1, len(index)), BLOCK):
            part = slice(begin, begin + BLOCK)
            block, along = index[part], offsets[part]
            start, change = select_rows(first, block), select_rows(slope, block)
            inner = torch.addcmul(start, change, along[:, None])
            inner = self._driven(inner, None if integrals is None else integrals[part])
            outer = self.decoder.after_first(inner, overwrite=True)
            decoded.append(select_rows(origin, block) + outer)
        return decoded[0] if len(decoded) == 1 else torch.cat(decoded)

    # Training: section 3.

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """Prediction loss at every observation plus the loss of the predicted step sizes; with the
        absolute readout also the error where each segment begins (`start_error`).

        Segments are searched with the tolerance that `draws.progress` asks for, or given in
        `draws.knots`; either way they are data for the gradient.
        """
        from skipstone.models.pcode_training import training_loss  # It builds on this class.

        return training_loss(self, batch, draws or Draws())

    def tolerance_at(self, draws: Draws) -> float:
        """The tolerance of a training step: annealed, or as the target step has it."""
        if self.config.target_step is None:
            return self.config.tolerance_at(draws.progress)
        return float(self.found_tolerance)

    def adapt(self, losses: Losses) -> None:
        """Lower the tolerance while steps are longer than the target, raise it while shorter."""
        if self.config.target_step is None:
            return
        off = math.log(self.config.target_step / losses.mean_step)
        self.found_tolerance.mul_(math.exp(TOLERANCE_GAIN * min(1.0, max(-1.0, off))))
