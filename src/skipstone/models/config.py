"""What every model is configured by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from skipstone.errors import (
    InvalidInput,
    as_plain,
    require_choice,
    require_flag,
    require_kind,
    require_number,
)
from skipstone.models.networks import ACTIVATIONS
from skipstone.models.scaling import as_scale

READOUTS = ("displacement", "absolute")
"""What a decoder can predict; see `ModelConfig.readout`."""

MOST_WEIGHTS = 2**28
"""Weights of one network, about: a gigabyte in single precision."""

MOST_LAYERS = 1_000
"""Layers of one network: each costs time to build, however narrow it is."""

READS = ("values", "motion")
"""Encoder inputs; see `ModelConfig.reads`."""


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

    activation: str = "relu"
    """Between layers: `relu` for motion with kinks, such as collisions; `silu` for smooth motion,
    which it fits up to ten times more closely."""

    num_context: int = 4
    """Observations that are read one by one before prediction starts."""

    time_unit: float = 1.0
    """Typical spacing of the training data: the model's unit of time."""

    center: tuple[float, ...] = (0.0,)
    """Center of each feature, or one for all. Subtracted from values before they are used."""

    scale: tuple[float, ...] = (1.0,)
    """Size of each feature, or one for all. Values are divided by it: the model computes with
    numbers of size one. Losses and tolerances are in these units, predictions in the data's."""

    control_center: tuple[float, ...] = (0.0,)
    """Center of each control."""

    control_scale: tuple[float, ...] = (1.0,)
    """Size of each control."""

    missing: bool = False
    """Whether values may be missing (NaN). The encoder is then told which were observed."""

    targets: tuple[int, ...] = ()
    """Features that the tolerance and reported errors are about, by index; empty for all. The
    others are learned and predicted all the same, as help."""

    readout: str = "displacement"
    """`displacement` decodes how far an observation has moved since the last update, exact there;
    `absolute` decodes the observation itself. Coordinates are best moved. Images are best drawn
    anew: with displacements, whatever was once drawn wrongly would stay."""

    image: tuple[int, ...] = ()
    """Height and width, where features are the pixels of a grey image, row by row: encoder and
    decoder are then convolutional. Empty for everything else, and for images as plain features."""

    reads: str = "motion"
    """Encoder input at an update: `values`, the observation, as in the paper; or `motion`, also its
    rate of change on the way there. A model that skips sees nothing between two updates; without
    the rate it would have to infer how things move after a collision from one observation."""

    def __post_init__(self) -> None:
        for field in fields(self):
            self._set(field.name, as_plain(getattr(self, field.name)))
        for name, low in {"dim": 1, "control": 0, "hidden": 1, "num_context": 1}.items():
            require_number(name, getattr(self, name), low, whole=True)
        self._require_size("layers", 2)
        require_flag("missing", self.missing)
        require_number("time_unit", self.time_unit, above=0)
        require_choice("readout", self.readout, READOUTS)
        require_choice("reads", self.reads, READS)
        require_choice("activation", self.activation, ACTIVATIONS)
        for name, features in (
            ("center", self.dim),
            ("scale", self.dim),
            ("control_center", self.control),
            ("control_scale", self.control),
        ):
            above = 0 if name.endswith("scale") else None
            self._set(name, as_scale(name, getattr(self, name), features, above))
        self._set("image", _as_image(self.image, self.dim))
        self._set("targets", _as_targets(self.targets, self.dim))

    def _require_size(self, layers: str, least: int) -> None:
        """Raise for a network of so many layers that no machine holds it."""
        require_number(layers, getattr(self, layers), least, most=MOST_LAYERS, whole=True)
        depth, width = int(getattr(self, layers)), int(self.hidden)
        weights = width * (width * depth + int(self.dim) + int(self.control))
        if weights > MOST_WEIGHTS:
            raise InvalidInput(
                f"a network must have at most {MOST_WEIGHTS:,} weights; hidden={width} and "
                f"{layers}={depth} make about {weights:,} for {self.dim} features."
            )

    def _set(self, name: str, value: Any) -> None:
        """Of a frozen config. JSON has lists, a config has tuples; JSON has no numbers of numpy."""
        object.__setattr__(self, name, value)

    @property
    def moves(self) -> bool:
        """Whether the decoder predicts displacements."""
        return self.readout == "displacement"

    @property
    def reads_motion(self) -> bool:
        """Whether the encoder reads rates of change."""
        return self.reads == "motion"

    @property
    def encoder_width(self) -> int:
        """Numbers that an encoder is given of an observation and its controls."""
        return self.dim * (1 + self.reads_motion + self.missing) + self.control


def _as_image(image: Any, dim: int) -> tuple[int, ...]:
    if not isinstance(image, list | tuple) or len(image) not in (0, 2):
        raise InvalidInput(f"image must be a height and a width, or empty; got {image!r}.")
    for size in image:
        require_number("image, each size,", size, 1, whole=True)
    if image and image[0] * image[1] != dim:
        raise InvalidInput(
            f"image must have as many pixels as there are features, {dim}; got {image[0]} × "
            f"{image[1]}."
        )
    return tuple(int(size) for size in image)


def _as_targets(targets: Any, dim: int) -> tuple[int, ...]:
    if not isinstance(targets, list | tuple):
        raise InvalidInput(f"targets must be a list of features; got {targets!r}.")
    for target in targets:
        require_number("targets, each,", target, 0, most=dim - 1, whole=True)
    if len(set(targets)) < len(targets):
        raise InvalidInput(f"targets must be a list of different features; got {targets!r}.")
    return tuple(int(target) for target in targets)


def config_of(kind: Any, model: str, given: Any) -> Any:
    """The configuration of a kind in a plain dictionary, such as JSON has it, checked."""
    require_kind(f"options of {model} must be a dictionary", given, Mapping)
    known = fields(kind)
    for name in given:
        require_choice(f"option of {model}", name, [field.name for field in known])
    for field in known:
        needed = field.init and field.default is field.default_factory is MISSING
        if needed and field.name not in given:
            raise InvalidInput(f"options of {model} must have {field.name}; it is missing.")
    # JSON has no tuples.
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
