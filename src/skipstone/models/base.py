"""The contract that every model keeps, and the arithmetic of one step for models that step.

A new model is a file beside this one and a line in `registry.py`.
"""

from __future__ import annotations

import dataclasses
import pathlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.calibration import Calibration
from skipstone.errors import InvalidInput, require_choice, require_number
from skipstone.models.learning import Draws, Losses
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
from skipstone.path import Path
from skipstone.registry import Registry
from skipstone.sequences import Sequences
from skipstone.tables.clock import is_stamp

READOUTS = ("displacement", "absolute")
"""What a decoder can predict; see `ModelConfig.readout`."""

VARIANCE_SAMPLE = 1_000
"""Sequences that the variance of a data set is measured on."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What every model knows about its data and its size."""

    dim: int
    """Features of an observation."""

    control: int = 0
    """Control inputs: known in advance, such as actions; fed to the encoder, never predicted."""

    hidden: int = 128
    """Units of the cell and of every layer of encoder and decoder."""

    layers: int = 4
    """Layers of encoder and decoder, first and last included."""

    num_context: int = 4
    """Observations that are read one by one before prediction starts."""

    time_unit: float = 1.0
    """Typical spacing of the training data: the model's unit of time."""

    variance: float = 1.0
    """Variance of the training data, averaged over features: the unit of squared errors."""

    readout: str = "displacement"
    """`displacement` decodes how far an observation has moved since the last update, exact there;
    `absolute` decodes the observation itself. Coordinates are best moved. Images are best drawn
    anew: with displacements, whatever was once drawn wrongly would stay."""

    def __post_init__(self) -> None:
        least = {"dim": 1, "control": 0, "hidden": 1, "layers": 2, "num_context": 1}
        for name, low in least.items():
            require_number(name, getattr(self, name), low, whole=True)
        require_number("time_unit", self.time_unit, above=0)
        require_number("variance", self.variance, above=0)
        require_choice("readout", self.readout, READOUTS)

    @property
    def moves(self) -> bool:
        """Whether the decoder predicts displacements."""
        return self.readout == "displacement"


_Config = TypeVar("_Config", bound=ModelConfig)
_Model = TypeVar("_Model", bound="Model")


class Model(nn.Module, ABC, Generic[_Config]):
    """A model of sequences: it rolls out a `Path` from a context, and it has a training loss.

    Subclass it for a model of your own, or `SteppingModel` for one that moves from update to
    update. `skipstone.testing.check_model` checks that it keeps the contract.
    """

    Config: ClassVar[Any] = ModelConfig
    """The dataclass that configures it."""

    title: ClassVar[str] = ""
    """Its name in tables and figures; the class's name if empty."""

    chooses_steps: ClassVar[bool] = False
    """Whether it decides itself when to update; evaluations then compare it with constant steps."""

    config: _Config

    calibration: Calibration | None = None
    """Quantiles of its errors, from `skipstone.calibrate`; its paths need them for intervals."""

    @abstractmethod
    def __init__(self, config: Any):
        super().__init__()
        self.config = config

    @abstractmethod
    def rollout(
        self,
        context: Sequences,
        until: Any,
        controls: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> Path:
        """Predict from the end of a context until a time, one for all rows or one per row.

        Numbers are model time. A stamp of the context's table, such as a datetime or "2026-06-01",
        is the same moment for all rows.

        The last `num_context` observations of the context are read. `controls` are the known
        inputs after the context, as a pair of times, `(time,)` or `(batch, time)`, and values,
        `(batch, time, control)`. A control holds until the next one; without any, the context's
        last control holds to the end. `step` is a constant time between updates, in the data's
        unit, instead of the model's own choice. A row that has used `max_updates` updates ends
        early, and its status says so.
        """

    @abstractmethod
    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """The training loss of a batch, teacher-forced. Without `draws` nothing is random."""

    @classmethod
    def for_data(cls: type[_Model], sequences: Sequences, **options: Any) -> _Model:
        """A model that fits the data: its features, controls, spacing and variance."""
        require_sequences(sequences)
        sample = sequences[:VARIANCE_SAMPLE].to(dtype=torch.float32)
        variance = float(sample.values[sample.mask].var(0, correction=0).mean())
        data = {
            "dim": sequences.dim,
            "control": sequences.control_dim,
            "time_unit": sequences.typical_spacing,
            # Data that never change have no scale of their own.
            "variance": variance if variance > 0 else 1.0,
        }
        if sequences.values.dtype == torch.uint8:
            data["readout"] = "absolute"
        return cls.from_config({**data, **options})

    @classmethod
    def from_config(cls: type[_Model], config: dict[str, Any]) -> _Model:
        """A model from a plain dictionary, such as `dataclasses.asdict(model.config)`."""
        known = [field.name for field in dataclasses.fields(cls.Config)]
        for name in config:
            require_choice(f"option of {cls.__name__}", name, known)
        return cls(cls.Config(**config))

    def save(self, folder: str | pathlib.Path) -> None:
        """Write config and weights into a folder, as plain JSON and safetensors."""
        from skipstone.models.storage import save_model

        save_model(self, pathlib.Path(folder))

    @classmethod
    def load(cls: type[_Model], folder: str | pathlib.Path) -> _Model:
        """A model of this class from a folder that `save` or `fit` wrote, in evaluation mode."""
        from skipstone.models.storage import load

        model = load(pathlib.Path(folder))
        if not isinstance(model, cls):
            raise InvalidInput(
                f"{folder} must hold a {cls.__name__}; it holds a {type(model).__name__}. Use "
                "skipstone.load(folder) for any model."
            )
        return model

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        """The batch on the model's device and dtype, checked to fit the model."""
        require_sequences(batch)
        if (batch.dim, batch.control_dim) != (self.config.dim, self.config.control):
            raise InvalidInput(
                f"this model takes {self.config.dim} features and {self.config.control} controls; "
                f"the data have {batch.dim} and {batch.control_dim}. Build the model with "
                f"{type(self).__name__}.for_data(sequences)."
            )
        batch.require_length(least)
        weight = next(self.parameters())
        return batch.to(weight.device, weight.dtype)

    def clock(self, times: BatchTimes) -> BatchTimes:
        """Times since each row's first, in the model's unit, still in double precision."""
        return (times - times[:, :1]) / self.config.time_unit

    def end_times(self, context: Sequences, until: Any) -> Float[Tensor, " batch"]:
        """The end of each row's rollout, checked to lie after its context."""
        if not isinstance(until, Tensor) and is_stamp(until):
            until = context.model_times(until)
        end = torch.as_tensor(until, dtype=context.times.dtype, device=context.times.device)
        if end.ndim > 1 or (end.ndim == 1 and len(end) != len(context)):
            raise InvalidInput(
                f"until must be one time, or one per trajectory, shape ({len(context)},); got "
                f"shape {tuple(end.shape)}."
            )
        end = end.expand(len(context)).clone()
        early = (~((end > context.ends) & end.isfinite())).nonzero()
        if len(early):
            row = int(early[0])
            last, wanted = (context.about.moment(row, t[row].item()) for t in (context.ends, end))
            raise InvalidInput(
                f"until must be a finite time after the context; the context of trajectory {row} "
                f"ends at {last} and until is {wanted}."
            )
        return end


class SteppingModel(Model[_Config]):
    """A model that moves from update to update. One step is the arithmetic declared here; the loop
    over time is in `models/loop.py`. Lengths are in the model's unit of time.

    A segment is what a model needs to predict between two updates: a named tuple of tensors with
    one row per segment.
    """

    min_step: float
    """Shortest step. A remainder below it is taken in by the segment before."""

    @abstractmethod
    def initial_state(self, rows: int) -> State:
        """The state before the first observation."""

    @abstractmethod
    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """Encoder input for each observation; `gaps` are the times since the one before."""

    @abstractmethod
    def encode(self, inputs: Inputs, controls: Controls | None, elapsed: Elapsed) -> Encoded:
        """The cell's input at a knot, `elapsed` after the one before."""

    @abstractmethod
    def update(self, state: State, encoded: Encoded) -> State:
        """The cell update at a knot, from the state just before it."""

    @abstractmethod
    def next_steps(self, state: State) -> Lengths:
        """How long the model would wait before its next update."""

    @abstractmethod
    def segments(self, state: State, values: Values, lengths: Lengths) -> tuple[Any, int]:
        """The segments that begin with this state at these values and last this long, and how
        many evaluations of an ODE's right-hand side each took."""

    @abstractmethod
    def move(self, state: State, lengths: Lengths, segments: Any) -> State:
        """The state at the end of segments. `segments` is None where they are not needed
        otherwise, as in a context."""

    @abstractmethod
    def ends(self, segments: Any, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end of segments, and the encoder input made of it."""

    @abstractmethod
    def predict(
        self, segments: Any, index: BatchIndex, offsets: BatchTimes
    ) -> tuple[BatchValues, int | Int[Tensor, " batch"]]:
        """Predictions at offsets from the start of some segments of each row, and how many
        evaluations each row took."""

    def rollout(
        self,
        context: Sequences,
        until: Any,
        controls: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> Path:
        """Step from the end of a context until a time; see `Model.rollout`."""
        from skipstone.models.rollout import roll_out  # It builds on this class.

        path = roll_out(self, context, until, controls, step, max_updates)
        path.calibration = self.calibration
        return path


def is_model(thing: Any) -> bool:
    """Whether a thing is a class of models."""
    return isinstance(thing, type) and issubclass(thing, Model)


# Here, so that whoever has a model class of their own can register it.
MODELS: Registry[type[Model[Any]]] = Registry("model", is_model)
"""Models by the name used on disk and on the command line; ours join in `models/registry.py`."""


def require_sequences(given: Any) -> None:
    """Raise unless `given` is `Sequences`."""
    if not isinstance(given, Sequences):
        raise InvalidInput(
            f"data must be Sequences; got {type(given).__name__}. Wrap it: "
            "Sequences.from_array(values, spacing=...) or Sequences.from_lists(values, times)."
        )
