"""Rollouts on the fast path."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from skipstone.models.arithmetic import with_inputs
from skipstone.models.controls import ControlSignal, Drive
from skipstone.models.fast import native
from skipstone.path import Path, Status
from skipstone.sequences import Sequences

if TYPE_CHECKING:
    from skipstone.models.pcode import PCODE


def roll_lines(
    library: ctypes.CDLL,
    model: PCODE,
    context: Sequences,
    signal: ControlSignal | None,
    end: Tensor,
    shortest: float,
    step: float | None,
    max_updates: int,
) -> Path | None:
    """The path that `rollout.py` would make; None if a step of the model does not advance."""
    from skipstone.models.pcode import PCODESegments

    clock = model.clock(context.times)
    gaps = clock.diff(dim=1, prepend=clock[:, :1]).contiguous()
    shown = model.encoder_inputs(context.values, gaps.to(context.values.dtype))
    start, reached = context.ends.contiguous(), end.clone()
    status = torch.full_like(end, Status.REACHED_END, dtype=torch.long)
    fields: dict[str, Any] = {
        "rows": len(context),
        "context": context.mask.shape[1],
        "max_updates": max_updates,
        "unit": model.config.time_unit,
        "shortest": shortest,
        "step": step or 0.0,
        "inputs": with_inputs(shown, context.controls).contiguous(),
        "values": context.values[:, -1].contiguous(),
        "gaps": gaps,
        "start": start,
        "end": end.contiguous(),
    }
    if signal is not None:
        fields |= signal.tables(model.crosses_controls)
    found = native.call_rollout(library, model, reached, status, Status.MAX_UPDATES, **fields)
    if found is None:
        return None
    empty = found.origin[:, :0]
    segments = PCODESegments(found.origin, found.first, found.slope, empty, empty)
    unit, dtype = model.config.time_unit, found.origin.dtype

    def predict(segment: Tensor, elapsed: Tensor) -> tuple[Tensor, int]:
        index = found.table.gather(1, segment)
        drive = None
        if signal is not None and model.crosses_controls:
            drive = Drive(signal, torch.arange(len(start)), found.knots.gather(1, segment))
        values, evaluations = model.predict(segments, index, (elapsed / unit).to(dtype), drive)
        return model.values_scaler.back(values), evaluations

    return Path(predict, found.knots, reached, status, about=context.about)
