"""The piecewise-constant neural ODE: straight lines in latent space, joined by cell updates."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.models import fast
from skipstone.models.arithmetic import mean_error, select_rows, squared_error, with_inputs
from skipstone.models.base import SteppingModel
from skipstone.models.learning import Draws, Knots, Losses
from skipstone.models.loop import GivenKnots, Round, TeacherForcing, walk
from skipstone.models.networks import ResidualMLP
from skipstone.models.pcode_config import STEP_LOSS_WEIGHTS, PCODEConfig
from skipstone.models.search import Search
from skipstone.models.targets import Fitted, Targets
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

SHORT = 0.5
"""Predicted step, in the model's unit of time, below which a logarithm goes on as a straight line:
an untrained layer may predict anything."""

OVERSHOOT_CAP = 1e-3
"""Squared error beyond which an overshooting line is left alone: there a true event ended it."""

CHORD = (0.1, 1.0)
"""Shortest and longest stretch, in the model's unit of time, over which a rollout takes the rate of
change at a segment's end. In training the shortest one bounds rates between close observations."""

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
    chooses_steps: ClassVar[bool] = True

    def __init__(self, config: PCODEConfig):
        super().__init__(config)
        hidden, layers = config.hidden, config.layers
        inputs = config.dim * (2 if config.reads == "motion" else 1) + config.control
        self.min_step = config.min_step
        self.encoder = ResidualMLP(inputs, hidden, hidden, layers)
        self.cell = nn.GRUCell(hidden, hidden)
        # A displacement is a difference of two decodings, from which a bias would cancel.
        bias = not config.moves
        self.decoder = ResidualMLP(hidden, hidden, config.dim, layers, output_bias=bias)
        self.step_size = (
            nn.Linear(hidden, 1)
            if config.step_layers == 1
            else ResidualMLP(hidden, hidden, 1, config.step_layers)
        )

    # One step: the arithmetic of section 2.

    def initial_state(self, rows: int) -> State:
        """Position and velocity zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """Observations; with `reads="motion"` also their rates of change since the one before, per
        shortest step, zero for the first."""
        if self.config.reads == "values":
            return values
        # Padding has no gap, and no rate. Observations that are close together would have any.
        gaps = gaps[:, 1:, None]
        chords = torch.where(gaps > 0, gaps.clamp(min=CHORD[0]), torch.inf)
        rates = values.diff(dim=1) * (self.min_step / chords)
        return torch.cat([values, F.pad(rates, (0, 0, 1, 0))], dim=-1)

    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input. The time elapsed is in the state already, which has moved by it."""
        return self.encoder(with_inputs(inputs, controls))

    def update(self, state: State, encoded: Encoded) -> State:
        """The cell update."""
        return self.cell(encoded, state)

    def move(self, state: State, lengths: Lengths, segments: PCODESegments | None = None) -> State:
        """Move the position along its velocity: one Euler step, exact (equation 5)."""
        position, velocity = state.chunk(2, dim=1)
        moved = position + velocity * (self.config.velocity_scale * lengths[:, None])
        return torch.cat([moved, velocity], dim=1)

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
        self, lines: Lines, offsets: Float[Tensor, "rows points"]
    ) -> Float[Tensor, "rows points dim"]:
        """Predictions at several offsets from the start of each line."""
        if self.config.moves:
            offsets = F.pad(offsets, (1, 0))  # The start is decoded with the rest.
        first = torch.addcmul(lines.first[:, None], lines.slope[:, None], offsets[..., None])
        decoded = self.decoder.after_first(first, overwrite=True)
        if not self.config.moves:
            return decoded
        return lines.values[:, None] + (decoded[:, 1:] - decoded[:, :1])

    def segments(self, state: State, values: Values, lengths: Lengths) -> tuple[PCODESegments, int]:
        """Lines, decoded in one product at all that the loop has to know: at their ends, shortly
        before if the encoder reads rates, and at their starts if they move."""
        _, first, slope = self.lines(state, values)
        motion, chord = self.config.reads == "motion", lengths.clamp(*CHORD)
        points = [lengths, lengths - chord] if motion else [lengths]
        inputs = [torch.addcmul(first, slope, offset[:, None]) for offset in points]
        inputs += [first] if self.config.moves else []
        decoded = self.decoder.after_first(torch.cat(inputs), overwrite=True).split(len(values))
        origin = values - decoded[-1] if self.config.moves else torch.zeros_like(values)
        rate = values[:, :0]
        if motion:
            rate = (decoded[0] - decoded[1]) * (self.min_step / chord)[:, None]
        return PCODESegments(origin, first, slope, origin + decoded[0], rate), 0

    def ends(self, segments: PCODESegments, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end, and the encoder input made of it."""
        return segments.end, torch.cat([segments.end, segments.rate], dim=1)

    def predict(
        self, segments: PCODESegments, index: BatchIndex, offsets: BatchTimes
    ) -> tuple[BatchValues, int]:
        """Predictions of a path; nothing is integrated."""
        parts = segments.origin, segments.first, segments.slope
        points = index.reshape(-1), offsets.reshape(-1)
        values = fast.try_decode(self, parts, *points)
        values = self._decode(*parts, *points) if values is None else values
        return values.reshape(*index.shape, self.config.dim), 0

    def _decode(
        self,
        origin: Float[Tensor, "lines dim"],
        first: Float[Tensor, "lines hidden"],
        slope: Float[Tensor, "lines hidden"],
        index: Int[Tensor, " points"],
        offsets: Float[Tensor, " points"],
    ) -> Float[Tensor, "points dim"]:
        """Predictions at offsets from the start of some of the lines."""
        decoded = []
        for block, along in zip(index.split(BLOCK), offsets.split(BLOCK), strict=True):
            start, change = select_rows(first, block), select_rows(slope, block)
            inner = torch.addcmul(start, change, along[:, None])
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
        draws = draws or Draws()
        batch = self.prepare(batch, max(2, self.config.num_context))
        fitted = self.fit_lines(batch, draws)
        prediction, errors = mean_error(batch, fitted.error, fitted.predicted)
        step = self._step_loss(fitted)
        weight = STEP_LOSS_WEIGHTS[self.config.step_loss]
        total, points = prediction + weight * step, len(fitted.error)
        if not self.config.moves:
            # Weighed like any other observation.
            total = total + fitted.start.sum() / points
        if self.config.overshoot and len(fitted.past):
            past = fitted.past.clamp(max=OVERSHOOT_CAP).sum() / points
            total = total + self.config.overshoot * past
        return Losses(
            total=total,
            prediction=prediction,
            errors=errors,
            mean_step=float(fitted.length.mean()) if len(fitted.length) else 1.0,
            num_updates=int(fitted.knots.count.sum()),
            step=step,
            step_weight=weight,
            num_steps=len(fitted.length),
        )

    def fit_lines(self, batch: Sequences, draws: Draws) -> Fitted:
        """The segments of a prepared batch and their errors, by the fast path where it applies."""
        scored = batch.mask.clone()
        scored[:, 0] = False
        fitted = fast.try_fit(self, batch, draws, self.config.tolerance_at(draws.progress), scored)
        return self._fit_lines(batch, draws) if fitted is None else fitted

    def _fit_lines(self, batch: Sequences, draws: Draws) -> Fitted:
        rounds, knots, targets = self.walk_data(batch, draws)
        states = torch.cat([each.front.state for each in rounds])
        begins = torch.cat([each.front.values for each in rounds])
        lines = self.lines(states, begins)
        decoded = self.decoder.after_first(lines.first)
        origin = begins - decoded if self.config.moves else torch.zeros_like(begins)
        observed = batch.values.flatten(0, 1)

        def predict(segment: Tensor, offset: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
            predicted = self._decode(origin, lines.first, lines.slope, segment, offset)
            return predicted.detach(), squared_error(predicted, select_rows(observed, place))

        values, error = predict(targets.point_segment, targets.point_offset, targets.point)
        past = error[:0]
        if self.config.overshoot and len(targets.past):
            _, past = predict(targets.past_segment, targets.past_offset, targets.past)
        return Fitted(
            predicted=targets.predicted,
            values=values,
            error=error,
            past=past,
            start=squared_error(decoded, begins),
            step=self.predict_step(select_rows(states, targets.free)),
            length=targets.free_lengths,
            cut=targets.free_cut,
            knots=knots,
        )

    def walk_data(self, batch: Sequences, draws: Draws) -> tuple[list[Round], Knots, Targets]:
        """Walk a prepared batch from knot to knot, teacher-forced: what was computed, where the
        knots are, and which segment predicts what."""
        context = self.config.num_context
        source = TeacherForcing(self, batch, draws.shown(batch.values), range(context))
        clock, given = source.clock, draws.knots
        if given is None:
            policy = search = self._search(batch, draws, clock)
        else:
            policy = GivenKnots(given.at, batch.lengths - 1, clock, batch.values.dtype)
            search = None
        rounds = list(walk(self, source.begin(), policy, source))
        if search is None:
            assert given is not None
            knots, reach = given, None
        else:
            at = torch.zeros_like(batch.mask)
            for front, _, _ in rounds:
                at[front.rows, front.knot] = True
            knots, reach = Knots(at, search.cut), search.reach
        return rounds, knots, Targets.of(batch, rounds, clock, context, reach, knots.cut)

    def _search(self, batch: Sequences, draws: Draws, clock: BatchTimes) -> Search:
        config = self.config
        return Search(
            self,
            batch,
            clock,
            config.tolerance_at(draws.progress),
            config.num_context,
            draws.happens("explore", config.explore, batch),
            draws.happens("own steps", config.own_steps, batch),
        )

    def _step_loss(self, fitted: Fitted) -> Float[Tensor, ""]:
        """Mean squared error of predicted steps, over the segments whose length was free.

        A segment cut short by the end of its sequence or by a change of control would have gone
        on: its length is a lower bound, and only a prediction below it is an error.
        """
        step, length = fitted.step, fitted.length
        if len(step) == 0:
            return fitted.error.sum() * 0
        ratio = self.config.step_loss == "ratio"
        error = _log(step) - _log(length) if ratio else step - length
        error = torch.where(fitted.cut, error.clamp(max=0), error)
        return error.square().mean()


def _log(step: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """The logarithm, and below `SHORT` its tangent there, so that it is defined everywhere."""
    return step.clamp(min=SHORT).log() + (step - SHORT).clamp(max=0) / SHORT


@torch.no_grad()
def find_knots(model: PCODE, batch: Sequences, draws: Draws | None = None) -> Knots:
    """Where a training step on this batch would update the cell: the longest segments whose error
    stays below the model's tolerance."""
    batch = model.prepare(batch, max(2, model.config.num_context))
    return model.fit_lines(batch, draws or Draws()).knots
