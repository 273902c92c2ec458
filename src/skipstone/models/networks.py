"""The network that all models share: a residual MLP."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class ResidualMLP(nn.Module):
    """An MLP with ReLU whose inner layers add to their input.

    It comes apart after its first layer, because that is affine: along a straight line it need not
    be computed at every point.
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, layers: int = 4, output_bias: bool = True
    ):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.inner = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers - 2))
        self.last = nn.Linear(hidden, outputs, bias=output_bias)

    def after_first(
        self, first: Float[Tensor, "*rows hidden"], overwrite: bool = False
    ) -> Float[Tensor, "*rows outputs"]:
        """Apply the remaining layers; `overwrite=True` may reuse the input's memory."""
        features = F.relu(first, inplace=overwrite)
        for layer in self.inner:
            # In place where no gradient needs it: moving memory takes as long as multiplying.
            inner = F.relu(layer(features), inplace=True)
            features = inner.add_(features) if not inner.requires_grad else inner + features
        return self.last(features)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        """The whole network."""
        return self.after_first(self.first(inputs))
