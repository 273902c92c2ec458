"""The network that all models share: a residual MLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[..., Any]] = {"relu": F.relu, "silu": F.silu}
"""By the name in `ModelConfig.activation`."""


class ResidualMLP(nn.Module):
    """An MLP whose inner layers add to their input.

    It comes apart after its first layer, because that is affine: along a straight line it need not
    be computed at every point.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        layers: int = 4,
        output_bias: bool = True,
        activation: str = "relu",
    ):
        super().__init__()
        self._function = ACTIVATIONS[activation]
        self.first = nn.Linear(inputs, hidden)
        self.inner = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers - 2))
        self.last = nn.Linear(hidden, outputs, bias=output_bias)

    def after_first(
        self, first: Float[Tensor, "*rows hidden"], overwrite: bool = False
    ) -> Float[Tensor, "*rows outputs"]:
        """Apply the remaining layers; `overwrite=True` may reuse the input's memory."""
        features = self._activate(first, overwrite)
        for layer in self.inner:
            # In place where no gradient needs it: moving memory takes as long as multiplying.
            inner = self._activate(layer(features), True)
            features = inner.add_(features) if not inner.requires_grad else inner + features
        return self.last(features)

    def _activate(
        self, inputs: Float[Tensor, "*rows hidden"], overwrite: bool
    ) -> Float[Tensor, "*rows hidden"]:
        # The gradient of a ReLU needs only its output, that of a SiLU its input.
        overwrite = overwrite and (self._function is F.relu or not inputs.requires_grad)
        return self._function(inputs, inplace=overwrite)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        """The whole network."""
        return self.after_first(self.first(inputs))
