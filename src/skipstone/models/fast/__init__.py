"""The fast path of the PC-ODE: the same arithmetic as the readable one, compiled.

Whether it applies is decided here and nowhere else. Everything else takes the readable path, which
is `pcode.py`, `loop.py`, `search.py` and `rollout.py`; tests hold the two together.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from skipstone.models.base import SteppingModel
from skipstone.models.controls import ControlSignal
from skipstone.models.fast import build
from skipstone.models.learning import Draws
from skipstone.models.networks import ResidualMLP
from skipstone.models.targets import Fitted
from skipstone.models.typing import BatchMask
from skipstone.path import Path
from skipstone.sequences import Sequences

if TYPE_CHECKING:
    from skipstone.models.pcode import PCODE

_ENABLED: ContextVar[bool] = ContextVar("enabled", default=True)


@contextlib.contextmanager
def readable_path() -> Iterator[None]:
    """Take the readable path inside this block, as with `SKIPSTONE_FAST=0`."""
    token = _ENABLED.set(False)
    try:
        yield
    finally:
        _ENABLED.reset(token)


def try_fit(
    model: PCODE, batch: Sequences, draws: Draws, tolerance: float, scored: BatchMask
) -> Fitted | None:
    """The segments of a prepared batch and the errors of the `scored` observations, by the fast
    path; None where it does not apply."""
    if batch.values.requires_grad or (draws.noise is not None and draws.noise.requires_grad):
        return None
    library = library_for(model, batch.values)
    if library is None:
        return None
    from skipstone.models.fast import training

    return training.fit_natively(library, model, batch, draws, tolerance, scored)


def try_rollout(
    model: SteppingModel[Any],
    context: Sequences,
    signal: ControlSignal | None,
    end: Tensor,
    shortest: float,
    step: float | None,
    max_updates: int,
) -> Path | None:
    """A rollout by the fast path; None where it does not apply. It has no gradients."""
    parts = [context.values, context.times, context.controls, end]
    parts += [] if signal is None else list(signal.tables(True).values())
    if _needs_gradients(model, parts):
        return None
    from skipstone.models.fast import rolling
    from skipstone.models.pcode import PCODE

    library = library_for(model, context.values)
    if library is None or not isinstance(model, PCODE):
        return None
    return rolling.roll_lines(library, model, context, signal, end, shortest, step, max_updates)


def try_decode(
    model: PCODE,
    lines: tuple[Tensor, Tensor, Tensor],
    index: Tensor,
    offsets: Tensor,
    integrals: Tensor | None = None,
) -> Tensor | None:
    """Predictions at offsets along lines, by the fast path; None where it does not apply.
    `integrals` are those of the controls up to there, if they drive the lines."""
    differentiable = _needs_gradients(model, [*lines, offsets, integrals])
    library = None if differentiable else library_for(model, offsets)
    if library is None:
        return None
    from skipstone.models.fast import native

    return native.call_decode(library, model, lines, index, offsets, integrals)


def _needs_gradients(model: nn.Module, parts: list[Any]) -> bool:
    """Whether something would be differentiated by a model's weights, or by one of the parts."""
    return torch.is_grad_enabled() and any(
        isinstance(part, Tensor) and part.requires_grad for part in (*model.parameters(), *parts)
    )


def library_for(model: nn.Module, values: Tensor) -> ctypes.CDLL | None:
    """The library for these values, if this model can use it."""
    applies = (
        # While a program is traced there are no numbers yet.
        not torch.compiler.is_compiling()
        and _ENABLED.get()
        # Lower precision is asked for.
        and not torch.is_autocast_enabled("cpu")
        and values.device.type == "cpu"
        and values.dtype in build.PRECISIONS
        and _is_plain(model)
    )
    return build.library(values.dtype) if applies else None


def _is_plain(model: nn.Module) -> bool:
    """Whether a model is a PC-ODE of our own layers, with nothing overridden or hooked in: with
    ReLU, for data without missing values and without features that do not count."""
    from skipstone.models.pcode import PCODE

    if type(model) is not PCODE:
        return False
    config = model.config
    kinds = (PCODE, ResidualMLP, nn.Linear, nn.GRUCell, nn.ModuleList)
    return (
        config.activation == "relu"
        and not (config.missing or config.targets)
        and all(
            type(module) in kinds
            and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
            for module in model.modules()
        )
    )
