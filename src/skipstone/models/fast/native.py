"""How the compiled library is called: structures that mirror those in C++, and weights."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from skipstone.models.networks import ResidualMLP

if TYPE_CHECKING:
    from skipstone.models.pcode import PCODE

_LONG, _DOUBLE, _POINTER = ctypes.c_long, ctypes.c_double, ctypes.c_void_p


class _Shape(ctypes.Structure):
    """`Shape` in `networks.h`."""

    _fields_ = (
        *((name, _LONG) for name in ("dim", "inputs", "hidden", "layers", "step_layers")),
        *((name, _LONG) for name in ("context", "moves", "motion", "whole_steps", "drive")),
        *((name, _DOUBLE) for name in ("min_step", "max_step", "velocity_scale")),
    )


class _Batch(ctypes.Structure):
    """`Batch` in `walk.h`."""

    _fields_ = (
        *((name, _LONG) for name in ("rows", "time", "keep")),
        *((name, _DOUBLE) for name in ("tolerance", "overshoot")),
        *((name, _POINTER) for name in ("values", "inputs", "clock", "lengths")),
        *((name, _POINTER) for name in ("scored", "explore", "own", "changed", "given")),
        *((name, _POINTER) for name in ("once", "twice")),
        *((name, _POINTER) for name in ("at", "cut", "is_past", "reach")),
        *((name, _POINTER) for name in ("predicted", "error", "step", "start", "past")),
    )


class _Upstream(ctypes.Structure):
    """`Upstream` in `backward.h`."""

    _fields_ = (
        *((name, _POINTER) for name in ("error", "step", "start", "past")),
        ("steps_end", _LONG),
    )


class _Rollout(ctypes.Structure):
    """`Rollout` in `rollout.h`."""

    _fields_ = (
        *((name, _LONG) for name in ("rows", "context", "max_updates")),
        *((name, _DOUBLE) for name in ("unit", "shortest", "step")),
        *((name, _POINTER) for name in ("inputs", "values", "gaps", "start", "end")),
        *((name, _LONG) for name in ("controls", "changes")),
        ("slack", _DOUBLE),
        *((name, _POINTER) for name in ("control_times", "next_change", "once", "twice")),
        ("control_values", _POINTER),
    )


def fill(kind: type[ctypes.Structure], **fields: Any) -> ctypes.Structure:
    """A structure; tensors become pointers to their memory, which their owner has to keep."""
    return kind(
        **{
            name: value.data_ptr() if isinstance(value, Tensor) else value
            for name, value in fields.items()
        }
    )


def shape_of(model: PCODE) -> ctypes.Structure:
    """The sizes of a model."""
    config = model.config
    return _Shape(
        dim=config.dim,
        inputs=config.encoder_width,
        hidden=config.hidden,
        layers=config.layers,
        step_layers=config.step_layers,
        context=config.num_context,
        moves=config.moves,
        motion=config.reads_motion,
        whole_steps=config.whole_steps,
        drive=2 * config.control if model.crosses_controls else 0,
        min_step=config.min_step,
        max_step=config.max_step,
        velocity_scale=config.velocity_scale,
    )


def weights_of(model: PCODE) -> list[Tensor | None]:
    """All weights in the library's order; None for a bias that does not exist."""
    cell = model.cell
    return [
        *_layer_weights(model.encoder),
        *(cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh),
        *_layer_weights(model.decoder),
        *_layer_weights(model.step_size),
        *drives_of(model),
    ]


def drives_of(model: PCODE) -> list[Tensor | None]:
    """What integrals of controls add to a state, and to the decoder's first layer."""
    if not model.crosses_controls:
        return [None, None]
    effect = model.drive_effect()
    return [effect, model.decoder.first.weight @ effect]


def _layer_weights(network: nn.Module) -> list[Tensor | None]:
    """Weight and bias of each layer."""
    layers = [network]
    if isinstance(network, ResidualMLP):
        layers = [network.first, *network.inner, network.last]
    weights: list[Tensor | None] = []
    for layer in layers:
        assert isinstance(layer, nn.Linear)
        weights += [layer.weight, layer.bias]
    return weights


def pointers(tensors: list[Tensor | None]) -> ctypes.Array[Any]:
    """An array of the tensors' addresses."""
    found = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    return (_POINTER * len(found))(*found)


class Tape:
    """What a walk keeps for its backward pass. It is released with the last reference to it."""

    def __init__(self, library: ctypes.CDLL, handle: int):
        self._library, self.handle = library, _POINTER(handle)

    def __del__(self) -> None:
        self._library.release(self.handle)


class _Owned(ctypes.c_byte * 1):
    """A byte that something else lives as long as."""

    owner: Any


def tied_to(owner: Any) -> Tensor:
    """A tensor that keeps its owner alive, so that autograd decides how long that is needed."""
    byte = _Owned()
    byte.owner = owner
    return torch.frombuffer(byte, dtype=torch.int8)


def call_walk(
    library: ctypes.CDLL, model: PCODE, weights: list[Tensor | None], **fields: Any
) -> Tape | None:
    """Walk a batch; a tape if one is kept."""
    library.walk.restype = _POINTER
    batch = fill(_Batch, **fields)
    handle = library.walk(
        ctypes.byref(shape_of(model)),
        pointers(weights),
        ctypes.byref(batch),
        _LONG(torch.get_num_threads()),
    )
    return None if handle is None else Tape(library, handle)


def call_backward(
    library: ctypes.CDLL, handle: Any, gradients: list[Tensor | None], **by: Any
) -> None:
    """Add the gradients of all weights to `gradients`."""
    upstream = fill(_Upstream, **by)
    threads = _LONG(torch.get_num_threads())
    library.backward(handle, ctypes.byref(upstream), pointers(gradients), threads)


def most_memory(library: ctypes.CDLL) -> int:
    """The most bytes that walks and rollouts held at once since this was last asked."""
    library.most_memory.restype = _LONG
    return library.most_memory()


class Rolled(NamedTuple):
    """Rollouts of a batch."""

    origin: Tensor
    first: Tensor
    slope: Tensor
    knots: Tensor
    table: Tensor
    """The number of each knot's segment."""


def call_rollout(
    library: ctypes.CDLL,
    model: PCODE,
    reached: Tensor,
    status: Tensor,
    unfinished: int,
    **fields: Any,
) -> Rolled | None:
    """Roll out. Rows that use all of their updates are marked `unfinished` in `status`, and
    `reached` says where. None if a step did not advance."""
    library.rollout.restype = _POINTER
    counts = (_LONG * 3)()
    weights = [None if weight is None else weight.contiguous() for weight in weights_of(model)]
    handle = _POINTER(
        library.rollout(
            ctypes.byref(shape_of(model)),
            pointers(weights),
            ctypes.byref(fill(_Rollout, **fields)),
            _LONG(torch.get_num_threads()),
            counts,
        )
    )
    try:
        segments, updates, stuck = counts
        if stuck:
            return None
        rows, dtype, config = len(reached), model.cell.weight_hh.dtype, model.config
        found = Rolled(
            torch.empty(segments, config.dim, dtype=dtype),
            torch.empty(segments, config.hidden, dtype=dtype),
            torch.empty(segments, config.hidden, dtype=dtype),
            torch.full((rows, updates), torch.inf, dtype=torch.float64),
            torch.zeros(rows, updates, dtype=torch.long),
        )
        parts = pointers([*found, reached, status])
        library.read_rollout(
            handle, *(_POINTER(part) for part in parts), _LONG(updates), _LONG(unfinished)
        )
        return found
    finally:
        library.release_rollout(handle)


def call_decode(
    library: ctypes.CDLL,
    model: PCODE,
    lines: tuple[Tensor, Tensor, Tensor],
    index: Tensor,
    offsets: Tensor,
    integrals: Tensor | None,
) -> Tensor:
    """Predictions at offsets along lines, which are origin, first and slope, with integrals of the
    controls up to there if they drive them."""
    weights = [*_layer_weights(model.decoder), drives_of(model)[1]]
    weights = [part if part is None else part.contiguous() for part in weights]
    given = offsets[:0] if integrals is None else integrals
    parts = [part.contiguous() for part in (*lines, index, offsets, given)]
    values = offsets.new_empty(len(index), model.config.dim)
    library.decode(
        ctypes.byref(shape_of(model)),
        pointers(weights),
        *(_POINTER(part.data_ptr()) for part in parts),
        _LONG(len(index)),
        _POINTER(values.data_ptr()),
        _LONG(torch.get_num_threads()),
    )
    return values
