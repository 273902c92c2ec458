"""The contract that every model keeps, and the arithmetic of one step for models that step.

A new model is a file beside this one and a line in `registry.py`.
"""

from __future__ import annotations

import pathlib
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.calibration import Calibration
from skipstone.checking import as_times
from skipstone.errors import InvalidInput, require_kind
from skipstone.files import as_path
from skipstone.models import limits
from skipstone.models.config import ModelConfig, config_of
from skipstone.models.controls import Drive
from skipstone.models.learning import Draws, Losses
from skipstone.models.scaling import SAMPLE, Scaler, measure_scale
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

    takes_missing: ClassVar[bool] = False
    """Whether it can do without some of the values (NaN); others refuse such data."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Modules of `skipstone.extras` that it cannot do without."""

    config: _Config

    calibration: Calibration | None = None
    """Quantiles of its errors, from `skipstone.calibrate`; its paths need them for intervals."""

    @abstractmethod
    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.values_scaler = Scaler(config.center, config.scale)
        self.controls_scaler = Scaler(config.control_center, config.control_scale)

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
        inputs after the context; a control holds from its time until the next one's, and without
        any the context's last one holds to the end. They are a pair of times, `(time,)` or
        `(batch, time)`, and values, `(batch, time, control)`; or values alone, of one observation
        interval after another, the first one interval after the context; or a function of time
        that gives those values. `step` is a constant time between updates, in the data's
        unit, instead of the model's own choice. A row that has used `max_updates` updates ends
        early, and its status says so; unless told, it may use 10,000, and a warning says so, too.
        """

    @abstractmethod
    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """The training loss of a batch, teacher-forced. Without `draws` nothing is random."""

    def adapt(self, losses: Losses) -> None:
        """Adjust, after each gradient step, what the model is tuned by. Most models have nothing to
        adjust. What changes must be a buffer, so that it is saved with the weights."""

    @classmethod
    def for_data(
        cls: type[_Model], sequences: Sequences, *, scaling: str = "standard", **options: Any
    ) -> _Model:
        """A model that fits the data: its features, controls, spacing and units.

        `scaling` says how the size of each feature and control is measured: `"standard"` by mean
        and standard deviation, `"robust"` by median and quartiles, for data with wild values, or
        `"none"`. `targets` may be names of features. All other options are those of the config.
        """
        require_sequences(sequences)
        sample = sequences[:SAMPLE].to(dtype=torch.float64)
        images = sequences.values.dtype == torch.uint8
        center, scale = measure_scale(sample.values[sample.mask], scaling, joint=images)
        data = {
            "dim": sequences.dim,
            "control": sequences.control_dim,
            "time_unit": sequences.typical_spacing,
            "center": center,
            "scale": scale,
            "missing": not sequences.complete,
        }
        if sample.controls is not None:
            center, scale = measure_scale(sample.controls[sample.mask], scaling, joint=False)
            data |= {"control_center": center, "control_scale": scale}
        if images:
            data["readout"] = "absolute"
        if "targets" in options:
            options["targets"] = sequences.about.feature_indices(options["targets"])
        return cls.from_config({**data, **options})

    @classmethod
    def from_config(cls: type[_Model], config: dict[str, Any]) -> _Model:
        """A model from a plain dictionary, such as `dataclasses.asdict(model.config)`."""
        return cls(cls.config_from(config))

    @classmethod
    def config_from(cls, config: dict[str, Any]) -> Any:
        """The configuration in a plain dictionary, checked; nothing is built."""
        return config_of(cls.Config, cls.__name__, config)

    def save(self, folder: str | pathlib.Path) -> None:
        """Write config and weights into a folder, as plain JSON and safetensors."""
        from skipstone.models.storage import save_model

        save_model(self, as_path("folder", folder))

    @classmethod
    def load(cls: type[_Model], folder: str | pathlib.Path) -> _Model:
        """A model of this class from a folder that `save` or `fit` wrote, in evaluation mode."""
        from skipstone.models.storage import load

        model = load(folder)
        if not isinstance(model, cls):
            raise InvalidInput(
                f"{folder} must hold a {cls.__name__}; it holds a {type(model).__name__}. Use "
                "skipstone.load(folder) for any model."
            )
        return model

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        """The batch as the model computes with it: checked to fit, on its device, in its dtype, and
        scaled. Missing values are still NaN."""
        require_sequences(batch)
        if (batch.dim, batch.control_dim) != (self.config.dim, self.config.control):
            raise InvalidInput(
                f"this model takes {self.config.dim} features and {self.config.control} controls; "
                f"the data have {batch.dim} and {batch.control_dim}. Build the model with "
                f"{type(self).__name__}.for_data(sequences)."
            )
        if not (self.takes_missing and self.config.missing) and not batch.complete:
            name = type(self).__name__
            raise InvalidInput(
                "this model was built for data without missing values; these have some (NaN). "
                + (
                    f"Build it with {name}.for_data(sequences, missing=True); on the command line, "
                    "train with --set missing=true."
                    if self.takes_missing
                    else f"A {name} never takes any: fill them in."
                )
            )
        batch.require_length(least)
        weight = next(self.parameters())
        # Scaled before they are rounded; images are no numbers yet.
        batch = batch if batch.values.is_floating_point() else batch.to(dtype=weight.dtype)
        controls = None if batch.controls is None else self.controls_scaler.into(batch.controls)
        scaled = batch.replaced(self.values_scaler.into(batch.values), controls)
        return scaled.to(weight.device, weight.dtype)

    def prepare_context(self, context: Sequences) -> Sequences:
        """The last `num_context` observations of a context, prepared; a warning if there are more,
        which nobody reads, or if they seem to be in another unit of time."""
        count = self.config.num_context
        prepared = self.prepare(context, count)
        limits.warn_of_unit(prepared, self.config.time_unit, stacklevel=4)
        if prepared.mask.shape[1] == count:
            return prepared
        warnings.warn(
            f"a {type(self).__name__} reads the last {count} observations of a context, as it was "
            f"trained to; this one has {int(prepared.lengths.max())}. Train with a larger "
            f"num_context to use more, or pass context.tail({count}).",
            stacklevel=4,
        )
        return prepared.tail(count)

    def in_data_units(self, values: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows dim"]:
        """Predictions of prepared data, in the units that the data came in."""
        return self.values_scaler.back(values)

    def clock(self, times: BatchTimes) -> BatchTimes:
        """Times since each row's first, in the model's unit, still in double precision."""
        return (times - times[:, :1]) / self.config.time_unit

    def end_times(self, context: Sequences, until: Any) -> Float[Tensor, " batch"]:
        """The end of each row's rollout, checked to lie after its context."""
        if not isinstance(until, Tensor) and is_stamp(until):
            until = context.model_times(until)
        end = as_times(until, "until").to(context.times)
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

    crosses_controls: bool = False
    """Whether controls may change inside a segment, which the loop then tells how they drive it.
    Otherwise every change of control is a knot, and the drive is None."""

    @abstractmethod
    def initial_state(self, rows: int) -> State:
        """The state before the first observation."""

    @abstractmethod
    def encoder_inputs(
        self, values: BatchValues, gaps: BatchTimes
    ) -> Float[Tensor, "batch time input"]:
        """Encoder input for each observation; `gaps` are the times since the one before. NaN where
        it is made of a missing value; the loop fills it in from `ends`."""

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
    def segments(
        self, state: State, values: Values, lengths: Lengths, drive: Drive | None
    ) -> tuple[Any, int]:
        """The segments that begin with this state at these values and last this long, and how
        many evaluations of an ODE's right-hand side each took."""

    @abstractmethod
    def move(
        self, state: State, lengths: Lengths, drive: Drive | None, segments: Any = None
    ) -> State:
        """The state at the end of segments, which are None where nothing else needs them."""

    @abstractmethod
    def ends(self, segments: Any, lengths: Lengths) -> tuple[Values, Inputs]:
        """Prediction at the end of segments, and the encoder input made of it."""

    @abstractmethod
    def predict(
        self, segments: Any, index: BatchIndex, offsets: BatchTimes, drive: Drive | None
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
    wrap = "Sequences.from_array(values, spacing=...) or Sequences.from_lists(values, times)"
    require_kind("data must be Sequences", given, Sequences, f"Wrap it: {wrap}.")


def require_model(given: Any) -> None:
    """Raise unless `given` is a model."""
    require_kind("model must be a Model", given, Model, "Build one: PCODE.for_data(sequences).")
