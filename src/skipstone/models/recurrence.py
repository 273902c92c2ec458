"""The gradient of a walk whose states are known: everything at once but the recurrence itself.

The search has run the cell already, so the state before every update is known. Then all updates
can be computed together, as if they did not depend on each other, and so can all derivatives; only
the gradient has to go back from update to update, one product for each round. Autograd would do the
same round by round, with small products for every weight.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

Gates = Float[Tensor, "segments three_hidden"]
States = Float[Tensor, "segments hidden"]


def rerun_cell(
    from_input: Gates,
    states: States,
    earlier: Int[Tensor, " later"],
    moves: Float[Tensor, " segments"],
    weight: Float[Tensor, "three_hidden hidden"],
    bias: Float[Tensor, " three_hidden"],
    sizes: list[int],
) -> States:
    """The states of a walk, differentiable by the input side of the cell and its weights.

    `states` are their values, round by round; round k holds `sizes[k]` of them. `earlier` numbers
    the segment before each one of all rounds but the first. `moves` is how far a unit of velocity
    moves the position before each update.
    """
    result = _Rerun.apply(from_input, states, earlier, moves, weight, bias, sizes)
    assert isinstance(result, Tensor)
    return result


class _Rerun(torch.autograd.Function):
    """GRU: state = fresh + keep·(before - fresh), where `before` has moved along its velocity."""

    @staticmethod
    def forward(
        ctx: Any,
        from_input: Tensor,
        states: Tensor,
        earlier: Tensor,
        moves: Tensor,
        weight: Tensor,
        bias: Tensor,
        sizes: list[int],
    ) -> Tensor:
        width, half = states.shape[1], states.shape[1] // 2
        before = torch.zeros_like(states)
        later = before[sizes[0] :]
        torch.index_select(states, 0, earlier, out=later)
        later[:, :half].addcmul_(later[:, half:], moves[sizes[0] :, None])
        from_state = torch.addmm(bias, before, weight.t())
        gates = (from_input[:, : 2 * width] + from_state[:, : 2 * width]).sigmoid_()
        recurrent = from_state[:, 2 * width :]
        fresh = torch.addcmul(from_input[:, 2 * width :], gates[:, :width], recurrent).tanh_()
        ctx.save_for_backward(before, gates, recurrent, fresh, earlier, moves, weight)
        ctx.sizes = sizes
        return states.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        before, gates, recurrent, fresh, earlier, moves, weight = ctx.saved_tensors
        width, half, first = weight.shape[1], weight.shape[1] // 2, ctx.sizes[0]
        reset, keep = gates[:, :width], gates[:, width:]
        # Derivatives of each update by itself.
        by_fresh = (1 - keep) * (1 - fresh.square())
        by_keep = (before - fresh) * keep * (1 - keep)
        by_reset = by_fresh * recurrent * reset * (1 - reset)
        through = torch.cat([by_reset, by_keep, by_fresh * reset], dim=1)
        grad, stop = grad.clone(), len(grad)
        to_state = torch.empty_like(through)
        for size in reversed(ctx.sizes):
            rows = slice(stop - size, stop)
            repeated = grad[rows].repeat(1, 3)
            torch.mul(repeated, through[rows], out=to_state[rows])
            stop -= size
            if stop > 0:
                back = torch.addcmul(to_state[rows] @ weight, grad[rows], keep[rows])
                back[:, half:].addcmul_(back[:, :half], moves[rows, None])
                grad.index_add_(0, earlier[rows.start - first : rows.stop - first], back)
        to_input = torch.cat([to_state[:, : 2 * width], grad * by_fresh], dim=1)
        return to_input, None, None, None, to_state.t() @ before, to_state.sum(0), None
