"""What a training step compares: which segment predicts which observation, and from how far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.models.arithmetic import scored_observations
from skipstone.models.learning import Knots
from skipstone.models.loop import Round
from skipstone.models.typing import BatchIndex, BatchMask, BatchTimes
from skipstone.sequences import Sequences


@dataclass(frozen=True)
class Targets:
    """Index arithmetic of a training step; carries no gradient.

    Segments are numbered in the order of the rounds in which they began. An observation's number is
    `row·time + index`, its place in the flattened batch.
    """

    predicted: BatchMask
    """Which observations are predicted: those after the context."""

    begin: Int[Tensor, " segments"]
    """The observation at which each segment begins."""

    point: Int[Tensor, " points"]
    """The predicted observations."""

    point_segment: Int[Tensor, " points"]
    """The segment that predicts each of them."""

    point_offset: Float[Tensor, " points"]
    """Time since the start of that segment."""

    past: Int[Tensor, " past"]
    """Observations one past the end of a segment whose length was chosen, and not too long."""

    past_segment: Int[Tensor, " past"]
    """The segments that end one observation before them."""

    past_offset: Float[Tensor, " past"]
    """Time since the start of that segment."""

    free: Int[Tensor, " free"]
    """Segments whose length was chosen: those after the context."""

    free_lengths: Float[Tensor, " free"]
    """What their lengths should have been."""

    free_cut: Bool[Tensor, " free"]
    """True where a length is only a lower bound."""

    @classmethod
    def of(
        cls,
        batch: Sequences,
        rounds: list[Round],
        clock: BatchTimes,
        num_context: int,
        reach: BatchIndex | None,
        cut: BatchMask,
    ) -> Targets:
        """From the rounds of a walk. At a knot, `reach` is where its segment should have ended (by
        default where it did), and `cut` whether that is only a lower bound."""
        dtype, width = batch.values.dtype, batch.mask.shape[1]
        rows = torch.cat([each.front.rows for each in rounds])
        knot = torch.cat([each.front.knot for each in rounds])
        end = torch.cat([each.stop.knot for each in rounds])
        begin, is_cut = clock[rows, knot], cut[rows, knot]
        wanted = end if reach is None else reach[rows, knot]

        # The knot at or before each observation; the first observation is always one.
        latest = torch.zeros_like(batch.mask, dtype=torch.long)
        latest[rows, knot] = knot
        latest = latest.cummax(dim=1).values
        number = torch.zeros_like(latest)
        number[rows, knot] = torch.arange(len(rows), device=rows.device)

        predicted = scored_observations(batch, num_context)
        point_row, point_index = predicted.nonzero(as_tuple=True)
        point_segment = number[point_row, latest[point_row, point_index - 1]]
        free = knot >= num_context - 1
        # Another knot, and so at least one more observation, follows.
        followed = end < batch.lengths[rows] - 1
        past = (free & followed & ~is_cut & (end <= wanted)).nonzero()[:, 0]
        chosen = free.nonzero()[:, 0]
        return cls(
            predicted=predicted,
            begin=rows * width + knot,
            point=point_row * width + point_index,
            point_segment=point_segment,
            point_offset=(clock[point_row, point_index] - begin[point_segment]).to(dtype),
            past=rows[past] * width + end[past] + 1,
            past_segment=past,
            past_offset=(clock[rows[past], end[past] + 1] - begin[past]).to(dtype),
            free=chosen,
            free_lengths=(clock[rows, wanted] - begin)[chosen].to(dtype),
            free_cut=is_cut[chosen],
        )


class Fitted(NamedTuple):
    """What a training step compares with the data, whichever path computed it."""

    predicted: BatchMask
    """Which observations are predicted."""

    values: Float[Tensor, "points dim"]
    """The predictions, in the order of the flattened batch; without gradient."""

    error: Float[Tensor, " points"]
    """Squared error of each of them."""

    past: Float[Tensor, " past"]
    """Squared errors one observation past the end of segments; empty without `overshoot`."""

    start: Float[Tensor, " segments"]
    """Squared error where each segment begins: with the absolute readout, else of no meaning."""

    step: Float[Tensor, " free"]
    """Predicted lengths of the segments after the context."""

    length: Float[Tensor, " free"]
    """What their lengths should have been."""

    cut: Bool[Tensor, " free"]
    """True where a length is only a lower bound."""

    knots: Knots
    """Where segments begin."""
