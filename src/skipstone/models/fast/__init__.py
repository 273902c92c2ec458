"""The fast path of the PC-ODE: the same arithmetic as the readable one, compiled.

Whether it applies is decided here and nowhere else. Everything else takes the readable path, which
is `pcode.py`, `loop.py`, `search.py` and `rollout.py`; tests hold the two together.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from skipstone.models.fast import build
from skipstone.models.learning import Draws
from skipstone.models.networks import ResidualMLP
from skipstone.models.targets import Fitted
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


def fit_lines(model: PCODE, batch: Sequences, draws: Draws, tolerance: float) -> Fitted | None:
    """`PCODE.fit_lines` by the fast path; None where it does not apply."""
    if batch.values.requires_grad or (draws.noise is not None and draws.noise.requires_grad):
        return None
    library = _library(model, batch.values)
    if library is None:
        return None
    from skipstone.models.fast import training

    return training.fit_lines(library, model, batch, draws, tolerance)


def _library(model: PCODE, values: Tensor) -> ctypes.CDLL | None:
    """The library for these values, if this model can use it."""
    applies = (
        _ENABLED.get()
        and values.device.type == "cpu"
        and values.dtype in build.PRECISIONS
        and _is_plain(model)
    )
    return build.library(values.dtype) if applies else None


def _is_plain(model: PCODE) -> bool:
    """Whether a model is a PC-ODE of our own layers, with nothing overridden or hooked in."""
    from skipstone.models.pcode import PCODE

    parts = (model.encoder, model.decoder, model.step_size)
    kinds = (ResidualMLP, nn.Linear)
    return (
        type(model) is PCODE
        and type(model.cell) is nn.GRUCell
        and all(type(part) in kinds for part in parts)
        and all(
            type(module) in (*kinds, PCODE, nn.GRUCell, nn.ModuleList)
            and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
            for module in model.modules()
        )
        and not torch.compiler.is_compiling()
    )
