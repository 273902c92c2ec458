"""SOAP: Adam in the eigenbasis of the gradients' second moments.

Vyas et al., "SOAP: Improving and Stabilizing Shampoo using Adam", 2024 (arXiv 2409.11321). Written
here because its state has to fit in a checkpoint of plain tensors, and because small layers on a
CPU want few, small products.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

LARGEST = 256
"""Sides of a weight matrix longer than this are left as they are: their basis would cost more than
the rest of a training step."""

REFRESH = 10
"""Steps between two updates of the bases, which turn slowly."""


class SOAP(torch.optim.Optimizer):
    """Adam, for weight matrices in a basis in which their gradient's entries are uncorrelated.

    Adam divides every entry of a gradient by its own root mean square. That is best if entries
    vary independently, and those of a weight matrix do not: rows and columns share what flows
    through the layer. In the eigenbasis of the mean of G Gᵀ (left) and of Gᵀ G (right) they nearly
    do.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.95, 0.95),
        eps: float = 1e-8,
    ):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update; the very first only looks at the gradients, to find the bases."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if state:
                    _update(weight, weight.grad, state, **group)
                else:
                    state |= _initial(weight.grad)
        return loss


def _initial(gradient: Tensor) -> dict[str, Tensor]:
    state = {
        "step": torch.tensor(0.0),
        "mean": torch.zeros_like(gradient, memory_format=torch.contiguous_format),
        "square": torch.zeros_like(gradient, memory_format=torch.contiguous_format),
    }
    for side, moment in _moments(gradient).items():
        state[side] = moment
        # In double precision: units that are never active leave rows of zeros, and with many equal
        # eigenvalues single precision may not converge, or answer with NaN.
        basis = torch.linalg.eigh(moment.double()).eigenvectors
        # Largest eigenvalue first, as the refreshes keep it.
        state[f"{side}_basis"] = basis.flip(1).to(moment).contiguous()
    return state


def _moments(gradient: Tensor) -> dict[str, Float[Tensor, "side side"]]:
    """G Gᵀ and Gᵀ G, for the sides of a matrix that are worth a basis."""
    if gradient.ndim != 2:
        return {}
    rows, columns = gradient.shape
    moments = {}
    if 1 < rows <= LARGEST:
        moments["left"] = gradient @ gradient.T
    if 1 < columns <= LARGEST:
        moments["right"] = gradient.T @ gradient
    return moments


def _update(
    weight: Tensor,
    gradient: Tensor,
    state: dict[str, Tensor],
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    **_: Any,
) -> None:
    """Adam's step in the basis found so far; then the bases learn from this gradient."""
    state["step"] += 1
    step, (keep, keep_square) = int(state["step"]), betas
    mean, square = state["mean"], state["square"]
    # The mean is kept unturned, so that it stays right when the basis turns.
    mean.lerp_(gradient, 1 - keep)
    turned = _turn(gradient, state)
    square.mul_(keep_square).addcmul_(turned, turned, value=1 - keep_square)
    spread = (square / (1 - keep_square**step)).sqrt_().add_(eps)
    change = _turn(mean, state).div_(spread)
    weight.sub_(_turn_back(change, state), alpha=lr / (1 - keep**step))
    for side, moment in _moments(gradient).items():
        state[side].lerp_(moment, 1 - keep_square)
    if step % REFRESH == 0:
        for dim, side in enumerate(("left", "right")):
            if side in state:
                _refresh(state, side, dim)


def _turn(values: Tensor, state: dict[str, Tensor]) -> Tensor:
    """Into the basis; a new tensor."""
    turned = state["left_basis"].T @ values if "left" in state else values.clone()
    return turned @ state["right_basis"] if "right" in state else turned


def _turn_back(values: Tensor, state: dict[str, Tensor]) -> Tensor:
    turned = state["left_basis"] @ values if "left" in state else values
    return turned @ state["right_basis"].T if "right" in state else turned


def _refresh(state: dict[str, Tensor], side: str, dim: int) -> None:
    """One power iteration, orthogonalised: it follows the eigenvectors at a fraction of the cost
    of finding them. The squares go along when eigenvalues change places."""
    moment, basis = state[side], state[f"{side}_basis"]
    turned = moment @ basis
    order = (basis * turned).sum(0).argsort(descending=True)
    state["square"] = state["square"].index_select(dim, order)
    # Laid out as a checkpoint keeps it: products round differently in another layout.
    state[f"{side}_basis"] = torch.linalg.qr(turned[:, order]).Q.contiguous()
