"""How the knots of a batch are processed: in rounds, the k-th knot of every row together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.knots import Knots
from skipstone.sequences import Sequences


@dataclass(frozen=True)
class Rounds:
    """Index arithmetic of a training step, all of it data.

    Rows are sorted by their number of knots, so the rows of a round are a prefix of the rows of
    the round before. Segments are numbered round by round. An observation is numbered
    `row·time + index`, as in a flattened batch.
    """

    sizes: list[int]
    """Number of rows in each round."""

    observation: Int[Tensor, " segments"]
    """The observation at which each segment begins."""

    elapsed: Float[Tensor, " segments"]
    """Time since the knot before; 0 for the first."""

    predicted: Bool[Tensor, "batch time"]
    """Where an observation is predicted: everywhere but at the first of each row."""

    point: Int[Tensor, " points"]
    """The predicted observations."""

    point_segment: Int[Tensor, " points"]
    """The segment that predicts each of them."""

    point_offset: Float[Tensor, " points"]
    """Time since the start of that segment."""

    past: Int[Tensor, " past"]
    """Observations one past the end of a segment whose length was chosen."""

    past_segment: Int[Tensor, " past"]
    """The segments that end one observation before them."""

    past_offset: Float[Tensor, " past"]
    """Time since the start of that segment."""

    free: Int[Tensor, " free"]
    """Segments whose length was chosen: those after the context."""

    free_lengths: Float[Tensor, " free"]
    """Their lengths."""

    free_cut: Bool[Tensor, " free"]
    """True where a length is only a lower bound."""

    @classmethod
    def plan(
        cls,
        batch: Sequences,
        knots: Knots,
        clock: Float[Tensor, "batch time"],
        num_context: int,
    ) -> Rounds:
        """Lay out the knots of a batch; `clock` holds its times in the model's unit."""
        at, dtype = knots.at, batch.values.dtype
        count = at.sum(1)
        rank = torch.empty_like(count)
        rank[count.argsort(descending=True, stable=True)] = torch.arange(
            len(count), device=count.device
        )
        sizes = (count[None, :] > torch.arange(int(count.max()), device=at.device)[:, None]).sum(1)
        starts = sizes.cumsum(0) - sizes

        # Number of the segment that predicts an observation: that of the last knot before it.
        order = at.cumsum(1) - 1
        row, index = at.nonzero(as_tuple=True)
        number = starts[order[row, index]] + rank[row]
        time = clock[row, index]
        # The knots of a row are neighbours here; the last one's segment lasts to the row's end.
        last = torch.cat([row[1:] != row[:-1], row.new_ones(1, dtype=torch.bool)])
        following = torch.where(last, clock[row, -1], time.roll(-1))
        first = torch.cat([row.new_ones(1, dtype=torch.bool), last[:-1]])
        elapsed = torch.where(first, 0, time - time.roll(1))

        # From row-by-row order to round-by-round order.
        place = number.argsort()
        width = at.shape[1]
        predicted = batch.mask.clone()
        predicted[:, 0] = False
        point_row, point_index = predicted.nonzero(as_tuple=True)
        point_segment = starts[order[point_row, point_index - 1]] + rank[point_row]
        free = (index >= num_context - 1)[place].nonzero()[:, 0]
        # Not last in its row, so that another knot and at least one more observation follow.
        ended = (~last & (index >= num_context - 1) & ~knots.cut[row, index]).nonzero()[:, 0]
        past_row, past_index = row[ended], index.roll(-1)[ended] + 1
        lengths = (following - time)[place]
        start_time = time[place]
        return cls(
            sizes=sizes.tolist(),
            observation=(row * width + index)[place],
            elapsed=elapsed[place].to(dtype),
            predicted=predicted,
            point=point_row * width + point_index,
            point_segment=point_segment,
            point_offset=(clock[point_row, point_index] - start_time[point_segment]).to(dtype),
            past=past_row * width + past_index,
            past_segment=number[ended],
            past_offset=(clock[past_row, past_index] - time[ended]).to(dtype),
            free=free,
            free_lengths=lengths[free].to(dtype),
            free_cut=knots.cut[row, index][place][free],
        )
