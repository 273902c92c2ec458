"""Checks and conversions of the arrays that `Sequences` and `Path` are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipstone.errors import InvalidInput, shortened

_DOUBLE = torch.finfo(torch.float64).eps

_FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
"""What can be computed with: torch has smaller ones, to keep weights in."""

COARSEST = 0.1
"""Distance of neighbouring floats, at most, as a share of the time between observations."""


def as_values(array: Any, name: str, dtype: torch.dtype | None) -> Tensor:
    """Values or controls as a floating-point tensor; uint8 values stay what they are, images.

    Floating-point tensors keep their dtype unless another is asked for; the rest gets the default.
    """
    require_floating(dtype)
    if not isinstance(array, Tensor):
        array = as_array(array, name)
        if array.dtype.kind not in "fiu":
            raise InvalidInput(_values_rule(name, array.dtype))
        if array.dtype.kind == "f":
            dtype = dtype or torch.get_default_dtype()
        array = to_tensor(array)
    require_dense(array, name)
    small = array.is_floating_point() and array.dtype not in _FLOATS
    if array.dtype == torch.bool or array.is_complex() or small:
        raise InvalidInput(_values_rule(name, array.dtype))
    if array.dtype == torch.uint8 and not name.startswith("controls"):
        return array
    if not array.is_floating_point():
        dtype = dtype or torch.get_default_dtype()
    return array if dtype is None else array.to(dtype)


def require_floating(dtype: Any) -> None:
    """Raise unless a dtype is None or a floating-point one: others would cut values off."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in _FLOATS):
        raise InvalidInput(
            "dtype must be a floating-point dtype of torch, such as torch.float32; got "
            f"{shortened(dtype)}."
        )


def _values_rule(name: str, dtype: object) -> str:
    return (
        f"{name} must be real numbers (or uint8 images in [0, 255]); got {dtype}. "
        "Convert first, for example with .astype('float32') or .float()."
    )


def as_array(array: Any, name: str) -> np.ndarray:
    """A numpy array of anything that nests evenly."""
    parts = array if isinstance(array, list | tuple) else (array,)
    masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    try:
        found = np.ma.asarray(array) if masked else np.asarray(array)
    except ValueError:
        raise InvalidInput(
            f"{name} must nest evenly, the same number of features and observations everywhere; "
            "they do not. For sequences of different lengths use Sequences.from_lists."
        ) from None
    except (TypeError, RuntimeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(
            f"{name} must be a tensor, an array or nested lists of numbers; got "
            f"{type(array).__name__}: {reason}"
        ) from None
    return _unmasked(found, name) if isinstance(found, np.ma.MaskedArray) else found


def _unmasked(array: np.ma.MaskedArray[Any, Any], name: str) -> np.ndarray:
    """What a mask hides is missing: NaN, which only floats have."""
    if array.dtype.kind != "f" and np.ma.getmaskarray(array).any():
        raise InvalidInput(
            f"{name} that are masked must be floats, which have NaN for what is missing; got "
            f"{array.dtype}. Convert them: .astype('float64')."
        )
    return array.filled(np.nan) if array.dtype.kind == "f" else array.data


def require_dense(tensor: Tensor, name: str) -> None:
    """Raise for a tensor that has not a number for each place."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise InvalidInput(
            f"{name} must be a dense tensor, with a number for each place; got {tensor.layout}, "
            f"{tensor.dtype} on {tensor.device}. Convert it: .to_dense() or .dequantize()."
        )


def as_entries(name: str, things: Any) -> list[Any]:
    """A list with an entry for each sequence."""
    try:
        return list(things)
    except TypeError:
        raise InvalidInput(
            f"{name} must be a list with an entry for each sequence; got {shortened(things)}."
        ) from None


def to_tensor(array: np.ndarray) -> Tensor:
    """A tensor of any numeric array, sharing its memory where torch can.

    Torch has no long double and no foreign byte order; it refuses reversed views, and warns of
    read-only arrays.
    """
    kind, size = array.dtype.kind, array.dtype.itemsize
    # By kind and size, since numpy has several types of the same, of which torch knows one.
    known = np.dtype(f"{kind}{min(size, 8)}")
    array = array.astype(known, copy=False).view(known)
    array = np.asarray(array, order="C")  # `ascontiguousarray` would give a number an axis.
    # To numpy, an axis of one is in order whichever way it runs.
    backwards = any(stride < 0 for stride in array.strides)
    return torch.as_tensor(array.copy() if backwards or not array.flags.writeable else array)


def as_times(array: Any, name: str = "times") -> Tensor:
    """Times in double precision, where the device has it."""
    if not isinstance(array, Tensor):
        array = as_array(array, name)
        if array.dtype.kind not in "fiu":
            raise InvalidInput(
                f"{name} must be real numbers; got {array.dtype}. Convert them first, for example "
                "with t.astype('float64')."
            )
        # Before it becomes a tensor, so that unsigned integers of any size will do.
        array = to_tensor(array.astype(np.float64))
    require_dense(array, name)
    if array.is_complex() or array.dtype == torch.bool:
        raise InvalidInput(f"{name} must be real numbers; got {array.dtype}. Convert them first.")
    return array.to(torch.float32 if array.device.type == "mps" else torch.float64)


def precision_of(times: Any) -> float:
    """Relative distance of neighbouring numbers in the dtype that times came in."""
    dtype = getattr(times, "dtype", None)
    if isinstance(times, Tensor) and times.is_floating_point():
        return torch.finfo(times.dtype).eps
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        return max(float(np.finfo(dtype).eps), _DOUBLE)
    return _DOUBLE


def check_precision(times: Tensor, mask: Tensor, precision: float) -> None:
    """Raise where times are so large that most gaps between them are rounding."""
    gaps, at = times.diff(dim=1), times[:, 1:].abs()
    known = mask[:, 1:] & (gaps > 0)
    if not bool(known.any()):
        return
    whole = times[mask]
    if bool((whole == whole.round()).all()) and float(whole.abs().max()) * precision < 1:
        return  # Whole numbers are exact this far.
    gaps, apart = gaps[known], precision * at[known]
    if float((apart / gaps).median()) > COARSEST:
        raise InvalidInput(
            f"times must tell observations apart; near {float(at[known].max()):.13g} such floats "
            f"are {float(apart.max()):.3g} apart, and observations {float(gaps.median()):.3g}. "
            "Give double precision, or integers or datetime64, which are counted exactly from each "
            "sequence's first; or subtract a start before they become floats."
        )


def as_mask(mask: Any, times: Tensor) -> Tensor:
    """A mask that marks padding: True first, False after."""
    mask = as_flags(mask, "mask", times)
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


def as_flags(flags: Any, name: str, times: Tensor) -> Tensor:
    """One boolean for each time."""
    if not isinstance(flags, Tensor):
        flags = as_array(flags, name)
        flags = to_tensor(flags) if flags.dtype.kind in "biuf" else flags
    else:
        require_dense(flags, name)
    if flags.dtype != torch.bool:
        raise InvalidInput(f"{name} must be boolean; got {flags.dtype}. Convert with .bool().")
    if flags.shape != times.shape:
        raise InvalidInput(
            f"{name} must have the shape of times, {tuple(times.shape)}; got {tuple(flags.shape)}."
        )
    return flags.to(times.device)


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


def check_numbers(
    times: Tensor, values: Tensor, controls: Tensor | None, mask: Tensor, precision: float
) -> None:
    """Raise unless times and controls are finite, values finite or NaN, and times increase by more
    than their `precision`."""
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
    check_precision(times, mask, precision)


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
    values = as_entries("values", values)
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
    usual = [torch.arange(n, dtype=torch.float64) for n in lengths]
    given = usual if times is None else as_entries("times", times)
    clock = [as_times(row).to(rows[0].device) for row in given]
    check_lengths("times", [tuple(row.shape) for row in clock], lengths, ())
    for row, came in zip(clock, given, strict=True):
        if (precision := precision_of(came)) > _DOUBLE:  # Doubles are checked together.
            check_precision(row[None], torch.ones_like(row[None], dtype=torch.bool), precision)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    if controls is None:
        return _pad(clock), _pad(rows), None, mask
    controls = as_entries("controls", controls)
    inputs = [as_values(row, f"controls of sequence {i}", None) for i, row in enumerate(controls)]
    width = tuple(inputs[0].shape[1:]) if inputs else ()
    check_lengths("controls", [tuple(row.shape) for row in inputs], lengths, width)
    return _pad(clock), _pad(rows), _pad(inputs), mask


def _pad(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
