"""What a training step compares: which segment predicts which observation, and from how far."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.models.search import Walk
from skipstone.sequences import Sequences


@dataclass(frozen=True)
class Targets:
    """Index arithmetic of a training step, all of it data.

    Segments are numbered as in the walk. An observation is numbered `row·time + index`, as in a
    flattened batch.
    """

    predicted: Bool[Tensor, "batch time"]
    """Where an observation is predicted: everywhere but at the first of each row."""

    point: Int[Tensor, " points"]
    """The predicted observations."""

    point_segment: Int[Tensor, " points"]
    """The segment that predicts each of them."""

    point_offset: Float[Tensor, " points"]
    """Time since the start of that segment."""

    start: Int[Tensor, " segments"]
    """The observation at which each segment begins."""

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
        walk: Walk,
        clock: Float[Tensor, "batch time"],
        num_context: int,
    ) -> Targets:
        """From the segments of a walk; `clock` holds the times in the model's unit."""
        at, cut, dtype = walk.knots.at, walk.knots.cut, batch.values.dtype
        # Which of its row's knots an observation is, or is predicted from.
        order = at.cumsum(1) - 1
        row, index = at.nonzero(as_tuple=True)
        number = walk.number[row, order[row, index]]
        time = clock[row, index]
        # The knots of a row are neighbours here.
        last = torch.cat([row[1:] != row[:-1], row.new_ones(1, dtype=torch.bool)])

        # From row-by-row order to round-by-round order.
        place = number.argsort()
        width = at.shape[1]
        predicted = batch.mask.clone()
        predicted[:, 0] = False
        point_row, point_index = predicted.nonzero(as_tuple=True)
        point_segment = walk.number[point_row, order[point_row, point_index - 1]]
        free = (index >= num_context - 1)[place].nonzero()[:, 0]
        # Not last in its row, so that another knot and at least one more observation follow; and
        # not past where it should have ended.
        ended = ~last & (index >= num_context - 1) & ~cut[row, index]
        ended = (ended & (index.roll(-1) <= walk.reach[row, index])).nonzero()[:, 0]
        past_row, past_index = row[ended], index.roll(-1)[ended] + 1
        lengths = (clock[row, walk.reach[row, index]] - time)[place]
        start_time = time[place]
        return cls(
            predicted=predicted,
            point=point_row * width + point_index,
            point_segment=point_segment,
            point_offset=(clock[point_row, point_index] - start_time[point_segment]).to(dtype),
            start=(row * width + index)[place],
            past=past_row * width + past_index,
            past_segment=number[ended],
            past_offset=(clock[past_row, past_index] - time[ended]).to(dtype),
            free=free,
            free_lengths=lengths[free].to(dtype),
            free_cut=cut[row, index][place][free],
        )
