"""Scaling of values and controls: models compute with numbers of size one, whatever the units."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput, require_choice, require_number

SCALINGS = ("standard", "robust", "none")
"""How features are scaled; see `measure_scale`."""

SAMPLE = 1_000
"""Sequences that a scale is measured on."""

_QUARTILES_OF_A_NORMAL = 1.349
"""Distance of the quartiles of a normal distribution, in standard deviations."""

Scale = tuple[tuple[float, ...], tuple[float, ...]]
"""Center and scale, one number each for every feature, or one for all."""


def measure_scale(values: Float[Tensor, "rows features"], scaling: str, joint: bool) -> Scale:
    """Center and scale of each feature, or with `joint` of all together, NaN left out.

    `standard` takes mean and standard deviation, `robust` median and the distance of the quartiles,
    which a few wild values do not move. `none` leaves numbers as they are. A feature that never
    changes keeps its unit.
    """
    require_choice("scaling", scaling, SCALINGS)
    if scaling == "none":
        return (0.0,), (1.0,)
    values = values.double()
    columns = [values.flatten()] if joint else list(values.unbind(1))
    found = [_measure_one(column[~column.isnan()], scaling) for column in columns]
    center, scale = zip(*found, strict=True)
    return center, scale


def _measure_one(column: Float[Tensor, " rows"], scaling: str) -> tuple[float, float]:
    if len(column) == 0:
        return 0.0, 1.0
    center, spread = float(column.mean()), float(column.std(correction=0))
    if scaling == "robust":
        # kthvalue instead of quantile, which has a limit on its size.
        low, middle, high = (
            float(column.kthvalue(1 + round(share * (len(column) - 1))).values)
            for share in (0.25, 0.5, 0.75)
        )
        center = middle
        spread = (high - low) / _QUARTILES_OF_A_NORMAL or spread
    # What rounding leaves of a constant is not a spread.
    constant = spread <= 1e-12 * abs(center)
    return center, 1.0 if constant else spread


def as_scale(name: str, numbers: Any, features: int, above: float | None) -> tuple[float, ...]:
    """Numbers of a config, one for all features or one for each, as a tuple."""
    if not isinstance(numbers, list | tuple) or len(numbers) not in (1, features):
        raise InvalidInput(
            f"{name} must be a list of one number for all features or {features}, one for each; "
            f"got {numbers!r}."
        )
    for number in numbers:
        require_number(f"{name}, each,", number, above=above)
    return tuple(float(number) for number in numbers)


class Scaler:
    """Between the units of the data and the numbers a model computes with."""

    def __init__(self, center: tuple[float, ...], scale: tuple[float, ...]):
        self._numbers = center, scale
        self._trivial = set(center) == {0.0} and set(scale) == {1.0}
        self._tensors: dict[Any, tuple[Tensor, Tensor]] = {}

    def into(self, values: Float[Tensor, "*rows features"]) -> Float[Tensor, "*rows features"]:
        """From the data's units to the model's."""
        if self._trivial:
            return values
        center, scale = self._like(values)
        return (values - center) / scale

    def back(self, values: Float[Tensor, "*rows features"]) -> Float[Tensor, "*rows features"]:
        """From the model's to the data's."""
        if self._trivial:
            return values
        center, scale = self._like(values)
        return torch.addcmul(center, values, scale)

    def _like(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Center and scale as tensors of this kind, made once for each."""
        key = values.dtype, values.device
        if key not in self._tensors:
            # Tensors made in inference mode would spoil every later training.
            with torch.inference_mode(False):
                center, scale = (
                    torch.tensor(numbers, dtype=values.dtype, device=values.device)
                    for numbers in self._numbers
                )
            self._tensors[key] = center, scale
        return self._tensors[key]
