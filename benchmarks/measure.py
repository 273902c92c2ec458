"""How things are measured: wall time in turns, ratios in pairs, arithmetic and memory exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, addmm_flop

from skipstone.models import fast
from skipstone.models.fast import build, native

Run = Callable[[], object]
"""Something to time: called again and again, its result is thrown away."""

MOST_CALLS = 50
"""Calls in one turn, at most, however short they are."""


@dataclass(frozen=True)
class Spread:
    """A median between its quartiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """The quartiles of some samples."""
        return cls(*np.quantile(samples, [0.25, 0.5, 0.75]).tolist())


def interleave(
    contenders: Mapping[str, Run], rounds: int, turn_seconds: float
) -> dict[str, list[float]]:
    """Seconds per call of every contender, once per round: A, B, C, A, B, C, ...

    Whatever else happens on the machine meets all of them alike. A turn is one call, or as many
    as fill `turn_seconds`; then one more comes first and is not counted, so that a contender pays
    for its own cold caches and not for its predecessor's.
    """
    calls = {name: _calls_per_turn(run, turn_seconds) for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(_turn(run, calls[name]))
    return seconds


def _calls_per_turn(run: Run, turn_seconds: float) -> int:
    run()  # Once for caches, compilers and buffers that are made on first use.
    began = perf_counter()
    run()
    once = perf_counter() - began
    return min(MOST_CALLS, max(1, round(turn_seconds / once)))


def _turn(run: Run, calls: int) -> float:
    if calls > 1:
        run()
    began = perf_counter()
    for _ in range(calls):
        run()
    return (perf_counter() - began) / calls


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """`over / under`, each round by itself: what slowed both down in a round cancels."""
    return Spread.of([a / b for a, b in zip(over, under, strict=True)])


def flops(run: Run) -> int:
    """Floating-point operations of the matrix products in a call, two per multiply and add.

    On the readable path: the fast one has the same products, but torch does not see them.
    """
    # Counted by torch, which leaves out the in-place form.
    counter = FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten.addmm_: _in_place_addmm_flop}
    )
    with counter, fast.readable_path():
        run()
    return counter.get_total_flops()


def _in_place_addmm_flop(*shapes: Any, out_shape: Any = None, **options: Any) -> int:
    return addmm_flop(*shapes)


def peak_memory(run: Run) -> int:
    """Most bytes of tensors alive at once in a call, beyond those alive before it.

    By the allocator's own record, so it is exact and the same every time. The process's size
    would include what libraries keep and what was never given back. What the fast path held at
    most comes on top.
    """
    run()  # What lasts, such as the optimiser's state, is there before.
    library = build.library(torch.float32)
    if library is not None:
        native.most_memory(library)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    assert record.profiler is not None
    results: Any = record.profiler.kineto_results
    events = [event for event in results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    peak = int(max(np.cumsum([event.nbytes() for event in events]), default=0))
    return peak + (0 if library is None else native.most_memory(library))


def matmuls(batch: int, observations: int, hidden: int, square: int) -> dict[str, tuple[Run, int]]:
    """Matrix products of the sizes that training consists of, and a large one; with their flops.

    They write to memory that exists: allocation is no part of a machine's arithmetic.
    """
    points = batch * (observations - 1)
    sizes = [
        (batch, hidden, 3 * hidden),
        (points, hidden, 3 * hidden),
        (points, hidden, hidden),
        (square, square, square),
    ]
    return {
        f"({rows}, {inner}) @ ({inner}, {columns})": (
            _product(torch.randn(rows, inner), torch.randn(inner, columns)),
            2 * rows * inner * columns,
        )
        for rows, inner, columns in sizes
    }


def _product(left: Tensor, right: Tensor) -> Run:
    result = left @ right
    return lambda: torch.mm(left, right, out=result)
