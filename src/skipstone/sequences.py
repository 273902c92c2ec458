"""`Sequences`: a batch of observed trajectories, regular, irregular or ragged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from skipstone import checking
from skipstone.errors import InvalidInput, require_number
from skipstone.tables import cutting
from skipstone.tables.about import About, Labelled, merged
from skipstone.tables.frames import read_table, write_table
from skipstone.tables.stamps import counted, counted_rows


class Sequences(Labelled):
    """A batch of observed trajectories.

    Every sequence has its own length and its own times. Shorter ones are padded at the end, and
    `mask` is True where there is an observation. A gap in a log needs no mask: leave the missing
    rows out, and the times say where the gap is. NaN in the values is a feature that was not
    observed; an observation of NaN alone is a gap.

    Times are in double precision whatever the dtype of the values. Floats and integers are kept as
    given. Datetimes, dates, durations and integers beyond 2**32, of tables and of arrays, are
    counted exactly from each sequence's first; `clock` maps them back. Values are floating point;
    integers become that. Only `uint8` values stay: they are images in [0, 255], which
    `to(dtype=...)` turns into floating point in [0, 1], batch by batch.

    Ids, names of columns and the clock go along with every operation.
    """

    times: Float[Tensor, "batch time"]
    values: Num[Tensor, "batch time dim"]
    controls: Float[Tensor, "batch time control"] | None
    mask: Bool[Tensor, "batch time"]

    def __init__(
        self,
        times: Any,
        values: Any,
        controls: Any = None,
        mask: Any = None,
        *,
        dtype: Any = None,
        about: About | None = None,
    ):
        """Check and keep `times (batch, time)`, `values (batch, time, dim)` and the rest.

        Tensors, arrays and nested lists are accepted. `dtype` is that of values and controls; by
        default floating-point tensors keep their own and everything else gets torch's default.
        `about` is that of other sequences, to keep their names.
        """
        values = checking.as_values(values, "values", dtype)
        controls = None if controls is None else checking.as_values(controls, "controls", dtype)
        times, clock = counted(times)
        precision = checking.precision_of(times)
        times = checking.as_times(times).to(values.device)
        checking.check_shapes(times, values, controls)
        if mask is None:
            mask = torch.ones_like(times, dtype=torch.bool)
        mask = checking.as_mask(mask, times)
        checking.check_numbers(times, values, controls, mask, precision)
        lengths = mask.sum(1)
        self.times = torch.where(mask, times, times.gather(1, lengths[:, None] - 1))
        self.values = cutting.zero_where(~mask, values)
        self.controls = None if controls is None else cutting.zero_where(~mask, controls)
        self.mask = mask
        self.about = About.of(about).clocked(clock)
        self.about.check(len(self), self.dim, self.control_dim)
        if controls is None and not self.complete:
            # With controls they stay, because a control may have changed there.
            kept = self.select(cutting.with_any_value(self.values, mask))
            self.times, self.values, self.mask = kept.times, kept.values, kept.mask

    @classmethod
    def from_array(
        cls, values: Any, spacing: float = 1.0, start: float = 0.0, controls: Any = None
    ) -> Sequences:
        """Sequences sampled regularly: `values (batch, time, dim)`, `spacing` apart."""
        if isinstance(spacing, Tensor) and spacing.numel() == 1:
            spacing = spacing.item()
        require_number("spacing, the time between two observations,", spacing, above=0)
        require_number("start", start)
        values = checking.as_values(values, "values", None)
        if values.ndim != 3:
            raise InvalidInput(checking.shape_rule(values))
        count = values.shape[1]
        # Whole numbers stay whole, so that none is rounded.
        whole = isinstance(start, Integral) and isinstance(spacing, Integral)
        index = torch.arange(count, dtype=torch.int64 if whole else torch.float64)
        times = start + spacing * index
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
        rows, clock = counted_rows(times)
        return cls(*checking.as_rows(values, rows, controls), about=About().clocked(clock))

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        id: str | None = None,
        time: str,
        values: str | Sequence[str],
        controls: str | Sequence[str] | None = None,
        duplicates: str = "error",
        unit: str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Sequences:
        """Sequences from a frame of pandas, polars or pyarrow with one row per observation.

        The arguments name columns. Rows with the same `id` are one sequence, whose times must
        increase; rows of different ids may interleave. Without an `id` the table is one sequence.
        `duplicates` says what becomes of rows of one id at one time: `"error"`, `"first"`,
        `"last"` or `"mean"`.

        Times are datetimes, dates, durations, integers or floats. `unit` is the unit of model time
        for the first three, `"ns"`, `"us"`, `"ms"`, `"s"`, `"min"`, `"h"` or `"D"`; by default
        seconds, and days for dates. Values get torch's default dtype unless there is a `dtype`.
        """
        table = read_table(frame, id, time, values, controls, duplicates, unit)
        return cls(*table[:4], dtype=dtype, about=table.about)

    def to_table(self, like: Any = None) -> Any:
        """A frame with a row per observation: ids and stamps as they came in, values, controls.

        `like` is a frame of the library to use or its name; by default the one that came in.
        """
        rows, at = (part.cpu().numpy() for part in self.mask.nonzero().T)
        columns = self.about.columns(self.values[self.mask])
        if self.controls is not None:
            columns |= self.about.control_columns(self.controls[self.mask])
        times = self.times.cpu().numpy()[rows, at]
        return write_table(self.about, rows, times, columns, like)

    @classmethod
    def concat(cls, parts: Sequence[Sequences]) -> Sequences:
        """One batch from several, padded to the longest."""
        cutting.check_kinds(parts, cls)
        cutting.check_alike([(part.dim, part.control_dim) for part in parts])
        controls = [part.controls for part in parts if part.controls is not None]
        return cls._trusted(
            cutting.stack_padded([part.times for part in parts], hold=True),
            cutting.stack_padded([part.values for part in parts]),
            cutting.stack_padded(controls) if controls else None,
            cutting.stack_padded([part.mask for part in parts]),
            merged([part.about for part in parts]),
        )

    @classmethod
    def _trusted(
        cls, times: Tensor, values: Tensor, controls: Tensor | None, mask: Tensor, about: About
    ) -> Sequences:
        """Build without checks, from parts of sequences that were checked before."""
        self = object.__new__(cls)
        self.times, self.values, self.controls, self.mask = times, values, controls, mask
        self.about = about
        return self

    def _each(self, change: Callable[[Tensor], Tensor], about: About | None = None) -> Sequences:
        """The same change of times, values, controls and mask."""
        return self._trusted(
            change(self.times),
            change(self.values),
            None if self.controls is None else change(self.controls),
            change(self.mask),
            self.about if about is None else about,
        )

    def __len__(self) -> int:
        return self.times.shape[0]

    def facts(self) -> dict[str, Any]:
        """What its repr shows."""
        low, high = int(self.lengths.min()), int(self.lengths.max())
        facts = {
            "batch": len(self),
            "observations": low if low == high else f"{low} to {high}",
            "dim": self.dim,
            "control": self.control_dim,
            "dtype": self.values.dtype,
            "device": self.values.device,
        }
        known = self.about.names()
        return facts | known | (self.about.span(self.times[:, 0], self.ends) if known else {})

    def __getitem__(self, index: Any) -> Sequences:
        """Some of the sequences, by number, slice, list or mask, always as a batch."""
        index = cutting.as_index(index, len(self), self.times.device)
        mask = self.mask[index]
        cutting.check_any(mask.shape[0], len(self))
        longest = int(mask.sum(1).max())
        about = self.about.pick(cutting.host_index(index))
        return self._each(lambda part: part[index][:, :longest], about)

    def named(
        self,
        ids: Iterable[Any] | None = None,
        features: Iterable[str] | None = None,
        control_names: Iterable[str] | None = None,
    ) -> Sequences:
        """The same sequences with other ids or names; None keeps those there are."""
        about = self.about.named(ids, features, control_names)
        about.check(len(self), self.dim, self.control_dim)
        return self._each(lambda part: part, about)

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
    def complete(self) -> bool:
        """Whether no value is missing."""
        return not self.values.is_floating_point() or not bool(self.values.isnan().any())

    def replaced(self, values: Tensor, controls: Tensor | None) -> Sequences:
        """The same times with other values and controls; padding stays zero."""
        controls = None if controls is None else cutting.zero_where(~self.mask, controls)
        values = cutting.zero_where(~self.mask, values)
        return self._trusted(self.times, values, controls, self.mask, self.about)

    @property
    def typical_spacing(self) -> float:
        """Median time between two observations."""
        return cutting.median_gap(self.times, self.mask)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Sequences:
        """The same on another device, or with values and controls of another dtype.

        `uint8` images become floating point in [0, 1]. Times stay double precision, except on
        devices that have none.
        """
        checking.require_floating(dtype)
        device = cutting.as_device(device)
        values = self.values.to(device)
        if dtype is not None and values.dtype != dtype:
            values = values.to(dtype) / 255 if values.dtype == torch.uint8 else values.to(dtype)
        clock = torch.float32 if values.device.type == "mps" else torch.float64
        controls = None if self.controls is None else self.controls.to(device, dtype)
        times, mask = self.times.to(device, clock), self.mask.to(device)
        return self._trusted(times, values, controls, mask, self.about)

    def split(self, fractions: Sequence[float], seed: int | None = None) -> list[Sequences]:
        """Disjoint parts with the given fractions of the sequences, shuffled if there is a seed.

        Sequences with the same id, such as the windows of one log, stay together: no part has seen
        an id of another. The fractions are then fractions of the ids.
        """
        return [self[rows] for rows in cutting.split_rows(len(self), self.ids, fractions, seed)]

    def split_by_time(self, time: Any) -> tuple[Sequences, Sequences]:
        """What was observed before a time, and what from then on; sequences that cross it are cut.

        `time` is a stamp of the table's kind, or a number in model time.
        """
        early, late = (
            self.gather(rows, *cutting.kept_places(keep[rows]))
            for keep in cutting.sides_of_time(self.times, self.mask, time, self.clock)
            for rows in [keep.any(1).nonzero()[:, 0]]
        )
        return early, late

    def windows(self, length: int, stride: int | None = None, max_gap: Any = None) -> Sequences:
        """Windows of `length` observations, one every `stride`, by default side by side.

        None crosses a gap longer than `max_gap`, a timedelta or a number in model time, by default
        `cutting.GAP` times the median: a sequence is cut there, and windows begin anew. What is
        shorter than a window is left out. Windows keep the id of their sequence (its number if
        there are no ids), so that `split` keeps them together.
        """
        gap = cutting.longest_gap(self.times, self.mask, self.clock, max_gap)
        stride = length if stride is None else stride
        rows, starts = cutting.window_places(self.times, self.mask, length, stride, gap)
        index = starts[:, None] + torch.arange(length, device=starts.device)
        log = self if self.ids is not None else self.named(ids=range(len(self)))
        return log.gather(rows, index)

    def head(self, count: int) -> Sequences:
        """The first `count` observations of each sequence: a context to predict from."""
        self.require_length(count)
        return self._each(lambda part: part[:, :count])

    def tail(self, count: int) -> Sequences:
        """The last `count` observations of each sequence."""
        self.require_length(count)
        index = self.lengths[:, None] - count + torch.arange(count, device=self.times.device)
        return self.gather(torch.arange(len(self), device=self.times.device), index)

    def select(self, keep: Any) -> Sequences:
        """Only the observations where `keep (batch, time)` is True; the rest become gaps."""
        keep = checking.as_flags(keep, "keep", self.times)
        rows = torch.arange(len(self), device=keep.device)
        return self.gather(rows, *cutting.kept_places(keep & self.mask))

    def require_length(self, count: int) -> None:
        """Raise unless every sequence has at least `count` observations."""
        require_number("a number of observations", count, 1, whole=True)
        checking.check_length(self.lengths, count)

    def gather(
        self,
        rows: Int[Tensor, " new_batch"],
        index: Int[Tensor, "new_batch new_time"],
        mask: Bool[Tensor, "new_batch new_time"] | None = None,
    ) -> Sequences:
        """Observations by sequence and position; padding, where `mask` is False, repeats the
        position of the last."""
        about = self.about.pick(cutting.host_index(rows))
        taken = self._each(lambda part: part[rows[:, None], index], about)
        if mask is not None:
            taken.mask, taken.values = mask, cutting.zero_where(~mask, taken.values)
            if taken.controls is not None:
                taken.controls = cutting.zero_where(~mask, taken.controls)
        return taken
