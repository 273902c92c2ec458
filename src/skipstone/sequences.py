"""`Sequences`: a batch of observed trajectories, regular, irregular or ragged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from skipstone.checking import (
    as_mask,
    as_times,
    as_values,
    check_lengths,
    check_numbers,
    check_shapes,
    shape_rule,
)
from skipstone.errors import InvalidInput, require_number


class Sequences:
    """A batch of observed trajectories.

    Every sequence has its own length and its own times. Shorter ones are padded at the end, and
    `mask` is True where there is an observation. A gap in a log needs no mask: leave the missing
    rows out, and the times say where the gap is.

    Times are kept in double precision whatever the dtype of the values, so that time stamps in
    seconds since 1970 keep their milliseconds. Values are floating point; integers become that.
    Only `uint8` values stay: they are images in [0, 255], which `to(dtype=...)` turns into floating
    point in [0, 1], batch by batch.
    """

    times: Float[Tensor, "batch time"]
    values: Num[Tensor, "batch time dim"]
    controls: Float[Tensor, "batch time control"] | None
    mask: Bool[Tensor, "batch time"]

    def __init__(
        self, times: Any, values: Any, controls: Any = None, mask: Any = None, *, dtype: Any = None
    ):
        """Check and keep `times (batch, time)`, `values (batch, time, dim)` and the rest.

        Tensors, arrays and nested lists are accepted. `dtype` is that of values and controls; by
        default a floating-point tensor keeps its own and everything else gets torch's default.
        """
        values = as_values(values, "values", dtype)
        controls = None if controls is None else as_values(controls, "controls", dtype)
        times = as_times(times).to(values.device)
        check_shapes(times, values, controls)
        if mask is None:
            mask = torch.ones_like(times, dtype=torch.bool)
        mask = as_mask(mask, times)
        check_numbers(times, values, controls, mask)
        lengths = mask.sum(1)
        self.times = torch.where(mask, times, times.gather(1, lengths[:, None] - 1))
        self.values = _zero_where(~mask, values)
        self.controls = None if controls is None else _zero_where(~mask, controls)
        self.mask = mask

    @classmethod
    def from_array(
        cls, values: Any, spacing: float = 1.0, start: float = 0.0, controls: Any = None
    ) -> Sequences:
        """Sequences sampled regularly: `values (batch, time, dim)`, `spacing` apart."""
        spacing = spacing.item() if isinstance(spacing, Tensor) else spacing
        require_number("spacing, the time between two observations,", spacing, above=0)
        values = as_values(values, "values", None)
        if values.ndim != 3:
            raise InvalidInput(shape_rule(values))
        count = values.shape[1]
        times = start + spacing * torch.arange(count, dtype=torch.float64, device=values.device)
        return cls(times.expand(values.shape[0], count), values, controls)

    @classmethod
    def from_lists(
        cls,
        values: Iterable[Any],
        times: Iterable[Any] | None = None,
        controls: Iterable[Any] | None = None,
    ) -> Sequences:
        """Sequences of different lengths: lists of `(time, dim)` values and `(time,)` times.

        Without `times`, observation i of each sequence is at time i.
        """
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
        inputs = None
        if controls is not None:
            inputs = [
                as_values(row, f"controls of sequence {i}", None) for i, row in enumerate(controls)
            ]
            width = tuple(inputs[0].shape[1:]) if inputs else ()
            check_lengths("controls", [tuple(row.shape) for row in inputs], lengths, width)
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return cls(_pad(clock), _pad(rows), None if inputs is None else _pad(inputs), mask)

    @classmethod
    def concat(cls, parts: Sequence[Sequences]) -> Sequences:
        """One batch from several, padded to the longest."""
        if len({(part.dim, part.control_dim) for part in parts}) != 1:
            shapes = [(part.dim, part.control_dim) for part in parts]
            raise InvalidInput(
                "batches to join must agree in (dim, control) and there must be at least one; "
                f"got {shapes}."
            )
        longest = max(part.times.shape[1] for part in parts)
        padded = [part._padded_to(longest) for part in parts]
        return cls._trusted(
            torch.cat([part.times for part in padded]),
            torch.cat([part.values for part in padded]),
            None
            if padded[0].controls is None
            else torch.cat([part.controls for part in padded if part.controls is not None]),
            torch.cat([part.mask for part in padded]),
        )

    @classmethod
    def _trusted(
        cls, times: Tensor, values: Tensor, controls: Tensor | None, mask: Tensor
    ) -> Sequences:
        """Build without checks, from parts of sequences that were checked before."""
        self = object.__new__(cls)
        self.times, self.values, self.controls, self.mask = times, values, controls, mask
        return self

    def __len__(self) -> int:
        return self.times.shape[0]

    def __repr__(self) -> str:
        low, high = int(self.lengths.min()), int(self.lengths.max())
        observations = str(low) if low == high else f"{low} to {high}"
        return (
            f"Sequences(batch={len(self)}, observations={observations}, dim={self.dim}, "
            f"control={self.control_dim}, dtype={self.values.dtype}, device={self.values.device})"
        )

    def __getitem__(
        self, index: int | np.integer | slice | Sequence[int] | np.ndarray | Tensor
    ) -> Sequences:
        """Some of the sequences, always as a batch: an int gives a batch of one."""
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"sequence {index} of {len(self)}")
            index = [int(index)]
        if not isinstance(index, slice):
            index = torch.as_tensor(index, device=self.times.device)
            index = index if index.numel() else index.long()
        mask = self.mask[index]
        if mask.shape[0] == 0:
            raise InvalidInput(
                "a selection must keep at least one sequence; this one keeps none of "
                f"{len(self)}. Check the index."
            )
        longest = int(mask.sum(1).max())
        controls = None if self.controls is None else self.controls[index][:, :longest]
        return self._trusted(
            self.times[index][:, :longest],
            self.values[index][:, :longest],
            controls,
            mask[:, :longest],
        )

    @property
    def dim(self) -> int:
        """Number of features of an observation."""
        return self.values.shape[2]

    @property
    def control_dim(self) -> int:
        """Number of control inputs, 0 without controls."""
        return 0 if self.controls is None else self.controls.shape[2]

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Number of observations of each sequence."""
        return self.mask.sum(1)

    @property
    def ends(self) -> Float[Tensor, " batch"]:
        """Time of the last observation of each sequence."""
        return self.times[:, -1]

    @property
    def typical_spacing(self) -> float:
        """Median time between two observations."""
        gaps = self.times.diff(dim=1)[self.mask[:, 1:]]
        if gaps.numel() == 0:
            raise InvalidInput(
                "a spacing needs a sequence of at least two observations; every sequence here "
                "has one."
            )
        return float(gaps.median())

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Sequences:
        """The same on another device, or with values and controls of another dtype.

        `uint8` images become floating point in [0, 1]. Times stay double precision, except on
        devices that have none.
        """
        values = self.values.to(device)
        if dtype is not None and values.dtype != dtype:
            values = values.to(dtype) / 255 if values.dtype == torch.uint8 else values.to(dtype)
        clock = torch.float32 if values.device.type == "mps" else torch.float64
        controls = None if self.controls is None else self.controls.to(device, dtype)
        return self._trusted(self.times.to(device, clock), values, controls, self.mask.to(device))

    def split(self, fractions: Sequence[float], seed: int | None = None) -> list[Sequences]:
        """Disjoint parts with the given fractions of the sequences, shuffled if there is a seed."""
        if not fractions or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
            raise InvalidInput(
                f"fractions must be positive and sum to 1; got {list(fractions)}. "
                "For example split([0.8, 0.2], seed=0)."
            )
        order = torch.arange(len(self))
        if seed is not None:
            order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        cuts = [round(sum(fractions[: i + 1]) * len(self)) for i in range(len(fractions))]
        starts = [0, *cuts[:-1]]
        if any(stop <= start for start, stop in zip(starts, cuts, strict=True)):
            raise InvalidInput(
                f"each part must get at least one sequence; {len(self)} sequences split by "
                f"{list(fractions)} leave a part empty. Bring more sequences or fewer parts."
            )
        return [self[order[start:stop]] for start, stop in zip(starts, cuts, strict=True)]

    def head(self, count: int) -> Sequences:
        """The first `count` observations of each sequence: a context to predict from."""
        self.require_length(count)
        controls = None if self.controls is None else self.controls[:, :count]
        return self._trusted(
            self.times[:, :count], self.values[:, :count], controls, self.mask[:, :count]
        )

    def tail(self, count: int) -> Sequences:
        """The last `count` observations of each sequence."""
        self.require_length(count)
        return self._take(
            self.lengths[:, None] - count + torch.arange(count, device=self.times.device)
        )

    def select(self, keep: Bool[Tensor, "batch time"]) -> Sequences:
        """Only the observations where `keep` is True; the rest become gaps in the times."""
        keep = keep & self.mask
        empty = (~keep.any(1)).nonzero()
        if len(empty):
            raise InvalidInput(
                "a selection must keep at least one observation of each sequence; sequence "
                f"{int(empty[0])} keeps none. Drop the sequence instead."
            )
        order = (~keep).to(torch.int8).argsort(dim=1, stable=True)
        lengths = keep.sum(1)
        longest = int(lengths.max())
        positions = torch.arange(longest, device=keep.device)
        index = order[:, :longest].gather(1, positions.minimum(lengths[:, None] - 1))
        kept = self._take(index)
        mask = positions < lengths[:, None]
        controls = None if kept.controls is None else _zero_where(~mask, kept.controls)
        return self._trusted(kept.times, _zero_where(~mask, kept.values), controls, mask)

    def require_length(self, count: int) -> None:
        """Raise unless every sequence has at least `count` observations."""
        require_number("a number of observations", count, 1, whole=True)
        short = (self.lengths < count).nonzero()
        if len(short):
            row = int(short[0])
            raise InvalidInput(
                f"each sequence must have at least {count} observations here; sequence {row} has "
                f"{int(self.lengths[row])}. Drop the short ones: s[s.lengths >= {count}], or use "
                "a shorter context."
            )

    def _take(self, index: Int[Tensor, "batch new_time"]) -> Sequences:
        wide = index[..., None]
        controls = self.controls
        if controls is not None:
            controls = controls.gather(1, wide.expand(-1, -1, controls.shape[2]))
        return self._trusted(
            self.times.gather(1, index),
            self.values.gather(1, wide.expand(-1, -1, self.dim)),
            controls,
            self.mask.gather(1, index),
        )

    def _padded_to(self, longest: int) -> Sequences:
        extra = longest - self.times.shape[1]
        if extra == 0:
            return self
        pad = torch.nn.functional.pad
        return self._trusted(
            torch.cat([self.times, self.ends[:, None].expand(-1, extra)], dim=1),
            pad(self.values, (0, 0, 0, extra)),
            None if self.controls is None else pad(self.controls, (0, 0, 0, extra)),
            pad(self.mask, (0, extra)),
        )


def _pad(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def _zero_where(padding: Tensor, values: Tensor) -> Tensor:
    """Set padding to zero, so that nothing in it can reach a result."""
    return values.masked_fill(padding[..., None], 0) if bool(padding.any()) else values
