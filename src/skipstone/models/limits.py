"""Limits of a rollout: every one ends, also where times are in another unit than the model's."""

from __future__ import annotations

import warnings

from jaxtyping import Float, Int
from torch import Tensor

from skipstone.path import Status
from skipstone.sequences import Sequences
from skipstone.tables.clock import Clock

MOST_UPDATES = 10_000
"""Updates of a trajectory unless `max_updates` says otherwise."""

MOST_STEPS = 1_000_000
"""Steps of a solver in one integration."""


OTHER_UNIT = 1_000.0
"""Factor between the observations of a context and a model's unit of time from which they are
hardly in the same unit: neighbouring ones, such as milli and micro, differ by as much."""


def describe_unit(unit: float, clock: Clock) -> str:
    """A model's unit of time for people: `0.5 s`, or a number where times are numbers."""
    return f"{unit:g} {clock.unit}".strip()


def warn_of_limit(
    status: Int[Tensor, " batch"],
    context: Sequences,
    until: Float[Tensor, " batch"],
    unit: float,
    stacklevel: int,
) -> None:
    """Warn where rows used up the updates that nobody asked to limit."""
    stopped = status == int(Status.MAX_UPDATES)
    if not bool(stopped.any()):
        return
    clock, spans = context.clock, (until - context.ends).detach() / unit
    counted = ", counted from each sequence's first stamp" if clock.origins is not None else ""
    warnings.warn(
        f"{int(stopped.sum())} of {len(status)} trajectories stopped after {MOST_UPDATES} updates, "
        "before `until`; path.status says which. The model's unit of time is "
        f"{describe_unit(unit, clock)}, and `until` is up to {float(spans.max()):.3g} of them "
        f"after the context{counted}. Are the data's times in the unit of those it was built for? "
        "If so, allow more: max_updates=...",
        stacklevel=stacklevel + 1,
    )


def warn_of_unit(context: Sequences, unit: float, stacklevel: int) -> None:
    """Warn where the observations of a context are far closer together, or far wider apart, than a
    model's unit of time: a rollout would end, and be wrong all the same."""
    gaps = context.times.detach().diff(dim=1)[context.mask[:, 1:]] / unit
    if len(gaps) == 0:
        return
    least, most = float(gaps.amin()), float(gaps.amax())
    if most * OTHER_UNIT > 1 and least < OTHER_UNIT:
        return
    warnings.warn(
        f"observations of the context are {least * unit:.3g} to {most * unit:.3g} apart, and the "
        f"model's unit of time, about the time between those it was built for, is "
        f"{describe_unit(unit, context.clock)}. Are they in the same unit? If not, convert the "
        "times; if so, train on data that are observed like these.",
        stacklevel=stacklevel + 1,
    )
