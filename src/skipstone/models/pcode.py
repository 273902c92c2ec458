"""The piecewise-constant neural ODE: straight lines in latent space, joined by cell updates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from skipstone.errors import InvalidInput, require_number
from skipstone.models.base import (
    Losses,
    Model,
    ModelConfig,
    mean_error,
    require_positive,
    select_rows,
    squared_error,
    start_error,
    with_inputs,
)
from skipstone.models.networks import ResidualMLP
from skipstone.models.search import Knots, LookAhead, Planned, Stops, walk
from skipstone.models.stepping import roll_out
from skipstone.models.targets import Targets
from skipstone.path import Path
from skipstone.sequences import Sequences

STEP_LOSS_WEIGHTS = {"difference": 1e-5, "ratio": 2e-4}
"""Weights of the step-size losses beside the prediction loss; the first is the paper's (section 4).
The second was the better of two in short runs."""

SHORT = 0.5
"""Predicted step, in the model's unit of time, below which a logarithm goes on as a straight line:
an untrained layer may predict anything."""

OVERSHOOT_CAP = 1e-3
"""Squared error beyond which an overshooting line is left alone: there a true event ended it."""


READS = ("values", "motion")
"""What an encoder can be shown at an update."""

CHORD = (0.1, 1.0)
"""Shortest and longest stretch, in the model's unit of time, over which a rollout takes the rate of
change at a segment's end: one typical observation, or what there is of the segment. In training
the shortest one bounds rates between observations that are close together."""


@dataclass(frozen=True, kw_only=True)
class PCODEConfig(ModelConfig):
    """Configuration of a `PCODE`."""

    min_step: float = 1.0
    """Shortest step, in the model's unit of time: with 1, one typical observation interval. For
    data that are observed more often than something can happen, a longer one bounds the cost."""

    max_step: float = 100.0
    """Longest step, in the model's unit of time. A bound on trust: no step can be longer than
    the sequences it was trained on, so set it near their length."""

    velocity_scale: float = 0.2
    """Latent velocity for a cell output of 1. A cell's output lies in [-1, 1], so this and the
    longest step bound how far a segment can move; 0.2 is the authors' value."""

    reads: str = "values"
    """What the encoder is shown at an update: `values`, the observation there, as in the paper; or
    `motion`, also how fast observations were changing on the way there, per shortest step. Between
    two updates a model that skips sees nothing: how things move, after a collision say, it then has
    to work out by one step of its cell, where an RNN looks at the last two observations. In
    training the rate is that since the observation before, in a rollout that of the path over the
    last unit of time: the more regular the data, the more alike they are."""

    step_layers: int = 1
    """Layers of what predicts the length of a step from the state: 1, a linear one, as in the
    paper, or more, for a residual MLP. When a line will break, at the next collision say, is not a
    linear matter."""

    whole_steps: bool = False
    """Whether a rollout rounds its steps to whole units of time. Lines are trained at observations:
    coordinates between two of them are in between, but an image need not be, and what is decoded
    at a knot is what the encoder reads. For images on a regular grid, choose True."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % 2:
            raise InvalidInput(
                f"hidden must be even, half position and half velocity; got {self.hidden}."
            )
        require_number("step_layers", self.step_layers, 1, whole=True)
        for name in ("min_step", "max_step", "velocity_scale"):
            require_positive(name, getattr(self, name))
        if self.reads not in READS:
            raise InvalidInput(f"reads must be one of {', '.join(READS)}; got {self.reads!r}.")
        if self.max_step < self.min_step:
            raise InvalidInput(
                f"max_step must not be below min_step; got {self.max_step} < {self.min_step}."
            )


BLOCK = 4096
"""Points that are decoded together: what is computed on the way should stay in the cache."""


class Lines(NamedTuple):
    """Segments of a `PCODE`, with the decoder's first layer already applied.

    That layer is affine and the latent state moves on a straight line, so its output does too:
    `first + slope·s` at offset s. What the rest of the decoder makes of it, and the origin, add up
    to the prediction.
    """

    origin: Float[Tensor, "lines dim"]
    """Observation at the start less what is decoded there; zero for the absolute readout."""

    first: Float[Tensor, "lines hidden"]
    """First layer's output at the start."""

    slope: Float[Tensor, "lines hidden"]
    """Its change per unit of time."""


class Stretches(NamedTuple):
    """Lines of a rollout, which end somewhere."""

    origin: Float[Tensor, "lines dim"]
    first: Float[Tensor, "lines hidden"]
    slope: Float[Tensor, "lines hidden"]
    end: Float[Tensor, "lines dim"]
    """Prediction at the end."""
    rate: Float[Tensor, "lines rate"]
    """How fast predictions change there, per shortest step; of no width if nobody reads it."""


class PCODE(Model[PCODEConfig]):
    """Piecewise-constant neural ODE.

    The state is [position, velocity]. Between updates the position moves with constant velocity,
    so the latent state is exact at any time; at an update a GRU cell sets both anew and says how
    long the next segment lasts.
    """

    Config: ClassVar[type[PCODEConfig]] = PCODEConfig

    def __init__(self, config: PCODEConfig):
        nn.Module.__init__(self)
        self.config = config
        hidden, layers = config.hidden, config.layers
        shown = config.dim * (2 if config.reads == "motion" else 1) + config.control
        self.encoder = ResidualMLP(shown, hidden, hidden, layers)
        self.cell = nn.GRUCell(hidden, hidden)
        # A displacement is a difference of two readings, from which a bias would cancel.
        bias = not config.moves
        self.decoder = ResidualMLP(hidden, hidden, config.dim, layers, output_bias=bias)
        self.step_size = (
            nn.Linear(hidden, 1)
            if config.step_layers == 1
            else ResidualMLP(hidden, hidden, 1, config.step_layers)
        )

    @property
    def min_step(self) -> float:
        """The shortest step, in the model's unit of time."""
        return self.config.min_step

    # One step: the arithmetic of section 2.

    def initial_state(self, rows: int) -> Float[Tensor, "rows state"]:
        """Position and velocity zero."""
        return self.cell.weight_hh.new_zeros(rows, self.config.hidden)

    def readings(
        self, values: Float[Tensor, "batch time dim"], gaps: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time reading"]:
        """What the encoder is shown of observations that follow each other after these gaps: with
        `reads="motion"` also their rates of change since the one before, zero for the first, per
        shortest step."""
        if self.config.reads == "values":
            return values
        # Padding has no gap, and no rate. Observations that are close together would have any.
        gaps = gaps[:, 1:, None]
        chords = torch.where(gaps > 0, gaps.clamp(min=CHORD[0]), torch.inf)
        rates = values.diff(dim=1) * (self.min_step / chords)
        return torch.cat([values, F.pad(rates, (0, 0, 1, 0))], dim=-1)

    def encode(
        self,
        readings: Float[Tensor, "*rows reading"],
        controls: Float[Tensor, "*rows control"] | None,
        elapsed: Float[Tensor, "*rows"],
    ) -> Float[Tensor, "*rows encoded"]:
        """What the cell reads; the time elapsed is in the state already, which has moved by it."""
        return self.encoder(with_inputs(readings, controls))

    def update(
        self, state: Float[Tensor, "rows state"], encoded: Float[Tensor, "rows encoded"]
    ) -> Float[Tensor, "rows state"]:
        """The cell update."""
        return self.cell(encoded, state)

    def move(
        self, state: Float[Tensor, "rows state"], lengths: Float[Tensor, " rows"]
    ) -> Float[Tensor, "rows state"]:
        """Move the position along its velocity: one Euler step, exact (equation 5)."""
        position, velocity = state.chunk(2, dim=1)
        moved = position + velocity * (self.config.velocity_scale * lengths[:, None])
        return torch.cat([moved, velocity], dim=1)

    def predict_step(self, state: Float[Tensor, "rows state"]) -> Float[Tensor, " rows"]:
        """Predicted length of a segment, as trained: below `min_step` the LeakyReLU's slope
        keeps the gradient alive, so a rollout bounds it (`bounded_step`)."""
        return self.config.min_step + F.leaky_relu(self.step_size(state)[:, 0])

    def bounded_step(self, state: Float[Tensor, "rows state"]) -> Float[Tensor, " rows"]:
        """Predicted length of a segment, inside `[min_step, max_step]`: time always advances."""
        step = self.predict_step(state).clamp(self.config.min_step, self.config.max_step)
        if not self.config.whole_steps:
            return step
        return step.round().clamp(min=math.ceil(self.config.min_step))

    def segments(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        lengths: Float[Tensor, " rows"],
    ) -> Stretches:
        """Lines, decoded at once wherever the loop has to know them: at their ends, shortly before
        if the encoder reads rates, and at their starts if those count."""
        first, slope = self._directions(state)
        chord = lengths.clamp(*CHORD)
        points = [lengths] if self.config.reads == "values" else [lengths, lengths - chord]
        inputs = [torch.addcmul(first, slope, offset[:, None]) for offset in points]
        inputs += [first] if self.config.moves else []
        decoded = self.decoder.after_first(torch.cat(inputs), overwrite=True).split(len(values))
        origin = values - decoded[-1] if self.config.moves else torch.zeros_like(values)
        rate = values[:, :0]
        if self.config.reads == "motion":
            rate = (decoded[0] - decoded[1]) * (self.min_step / chord)[:, None]
        return Stretches(origin, first, slope, origin + decoded[0], rate)

    def lines(self, state: Float[Tensor, "rows state"], values: Float[Tensor, "rows dim"]) -> Lines:
        """The lines that begin with this state at these values."""
        first, slope = self._directions(state)
        if not self.config.moves:
            return Lines(torch.zeros_like(values), first, slope)
        return Lines(values - self.decoder.after_first(first), first, slope)

    def _directions(self, state: Float[Tensor, "rows state"]) -> tuple[Tensor, Tensor]:
        """The decoder's first layer at the start of lines, and its change along them."""
        half, weight = self.config.hidden // 2, self.decoder.first.weight
        first = F.linear(state, weight, self.decoder.first.bias)
        velocity = self.config.velocity_scale * state[:, half:]
        return first, F.linear(velocity, weight[:, :half])

    def advance(
        self,
        segments: Stretches,
        state: Float[Tensor, "rows state"],
        lengths: Float[Tensor, " rows"],
    ) -> tuple[
        Float[Tensor, "rows dim"], Float[Tensor, "rows reading"], Float[Tensor, "rows state"]
    ]:
        """Prediction, what is read of it, and state at the end of each line."""
        reading = torch.cat([segments.end, segments.rate], dim=1)
        return segments.end, reading, self.move(state, lengths)

    def read(
        self,
        segments: Stretches,
        index: Int[Tensor, "batch time"],
        offsets: Float[Tensor, "batch time"],
    ) -> tuple[Float[Tensor, "batch time dim"], int]:
        """Predictions of a path; nothing is integrated."""
        lines = Lines(segments.origin, segments.first, segments.slope)
        values = self.predict(lines, index.reshape(-1), offsets.reshape(-1))
        return values.reshape(*index.shape, self.config.dim), 0

    def predict(
        self, lines: Lines, index: Int[Tensor, " points"], offsets: Float[Tensor, " points"]
    ) -> Float[Tensor, "points dim"]:
        """Predictions at offsets from the start of some of the lines."""
        decoded = [
            self._decode(Lines(*(select_rows(part, block) for part in lines)), along)
            for block, along in zip(index.split(BLOCK), offsets.split(BLOCK), strict=True)
        ]
        return decoded[0] if len(decoded) == 1 else torch.cat(decoded)

    def along(
        self, lines: Lines, offsets: Float[Tensor, "rows points"]
    ) -> Float[Tensor, "rows points dim"]:
        """Predictions at several offsets from the start of each line."""
        first = torch.addcmul(lines.first[:, None], lines.slope[:, None], offsets[..., None])
        return lines.origin[:, None] + self.decoder.after_first(first, overwrite=True)

    def _decode(self, lines: Lines, offsets: Float[Tensor, " lines"]) -> Float[Tensor, "lines dim"]:
        first = torch.addcmul(lines.first, lines.slope, offsets[:, None])
        return lines.origin + self.decoder.after_first(first, overwrite=True)

    # Prediction.

    def rollout(
        self,
        context: Sequences,
        until: float | Tensor,
        *,
        controls: Any = None,
        step: str | float = "predicted",
        max_updates: int | None = None,
    ) -> Path:
        """Predict from the last `num_context` observations until a time.

        `step` is the predicted step size or a constant one, in the data's unit of time. A step
        never crosses a change of the controls, and a predicted one takes in what would be left
        before the end if that is shorter than `min_step`. A row that has used `max_updates`
        updates ends early, and its status says so.
        """
        shortest = 0.0
        if step == "predicted":
            choose, shortest = self.bounded_step, self.config.min_step
        elif isinstance(step, int | float) and math.isfinite(step) and step > 0:
            length = step / self.config.time_unit

            def choose(state: Tensor) -> Tensor:
                return state.new_full((len(state),), length)
        else:
            raise InvalidInput(
                f'step must be "predicted" or a positive length of time; got {step!r}.'
            )
        context = self.prepare(context, self.config.num_context)
        return roll_out(self, context, until, controls, choose, max_updates, shortest)

    # Training: section 3.

    def loss(
        self,
        batch: Sequences,
        tolerance: float | None = None,
        *,
        generator: torch.Generator | None = None,
        explore: float | Bool[Tensor, "batch time"] = 0.01,
        overshoot: float = 0.0,
        own_steps: float | Bool[Tensor, "batch time"] = 0.0,
        step_loss: str = "difference",
        knots: Knots | None = None,
        seen: Float[Tensor, "batch time dim"] | None = None,
    ) -> Losses:
        """Prediction loss at every observation plus the loss of the predicted step sizes; with the
        absolute readout also the error where each segment begins (`start_error`).

        `tolerance` is the squared error, averaged over features, that a segment may reach: what
        it trades is error for length. Start from the training loss of an `RNN` on the same data.
        The knots are searched with it, or given, and are data for the gradient.

        `overshoot` is the weight of an extra error, one observation past the end of each segment.
        It teaches lines to go a little further than they have to, so that the search finds longer
        steps much earlier; see `OVERSHOOT_CAP`. The paper has none.

        `own_steps` is the share of segments that end where the model would have ended them, not
        where the search does; its predicted steps are taught the latter all the same. A model that
        only ever began its segments where the search put them does not know the places where it
        will begin them itself. Instead of a share, it can be what was drawn, like `explore`. The
        paper has none.

        `step_loss` is what the squared error of a predicted step is taken of: its `difference` to
        the length that was found, as in the paper, or the logarithm of their `ratio`. Three
        instead of one is as wrong as thirty instead of ten then, and for a path it is.

        `seen` is what the encoder reads instead of the values, for training with noise.
        """
        batch = self.prepare(batch, max(2, self.config.num_context))
        if step_loss not in STEP_LOSS_WEIGHTS:
            raise InvalidInput(
                f"step_loss must be one of {', '.join(STEP_LOSS_WEIGHTS)}; got {step_loss!r}."
            )
        if knots is None:
            if tolerance is None:
                raise InvalidInput(
                    "a PCODE's loss needs a tolerance (or knots found before); got neither. Start "
                    "from the training loss of an RNN on the same data."
                )
            stops: Stops = LookAhead(self, batch, tolerance, generator, explore, own_steps)
        else:
            stops = Planned(knots, batch)
        walked = walk(self, batch, stops, seen)
        targets = Targets.of(batch, walked, self.clock(batch.times), self.config.num_context)
        states, lines = walked.states, walked.lines
        predicted = self.predict(lines, targets.point_segment, targets.point_offset)
        observed = select_rows(_flat(batch.values), targets.point)
        error = squared_error(predicted, observed)
        prediction, errors = mean_error(batch, error, targets.predicted)
        step = self._step_loss(states, targets, step_loss)
        total = prediction + STEP_LOSS_WEIGHTS[step_loss] * step
        if not self.config.moves:
            values = select_rows(_flat(batch.values), targets.start)
            decoded = self.decoder.after_first(lines.first)
            total = total + start_error(decoded, values, len(targets.point))
        if overshoot and len(targets.past):
            total = total + overshoot * self._overshoot_loss(batch, lines, targets)
        return Losses(
            total=total,
            prediction=prediction,
            step=step,
            errors=errors,
            num_steps=len(targets.free),
            mean_step=float(targets.free_lengths.mean()) if len(targets.free) else 1.0,
            num_updates=len(states),
        )

    def _overshoot_loss(
        self, batch: Sequences, lines: Lines, targets: Targets
    ) -> Float[Tensor, ""]:
        """Capped error one past each segment's end, weighed like any other observation's."""
        predicted = self.predict(lines, targets.past_segment, targets.past_offset)
        error = squared_error(predicted, select_rows(_flat(batch.values), targets.past))
        return error.clamp(max=OVERSHOOT_CAP).sum() / len(targets.point)

    def _step_loss(self, states: Tensor, targets: Targets, kind: str) -> Float[Tensor, ""]:
        """Mean squared error of predicted steps, over the segments whose length was free.

        A segment cut short by the end of its sequence or by a change of control would have gone
        on: its length is a lower bound, and only a prediction below it is an error.
        """
        if len(targets.free) == 0:
            return states.sum() * 0
        step, length = self.predict_step(select_rows(states, targets.free)), targets.free_lengths
        error = step - length if kind == "difference" else _log(step) - _log(length)
        error = torch.where(targets.free_cut, error.clamp(max=0), error)
        return error.square().mean()


def _log(step: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """The logarithm, and below `SHORT` its tangent there, so that it is defined everywhere."""
    return step.clamp(min=SHORT).log() + (step - SHORT).clamp(max=0) / SHORT


def _flat(values: Float[Tensor, "batch time width"]) -> Float[Tensor, "points width"]:
    return values.flatten(0, 1)
