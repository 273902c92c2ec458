"""Checks and conversions of the arrays that `Sequences` and `Path` are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipstone.errors import InvalidInput


def as_values(array: Any, name: str, dtype: torch.dtype | None) -> Tensor:
    """Values or controls as a floating-point tensor; uint8 values stay what they are, images.

    Floating-point tensors keep their dtype unless another is asked for; the rest gets the default.
    """
    if not isinstance(array, Tensor):
        array = as_array(array, name)
        if array.dtype.kind not in "fiu":
            raise InvalidInput(_values_rule(name, array.dtype))
        if array.dtype.kind == "f":
            dtype = dtype or torch.get_default_dtype()
        array = _tensor(array)
    if array.dtype == torch.bool or array.is_complex():
        raise InvalidInput(_values_rule(name, array.dtype))
    if array.dtype == torch.uint8 and not name.startswith("controls"):
        return array
    if not array.is_floating_point():
        dtype = dtype or torch.get_default_dtype()
    return array if dtype is None else array.to(dtype)


def _values_rule(name: str, dtype: object) -> str:
    return (
        f"{name} must be real numbers (or uint8 images in [0, 255]); got {dtype}. "
        "Convert first, for example with .astype('float32') or .float()."
    )


def as_array(array: Any, name: str) -> np.ndarray:
    """A numpy array of anything that nests evenly."""
    try:
        return np.asarray(array)
    except ValueError:
        raise InvalidInput(
            f"{name} must nest evenly, the same number of features and observations everywhere; "
            "they do not. For sequences of different lengths use Sequences.from_lists."
        ) from None


def _tensor(array: np.ndarray) -> Tensor:
    """A tensor of any numeric array, sharing its memory where torch can.

    Torch has no long double and no foreign byte order; it refuses reversed views, and warns of
    read-only arrays.
    """
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
    array = array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)
    array = np.ascontiguousarray(array)
    return torch.as_tensor(array if array.flags.writeable else array.copy())


def as_times(array: Any) -> Tensor:
    """Times in double precision, where the device has it."""
    if not isinstance(array, Tensor):
        array = as_array(array, "times")
        if array.dtype.kind not in "fiu":
            raise InvalidInput(
                f"times must be real numbers; got {array.dtype}. Convert time stamps to seconds "
                "first, for example with t.astype('datetime64[ns]').astype('int64') / 1e9."
            )
        # Before it becomes a tensor, so that unsigned integers of any size will do.
        array = _tensor(array.astype(np.float64))
    if array.is_complex() or array.dtype == torch.bool:
        raise InvalidInput(
            f"times must be real numbers; got {array.dtype}. Convert time stamps to seconds first."
        )
    return array.to(torch.float32 if array.device.type == "mps" else torch.float64)


def as_mask(mask: Any, times: Tensor) -> Tensor:
    """A mask that marks padding: True first, False after."""
    if not isinstance(mask, Tensor):
        mask = as_array(mask, "mask")
        mask = _tensor(mask) if mask.dtype.kind in "biuf" else mask
    if mask.dtype != torch.bool:
        raise InvalidInput(f"mask must be boolean; got {mask.dtype}. Convert with .bool().")
    mask = mask.to(times.device)
    if mask.shape != times.shape:
        raise InvalidInput(
            f"mask must have the shape of times, {tuple(times.shape)}; got {tuple(mask.shape)}."
        )
    empty = (~mask.any(1)).nonzero()
    if len(empty):
        raise InvalidInput(
            f"each sequence must have at least one observation; sequence {int(empty[0])} is "
            "empty. Drop it."
        )
    holes = (mask[:, 1:] & ~mask[:, :-1]).nonzero()
    if len(holes):
        row, index = (int(i) for i in holes[0])
        raise InvalidInput(
            "mask marks padding, so it must be True first and False after; sequence "
            f"{row} is False at index {index} and True at index {index + 1}. For missing "
            "observations, build without a mask and use select(keep): the times show the gap."
        )
    return mask


def check_shapes(times: Tensor, values: Tensor, controls: Tensor | None) -> None:
    """Raise unless all shapes agree."""
    if values.ndim != 3:
        raise InvalidInput(shape_rule(values))
    if 0 in values.shape:
        raise InvalidInput(
            "there must be at least one sequence, one observation and one feature; values have "
            f"shape {tuple(values.shape)}. Drop what is empty."
        )
    if times.shape != values.shape[:2]:
        raise InvalidInput(
            "times must have shape (batch, time) of the values, "
            f"{tuple(values.shape[:2])}; got {tuple(times.shape)}. For regular data use "
            "Sequences.from_array(values, spacing=...)."
        )
    if controls is not None and (controls.ndim != 3 or controls.shape[:2] != values.shape[:2]):
        raise InvalidInput(
            f"controls must have shape (batch, time, control) with batch and time "
            f"{tuple(values.shape[:2])}; got {tuple(controls.shape)}."
        )


def shape_rule(values: Tensor) -> str:
    """The message for values that are not (batch, time, dim)."""
    return (
        f"values must have shape (batch, time, dim); got {tuple(values.shape)}. "
        "One sequence needs a first axis: x[None]; one feature a last: x[..., None]."
    )


def check_numbers(times: Tensor, values: Tensor, controls: Tensor | None, mask: Tensor) -> None:
    """Raise unless times and controls are finite, values finite or NaN, and times increase."""
    for name, array in (("values", values), ("controls", controls), ("times", times[..., None])):
        if array is None or not array.is_floating_point():
            continue
        # NaN in the values means "not observed".
        fits = array.isfinite() if name != "values" else ~array.isinf()
        bad = (~fits.all(-1) & mask).nonzero()
        if len(bad):
            row, index = (int(i) for i in bad[0])
            found = array[row, index][~fits[row, index]][0].item()
            hint = {
                "values": "Write NaN for what was not observed.",
                "controls": "Controls are known at all times: fill them in.",
                "times": "Leave that observation out.",
            }
            raise InvalidInput(
                f"{name} must be finite; sequence {row} has {found} at index {index}. {hint[name]}"
            )
    stuck = ((times.diff(dim=1) <= 0) & mask[:, 1:]).nonzero()
    if len(stuck):
        row, index = (int(i) for i in stuck[0])
        before, after = times[row, index].item(), times[row, index + 1].item()
        raise InvalidInput(
            f"times must increase within a sequence; sequence {row} has {after:.13g} after "
            f"{before:.13g} (index {index + 1}). Sort it, or drop duplicates."
            + (_SINGLE if before == after and abs(before) > 1e6 else "")
        )


_SINGLE = (
    " Times this large must be in double precision from the start: in single precision those that "
    "are close become the same."
)


def check_length(lengths: Tensor, count: int) -> None:
    """Raise unless every sequence has at least `count` observations."""
    short = (lengths < count).nonzero()
    if len(short):
        row = int(short[0])
        raise InvalidInput(
            f"each sequence must have at least {count} observations here; sequence {row} has "
            f"{int(lengths[row])}. Drop the short ones: s[s.lengths >= {count}], or use "
            "a shorter context."
        )


def check_lengths(
    name: str, shapes: list[tuple[int, ...]], lengths: list[int], width: tuple[int, ...]
) -> None:
    """Raise unless lists have one entry per sequence, of its length."""
    if len(shapes) != len(lengths):
        raise InvalidInput(
            f"{name} must have one entry per sequence; got {len(shapes)} for {len(lengths)}."
        )
    for row, (shape, length) in enumerate(zip(shapes, lengths, strict=True)):
        if length == 0:
            raise InvalidInput(
                f"each sequence must have at least one observation; sequence {row} is empty. "
                "Drop it."
            )
        if shape != (length, *width):
            raise InvalidInput(
                f"{name} must match the values of their sequence; sequence {row} has "
                f"{length} observations and {name} of shape {shape} instead of "
                f"{(length, *width)}."
            )


def as_rows(
    values: Iterable[Any], times: Iterable[Any] | None, controls: Iterable[Any] | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Times, values, controls and mask of sequences of different lengths, checked and padded."""
    rows = [as_values(row, f"values of sequence {i}", None) for i, row in enumerate(values)]
    if not rows:
        raise InvalidInput("there must be at least one sequence; got an empty list.")
    dim = rows[0].shape[-1] if rows[0].ndim == 2 else None
    for i, row in enumerate(rows):
        if row.ndim != 2 or row.shape[1] != dim:
            raise InvalidInput(
                "each sequence must have shape (time, dim) with the same dim; sequence "
                f"{i} has shape {tuple(row.shape)}"
                + (f" and sequence 0 has dim {dim}" if row.ndim == 2 else "")
                + ". Reshape it; a single feature needs a last axis: x[:, None]."
            )
    lengths = [len(row) for row in rows]
    clock = (
        [torch.arange(n, dtype=torch.float64) for n in lengths]
        if times is None
        else [as_times(row).to(rows[0].device) for row in times]
    )
    check_lengths("times", [tuple(row.shape) for row in clock], lengths, ())
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    if controls is None:
        return _pad(clock), _pad(rows), None, mask
    inputs = [as_values(row, f"controls of sequence {i}", None) for i, row in enumerate(controls)]
    width = tuple(inputs[0].shape[1:]) if inputs else ()
    check_lengths("controls", [tuple(row.shape) for row in inputs], lengths, width)
    return _pad(clock), _pad(rows), _pad(inputs), mask


def _pad(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
