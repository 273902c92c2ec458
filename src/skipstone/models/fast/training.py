"""A training step on the fast path: the walk with its search and its gradients, without Python
between operations."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from skipstone.models.arithmetic import with_inputs
from skipstone.models.controls import Integrals, changes
from skipstone.models.fast import native
from skipstone.models.learning import Draws, Knots
from skipstone.models.targets import Fitted
from skipstone.models.typing import BatchMask
from skipstone.sequences import Sequences

if TYPE_CHECKING:
    from skipstone.models.pcode import PCODE


def fit_natively(
    library: ctypes.CDLL,
    model: PCODE,
    batch: Sequences,
    draws: Draws,
    tolerance: float,
    scored: BatchMask,
) -> Fitted:
    """What the readable path finds, computed by the library."""
    config = model.config
    clock = model.clock(batch.times).contiguous()
    weights = native.weights_of(model)
    keep = torch.is_grad_enabled() and any(w is not None and w.requires_grad for w in weights)
    found = _Found(batch)
    given = draws.knots
    fields: dict[str, Any] = {
        "rows": len(batch),
        "time": batch.mask.shape[1],
        "keep": keep,
        "tolerance": tolerance,
        "overshoot": config.overshoot,
        "values": batch.values.contiguous(),
        "inputs": _encoder_inputs(model, batch, draws, clock),
        "clock": clock,
        "lengths": batch.lengths.contiguous(),
        "scored": scored,
        "explore": draws.happens("explore", config.explore, batch).contiguous(),
        "own": draws.happens("own steps", config.own_steps, batch).contiguous(),
        **_controls(model, batch, clock),
        "given": None if given is None else given.at.contiguous(),
        **vars(found),
    }
    if given is not None:
        found.cut.copy_(given.cut)
    error, step, start, past = _Walk.apply(library, model, fields, found, *weights)
    free = found.at.clone()
    free[:, : config.num_context - 1] = False
    length = (clock.gather(1, found.reach) - clock)[free].to(error.dtype)
    return Fitted(
        predicted=scored,
        values=found.predicted[scored],
        error=error[scored],
        past=past[found.is_past],
        start=start[found.at],
        step=model.min_step + F.leaky_relu(step[free]),
        length=length,
        cut=found.cut[free],
        knots=Knots(found.at, found.cut),
    )


def _controls(model: PCODE, batch: Sequences, clock: Tensor) -> dict[str, Tensor]:
    """Where controls end segments, or their integrals if they drive them."""
    if batch.controls is None:
        return {}
    if not model.crosses_controls:
        return {"changed": changes(batch.controls).contiguous()}
    once, twice = Integrals(clock, batch.controls).sums()
    return {"once": once.contiguous(), "twice": twice.contiguous()}


def _encoder_inputs(model: PCODE, batch: Sequences, draws: Draws, clock: Tensor) -> Tensor:
    gaps = clock.diff(dim=1, prepend=clock[:, :1]).to(batch.values.dtype)
    inputs = model.encoder_inputs(draws.shown(batch.values), gaps)
    return with_inputs(inputs, batch.controls).contiguous()


class _Found:
    """What a walk finds, laid out like the batch; see `Batch` in `walk.h`."""

    def __init__(self, batch: Sequences):
        mask, values = batch.mask, batch.values
        self.at, self.cut, self.is_past = (torch.zeros_like(mask) for _ in range(3))
        self.reach = torch.zeros_like(mask, dtype=torch.long)
        self.predicted = torch.zeros_like(values, memory_format=torch.contiguous_format)
        self.error, self.step, self.start, self.past = (
            torch.zeros_like(mask, dtype=values.dtype) for _ in range(4)
        )


class _Walk(torch.autograd.Function):
    """The walk as a function of the weights."""

    @staticmethod
    def forward(
        ctx: Any,
        library: ctypes.CDLL,
        model: PCODE,
        fields: dict[str, Any],
        found: _Found,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Errors of observations, outputs of the step network, errors of starts and past ends."""
        read = [None if weight is None else weight.contiguous() for weight in weights]
        tape = native.call_walk(library, model, read, **fields)
        if tape is not None:
            ctx.library, ctx.handle = library, tape.handle
            ctx.steps_end = not model.config.steps_reach_states
            ctx.save_for_backward(native.tied_to(tape))
            ctx.layout = [None if w is None else (w.shape, w.dtype) for w in weights]
        return found.error, found.step, found.start, found.past

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *by: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the weights."""
        ctx.saved_tensors  # noqa: B018  Raises if the tape has been released.
        gradients = [
            None if kind is None else torch.zeros(kind[0], dtype=kind[1]) for kind in ctx.layout
        ]
        error, step, start, past = (each.contiguous() for each in by)
        by_what = {"error": error, "step": step, "start": start, "past": past}
        native.call_backward(ctx.library, ctx.handle, gradients, **by_what, steps_end=ctx.steps_end)
        return (None, None, None, None, *gradients)
