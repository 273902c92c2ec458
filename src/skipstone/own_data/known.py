"""Controls that are known for the time of a forecast, from a table of their own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.own_data.tablefiles import TableColumns
from skipstone.sequences import Sequences
from skipstone.tables.clock import NANOSECONDS, Clock
from skipstone.tables.cutting import kept_places


def known_controls(
    context: Sequences, columns: TableColumns, path: Path
) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time control"]]:
    """Times and values of the controls after each context, as `rollout` takes them."""
    if not columns.controls:
        raise InvalidInput("--known is for controls; the run was trained without. Leave it out.")
    known = dataclasses.replace(columns, values=columns.controls, controls=()).read(path)
    known = known[_rows_of(context, known, path)]
    times = known.times + torch.as_tensor(_shift(context.clock, known.clock, path))[:, None]
    keep = known.mask & (times > context.ends[:, None])
    early = (~keep.any(1)).nonzero()
    if len(early):
        row = int(early[0])
        raise InvalidInput(
            f"{path}: each id must have a control after its last row, "
            f"{context.about.moment(row, context.ends[row].item())}; "
            f"{_name(context, row)} has none."
        )
    index, mask = kept_places(keep)
    # Past its last one a control holds, at times that go on to increase.
    past = (~mask).cumsum(1) * float(times[keep].abs().max().clamp(min=1.0))
    held = known.values.gather(1, index[..., None].expand(-1, -1, known.dim))
    return times.gather(1, index) + past, held


def _rows_of(context: Sequences, known: Sequences, path: Path) -> list[int]:
    """The sequence of each context's id."""
    if context.ids is None or known.ids is None:
        return [0] * len(context)
    places = {name: row for row, name in enumerate(known.ids)}
    for row, name in enumerate(context.ids):
        if name not in places:
            raise InvalidInput(
                f"{path}: each id must have controls; {_name(context, row)} has none."
            )
    return [places[name] for name in context.ids]


def _name(context: Sequences, row: int) -> str:
    return "the sequence" if context.ids is None else f"id {context.ids[row]!r}"


def _shift(context: Clock, known: Clock, path: Path) -> Float[np.ndarray, " batch"]:
    """What to add to times of one clock to have those of the other."""
    if (context.kind, context.zone is None) != (known.kind, known.zone is None):
        raise InvalidInput(
            f"{path}: times must be of the same kind as those to forecast from; got {known.kind}s "
            f"{'with' if known.zone else 'without'} a time zone for {context.kind}s "
            f"{'with' if context.zone else 'without'} one."
        )

    def start(clock: Clock) -> np.ndarray:
        ticks = np.zeros(1, dtype=object) if clock.origins is None else clock.origins
        return ticks.astype(object) * NANOSECONDS.get(clock.tick, 1)

    between = (start(known) - start(context)) / NANOSECONDS.get(context.unit, 1)
    batch = max(len(start(known)), len(start(context)))
    return np.broadcast_to(between.astype(np.float64), (batch,)).copy()
