"""The contract of a model, and what every model does the same way."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from skipstone.errors import InvalidInput
from skipstone.path import Path
from skipstone.sequences import Sequences


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What every model needs to know about its data and its size."""

    dim: int
    """Features of an observation."""

    control: int = 0
    """Control inputs: known, such as actions; fed to the encoder, never predicted."""

    hidden: int = 128
    """Units of the cell and of every layer of encoder and decoder."""

    layers: int = 4
    """Layers of encoder and decoder, first and last included."""

    num_context: int = 4
    """Observations that are read one by one before prediction starts."""

    time_unit: float = 1.0
    """Typical spacing of the training data, the model's unit of time."""

    readout: str = "displacement"
    """`displacement` decodes how far an observation has moved since the last update, exact there;
    `absolute` decodes the observation itself. Coordinates move a little and are best moved. Images
    are best drawn anew: with displacements, whatever was once drawn wrongly would stay."""

    def __post_init__(self) -> None:
        for name, least in (
            ("dim", 1),
            ("control", 0),
            ("hidden", 1),
            ("layers", 2),
            ("num_context", 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name} must be a whole number, at least {least}; got {value}.")
        require_positive("time_unit", self.time_unit)
        if self.readout not in ("displacement", "absolute"):
            raise InvalidInput(
                f'readout must be "displacement" or "absolute"; got {self.readout!r}.'
            )

    @property
    def moves(self) -> bool:
        """Whether what is decoded is a displacement."""
        return self.readout == "displacement"


def require_positive(name: str, value: float) -> None:
    """Raise unless `value` is a finite number above zero."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"{name} must be a positive, finite number; got {value}.")


@dataclass(frozen=True)
class Losses:
    """A training loss and what it is made of."""

    total: Float[Tensor, ""]
    """What to minimise."""

    prediction: Float[Tensor, ""]
    """Mean squared error of the prediction at every observation but the first."""

    step: Float[Tensor, ""]
    """Mean squared error of the predicted step sizes; 0 for models that predict none."""

    errors: Float[Tensor, "batch time"]
    """Squared error at each observation, without gradient; NaN where nothing was predicted."""

    num_steps: int
    """Number of step sizes in `step`: how many segments its mean is over."""

    mean_step: float
    """Mean time between two cell updates after the context, in the model's unit of time; of a
    `PCODE`, as the search would have it."""

    num_updates: int
    """Cell updates of the batch, with those of the context."""

    num_evaluations: int = 0
    """Evaluations of an ODE's right-hand side, each for one sequence."""


_Config = TypeVar("_Config", bound=ModelConfig)
_Model = TypeVar("_Model", bound="Model")


def mean_error(
    batch: Sequences, errors: Float[Tensor, " points"], predicted: Bool[Tensor, "batch time"]
) -> tuple[Float[Tensor, ""], Float[Tensor, "batch time"]]:
    """The mean of errors at the predicted observations, and the errors laid out like the batch."""
    layout = torch.full_like(batch.values[..., 0], torch.nan)
    return errors.mean(), layout.masked_scatter(predicted, errors.detach())


class Model(nn.Module, ABC, Generic[_Config]):
    """A model of sequences: it rolls out a `Path` from a context, and it has a training loss."""

    Config: ClassVar[Any]
    config: _Config

    @classmethod
    def for_data(cls: type[_Model], sequences: Sequences, **options: Any) -> _Model:
        """A model that fits the data: its features, controls and typical spacing."""
        require_sequences(sequences)
        data = {
            "dim": sequences.dim,
            "control": sequences.control_dim,
            "time_unit": sequences.typical_spacing,
        }
        return cls.from_config({**data, **options})

    @classmethod
    def from_config(cls: type[_Model], config: dict[str, Any]) -> _Model:
        """A model from a plain dictionary, such as `dataclasses.asdict(model.config)`."""
        known = [field.name for field in dataclasses.fields(cls.Config)]
        unknown = sorted(set(config) - set(known))
        if unknown:
            raise InvalidInput(
                f"{cls.__name__} has no option {unknown[0]!r}; its options are {', '.join(known)}."
            )
        return cls(cls.Config(**config))

    @abstractmethod
    def __init__(self, config: Any): ...

    @abstractmethod
    def rollout(self, context: Sequences, until: float | Tensor, *, controls: Any = None) -> Path:
        """Predict from the end of a context until a time, one for all rows or one per row.

        `controls` are the known inputs after the context, as a pair of times, `(time,)` or
        `(batch, time)`, and values, `(batch, time, control)`. A control holds until the next
        one; without any, the context's last control holds to the end.
        """

    @abstractmethod
    def loss(
        self, batch: Sequences, *, seen: Float[Tensor, "batch time dim"] | None = None
    ) -> Losses:
        """The training loss of a batch, teacher-forced; `seen` is what the encoder reads of its
        values, if not the values themselves."""

    def prepare(self, batch: Sequences, least: int) -> Sequences:
        """The batch on the model's device and dtype, after checking that it fits the model."""
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

    def clock(self, times: Float[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        """Times since each row's first, in the model's unit, still in double precision."""
        return (times - times[:, :1]) / self.config.time_unit


def require_sequences(given: Any) -> None:
    """Raise unless `given` is `Sequences`."""
    if not isinstance(given, Sequences):
        raise InvalidInput(
            f"data must be Sequences; got {type(given).__name__}. Wrap it: "
            "Sequences.from_array(values, spacing=...) or Sequences.from_lists(values, times)."
        )


def with_inputs(
    values: Float[Tensor, "*rows dim"], *inputs: Float[Tensor, "*rows _"] | None
) -> Float[Tensor, "*rows all"]:
    """Observations joined with their controls and whatever else goes into an encoder."""
    given = [part for part in inputs if part is not None]
    return torch.cat([values, *given], dim=-1) if given else values


def select_rows(
    values: Float[Tensor, "rows width"], index: Int[Tensor, " picked"]
) -> Float[Tensor, "picked width"]:
    """`values[index]`, by the kernel whose gradient is fast."""
    return values.index_select(0, index)


def squared_error(
    predicted: Float[Tensor, "*points dim"], observed: Float[Tensor, "*points dim"]
) -> Float[Tensor, "*points"]:
    """Squared error, averaged over features: the ℓ that the tolerance ε is compared with."""
    return (predicted - observed).square().mean(-1)


def start_error(
    decoded: Float[Tensor, "segments dim"], values: Float[Tensor, "segments dim"], points: int
) -> Float[Tensor, ""]:
    """Error of an absolute readout where segments begin, weighed like any of `points` observations.

    With displacements a segment begins at its observation by construction. An absolute readout
    has to learn to, or nothing would say what it reads before the segment's next observation.
    """
    return squared_error(decoded, values).sum() / points
