"""Which sequences and observations go where: splits and windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from skipstone.checking import as_array, as_entries, require_dense
from skipstone.errors import InvalidInput, require_number, require_seed, shortened
from skipstone.tables.clock import Clock, is_stamp

GAP = 10.0
"""Times the median time between two observations from which there is a gap between two, unless it
is told otherwise."""


def split_rows(
    count: int,
    ids: Shaped[np.ndarray, " batch"] | None,
    fractions: Sequence[float],
    seed: int | None,
) -> list[Int[Tensor, " part"]]:
    """The sequences of each part. Those of one id are in one part; fractions are of the ids."""
    fractions = as_entries("fractions", fractions)
    for fraction in fractions:
        require_number("fractions, each,", fraction)
    if seed is not None:
        require_seed(seed)
    if not fractions or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
        raise InvalidInput(
            f"fractions must be positive and sum to 1; got {list(fractions)}. "
            "For example split([0.8, 0.2], seed=0)."
        )
    number: dict[object, int] = {}
    names = range(count) if ids is None else ids
    group = torch.tensor([number.setdefault(name, len(number)) for name in names])
    groups = len(number)
    order = torch.arange(groups)
    if seed is not None:
        order = torch.randperm(groups, generator=torch.Generator().manual_seed(int(seed)))
    cuts = [round(sum(fractions[: i + 1]) * groups) for i in range(len(fractions))]
    starts = [0, *cuts[:-1]]
    if any(stop <= start for start, stop in zip(starts, cuts, strict=True)):
        raise InvalidInput(_empty_part(count, groups, fractions))
    place = order.argsort()[group]
    rows = place.argsort(stable=True)
    return [rows[(place[rows] >= a) & (place[rows] < b)] for a, b in zip(starts, cuts, strict=True)]


def _empty_part(count: int, groups: int, fractions: Sequence[float]) -> str:
    if groups == count:
        return (
            f"each part must get at least one sequence; {count} sequences split by "
            f"{list(fractions)} leave a part empty. Bring more sequences or fewer parts."
        )
    return (
        "sequences of one id stay together, and each part must get at least one id; "
        f"{count} sequences of {groups} id{'' if groups == 1 else 's'} split by {list(fractions)} "
        "leave a part empty. Split by time instead: split_by_time(...), before windows(...)."
    )


def sides_of_time(
    times: Float[Tensor, "batch time"], mask: Bool[Tensor, "batch time"], time: Any, clock: Clock
) -> tuple[Bool[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
    """Where observations are before a time, and where not; raise if either is nowhere."""
    if is_stamp(time):
        limit = torch.as_tensor(clock.to_model(time)).to(times)
        if limit.ndim != 1:
            raise InvalidInput(f"time must be one stamp; got {time!r}.")
    else:
        require_number("time", time)
        limit = times.new_tensor([time])
    before = mask & (times < limit[:, None])
    after = mask & ~before
    for keep, others in ((before, "none is before"), (after, "all are before")):
        if not bool(keep.any()):
            raise InvalidInput(
                f"there must be observations before and after the time; {others} {time}."
            )
    return before, after


def window_places(
    times: Float[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    length: int,
    stride: int,
    max_gap: float,
) -> tuple[Int[Tensor, " windows"], Int[Tensor, " windows"]]:
    """The sequence and the first observation of each window.

    A gap longer than `max_gap` cuts a sequence into pieces. Windows begin at every `stride`-th
    observation of a piece, as long as they fit into it.
    """
    require_number("length, the observations of a window,", length, 1, whole=True)
    require_number("stride, the observations from window to window,", stride, 1, whole=True)
    index = torch.arange(times.shape[1], device=times.device).expand_as(times)
    begins = torch.zeros_like(mask)
    begins[:, 0] = True
    begins[:, 1:] = times.diff(dim=1) > max_gap
    first = torch.where(begins, index, 0).cummax(dim=1).values
    # Just after the last observation of a piece: where the next one begins, or the sequence ends.
    ends = mask.sum(1, keepdim=True)
    nothing = torch.full_like(ends, times.shape[1])
    later = torch.cat([torch.where(begins, index, nothing)[:, 1:], nothing], dim=1)
    stop = later.flip(1).cummin(dim=1).values.flip(1).minimum(ends)
    rows, starts = (((index - first) % stride == 0) & (index <= stop - length)).nonzero().T
    if len(rows) == 0:
        longest = int((stop - first).max())
        gaps = "" if max_gap == math.inf else f" without a gap above {max_gap:g}"
        raise InvalidInput(
            f"a window has {length} observations; the longest stretch{gaps} has {longest}. Use a "
            "shorter length" + ("." if max_gap == math.inf else ", or a larger max_gap.")
        )
    return rows, starts


def with_any_value(
    values: Float[Tensor, "batch time dim"], mask: Bool[Tensor, "batch time"]
) -> Bool[Tensor, "batch time"]:
    """Where anything was observed; raise for a sequence of which nothing was."""
    seen = mask & ~values.isnan().all(2)
    empty = (~seen.any(1)).nonzero()
    if len(empty):
        raise InvalidInput(
            "each sequence must have an observed value; all values of sequence "
            f"{int(empty[0])} are NaN. Drop it."
        )
    return seen


def kept_places(
    keep: Bool[Tensor, "batch time"],
) -> tuple[Int[Tensor, "batch kept"], Bool[Tensor, "batch kept"]]:
    """The positions of what is kept, filled up with the last one, and which are not filling."""
    empty = (~keep.any(1)).nonzero()
    if len(empty):
        raise InvalidInput(
            "a selection must keep at least one observation of each sequence; sequence "
            f"{int(empty[0])} keeps none. Drop the sequence instead."
        )
    order = (~keep).to(torch.int8).argsort(dim=1, stable=True)
    lengths = keep.sum(1, keepdim=True)
    positions = torch.arange(int(lengths.max()), device=keep.device)
    return order.gather(1, positions.minimum(lengths - 1)), positions < lengths


def stack_padded(
    parts: Sequence[Shaped[Tensor, "_ _ ..."]], hold: bool = False
) -> Shaped[Tensor, "_ _ ..."]:
    """Tensors (batch, time, ...) below each other, padded with zeros or, to `hold`, their last."""
    longest = max(part.shape[1] for part in parts)
    padded = []
    for part in parts:
        last = part[:, -1:] if hold else torch.zeros_like(part[:, -1:])
        extra = last.expand(-1, longest - part.shape[1], *part.shape[2:])
        padded.append(torch.cat([part, extra], dim=1))
    return torch.cat(padded)


def as_index(index: Any, count: int, device: torch.device) -> slice | Tensor:
    """Which of `count` sequences, as a slice or a tensor; an int is one of them."""
    if isinstance(index, slice):
        parts = (index.start, index.stop, index.step)
        if not all(part is None or _is_whole(part) for part in parts):
            raise InvalidInput(f"a slice must be of whole numbers; got {shortened(index)}.")
        if index.step is None or index.step > 0:
            return index
        index = list(range(count))[index]
    if isinstance(index, Tensor):
        require_dense(index, "an index")
        index = index.detach().cpu().numpy()
    index = as_array([index] if _is_whole(index) else index, "an index")
    if index.dtype.kind == "b" and index.shape == (count,):
        return torch.as_tensor(np.flatnonzero(index), device=device)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise InvalidInput(
            "sequences are picked by a whole number, a slice, a list of numbers or a mask of shape "
            f"({count},); got {index.dtype} of shape {index.shape}."
        )
    outside = index[(index < -count) | (index >= count)]
    if outside.size:
        raise IndexError(f"sequence {outside[0]} of {count}")
    return torch.as_tensor(index.astype(np.int64), device=device)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def host_index(index: slice | Tensor) -> slice | np.ndarray:
    """An index of sequences for arrays, which stay on the CPU."""
    return index if isinstance(index, slice) else index.cpu().numpy()


def zero_where(padding: Tensor, values: Tensor) -> Tensor:
    """Set padding to zero, so that nothing in it can reach a result."""
    return values.masked_fill(padding[..., None], 0) if bool(padding.any()) else values


def median_gap(times: Float[Tensor, "batch time"], mask: Bool[Tensor, "batch time"]) -> float:
    """Median time between two observations of a sequence."""
    gaps = times.diff(dim=1)[mask[:, 1:]]
    if gaps.numel() == 0:
        raise InvalidInput(
            "a spacing needs a sequence of at least two observations; every sequence here has one."
        )
    return float(gaps.median())


def longest_gap(
    times: Float[Tensor, "batch time"], mask: Bool[Tensor, "batch time"], clock: Clock, given: Any
) -> float:
    """The longest time between two observations that is not a gap: as given, or by the median."""
    if given is not None:
        endless = isinstance(given, Real) and given == math.inf
        return math.inf if endless else clock.length("max_gap", given)
    return GAP * median_gap(times, mask) if bool(mask[:, 1:].any()) else math.inf


def check_kinds(parts: Any, kind: type) -> None:
    """Raise unless these are batches."""
    for part in as_entries("batches to join", parts):
        if not isinstance(part, kind):
            raise InvalidInput(f"batches to join must be Sequences; got {shortened(part)}.")


def check_alike(shapes: list[tuple[int, int]]) -> None:
    """Raise unless batches that are to be joined have the same features and controls."""
    if len(set(shapes)) != 1:
        raise InvalidInput(
            "batches to join must agree in (dim, control) and there must be at least one; "
            f"got {shapes}."
        )


def check_any(kept: int, count: int) -> None:
    """Raise if a selection keeps no sequence."""
    if kept == 0:
        raise InvalidInput(
            f"a selection must keep at least one sequence; this one keeps none of {count}. Check "
            "the index."
        )


def as_device(given: Any) -> torch.device | None:
    """A device that this machine has, or None for the one where things are."""
    if given is None or isinstance(given, torch.device):
        return given
    try:
        return torch.empty(0, device=given).device
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInput(
            f"device must be one of this machine, such as cpu; got {shortened(given)}: {reason}."
        ) from None
