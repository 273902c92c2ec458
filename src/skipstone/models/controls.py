"""Known inputs over time: a control holds its value until the next one."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.typing import BatchTimes, Lengths, Rows
from skipstone.sequences import Sequences


class ControlSignal:
    """Piecewise-constant controls of a batch, for any time after the context."""

    def __init__(
        self, times: BatchTimes, values: Float[Tensor, "batch time control"], slack: float
    ):
        self._times = times.contiguous()
        self._values = values
        self._slack = slack
        changed = changes(values)
        starts = torch.where(changed, times, torch.inf)
        following = starts.flip(1).cummin(dim=1).values.flip(1)
        never = torch.full_like(times[:, :1], torch.inf)
        self._next_change = torch.cat([following[:, 1:], never], dim=1)

    @classmethod
    def after(cls, context: Sequences, controls: Any, slack: float) -> ControlSignal | None:
        """The controls from the last observation of a context on; None for data without any."""
        if context.controls is None:
            if controls is not None:
                raise InvalidInput(
                    "controls were given to a model that takes none. Build the model with "
                    "controls in its training data."
                )
            return None
        times, values = context.times[:, -1:], context.controls[:, -1:]
        if controls is not None:
            later_times, later = _checked(controls, context)
            times, values = torch.cat([times, later_times], 1), torch.cat([values, later], 1)
        return cls(times, values, slack)

    def tables(self) -> dict[str, Any]:
        """What a lookup needs, by the names of `Rollout` in `fast/rollout.h`."""
        return {
            "controls": self._values.shape[2],
            "changes": self._times.shape[1],
            "slack": self._slack,
            "control_times": self._times,
            "next_change": self._next_change.contiguous(),
            "control_values": self._values.contiguous(),
        }

    def at(self, rows: Rows, now: Lengths) -> Tensor:
        """The controls of these rows at these times."""
        return self._values[rows, self._position(rows, now)]

    def next_change(self, rows: Rows, now: Lengths) -> Lengths:
        """When the controls of these rows next change, infinity if they never do."""
        return self._next_change[rows, self._position(rows, now)]

    def _position(self, rows: Tensor, now: Tensor) -> Rows:
        now = now.detach()[:, None] + self._slack
        return torch.searchsorted(self._times[rows], now, right=True)[:, 0] - 1


def changes(values: Float[Tensor, "batch time control"]) -> Tensor:
    """Where a control differs from the one before it; False at the first."""
    changed = (values[:, 1:] != values[:, :-1]).any(-1)
    return torch.cat([torch.zeros_like(changed[:, :1]), changed], dim=1)


def _checked(controls: Any, context: Sequences) -> tuple[Tensor, Tensor]:
    """Times and values of controls, checked to lie after the context."""
    try:
        times, values = controls
    except (TypeError, ValueError):
        raise InvalidInput(
            "controls must be a pair: times, (time,) or (batch, time), and values, (time, control) "
            f"for all rows or (batch, time, control); got {type(controls).__name__}."
        ) from None
    times = torch.as_tensor(times, dtype=context.times.dtype, device=context.times.device)
    values = torch.as_tensor(values, dtype=context.values.dtype, device=context.values.device)
    shape = (len(context), times.shape[-1] if times.ndim else 0, context.control_dim)
    if tuple(values.shape) not in (shape, shape[1:]) or times.ndim not in (1, 2):
        raise InvalidInput(
            f"controls must have times of shape (time,) or (batch, time) and values of shape "
            f"{shape}, or {shape[1:]} for all rows; got {tuple(times.shape)} and "
            f"{tuple(values.shape)}."
        )
    values = values.expand(shape)
    times = times.expand(len(context), -1)
    if not bool(times.isfinite().all() & values.isfinite().all()):
        raise InvalidInput("controls must be finite; got NaN or infinity.")
    if bool((times.diff(dim=1) <= 0).any()):
        row = int((times.diff(dim=1) <= 0).nonzero()[0, 0])
        raise InvalidInput(f"times of controls must increase; those of trajectory {row} do not.")
    if times.shape[1] and bool((times[:, 0] <= context.ends).any()):
        row = int((times[:, 0] <= context.ends).nonzero()[0, 0])
        raise InvalidInput(
            "controls after the context must be later than its last observation, whose control "
            f"it holds already; trajectory {row} has one at {times[row, 0].item():.7g} and its "
            f"context ends at {context.ends[row].item():.7g}."
        )
    return times, values
