"""Encoders and decoders of a model, as its config asks for: convolutional ones for images."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.models.config import ModelConfig
from skipstone.models.networks import ACTIVATIONS, ResidualMLP

CHANNELS = (16, 32)
"""Of the two convolutions, each of which halves the image."""


def encoder_of(config: ModelConfig, extra: int = 0) -> ResidualMLP | ConvEncoder:
    """The encoder of observations, controls and `extra` numbers."""
    inputs, hidden, activation = config.encoder_width + extra, config.hidden, config.activation
    if config.image:
        return ConvEncoder(config.image, inputs, hidden, activation)
    return ResidualMLP(inputs, hidden, hidden, config.layers, activation=activation)


def decoder_of(
    config: ModelConfig, extra: int = 0, output_bias: bool = True
) -> ResidualMLP | ConvDecoder:
    """The decoder of a state and `extra` numbers."""
    inputs, hidden, activation = config.hidden + extra, config.hidden, config.activation
    if config.image:
        return ConvDecoder(inputs, hidden, config.image, output_bias, activation)
    return ResidualMLP(inputs, hidden, config.dim, config.layers, output_bias, activation)


class ConvEncoder(nn.Module):
    """Two convolutions and two dense layers.

    Its input begins with one or more flat images, which become channels; the other numbers, such as
    controls, join them at the first dense layer.
    """

    def __init__(self, image: tuple[int, ...], inputs: int, hidden: int, activation: str = "relu"):
        super().__init__()
        self._function, self._image = ACTIVATIONS[activation], image
        pixels = math.prod(image)
        channels, others = divmod(inputs, pixels)
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(channels, CHANNELS[0], kernel_size=5, stride=2, padding=2),
                nn.Conv2d(CHANNELS[0], CHANNELS[1], kernel_size=3, stride=2, padding=1),
            ]
        )
        self.dense = nn.Linear(CHANNELS[1] * math.prod(_quarter(image)) + others, hidden)
        self.last = nn.Linear(hidden, hidden)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows hidden"]:
        """The whole network."""
        rows, pixels = inputs.shape[:-1], math.prod(self._image)
        inputs = inputs.reshape(-1, inputs.shape[-1])
        others = inputs.shape[1] % pixels
        images = inputs[:, : inputs.shape[1] - others].unflatten(1, (-1, *self._image))
        for convolution in self.convolutions:
            images = self._function(convolution(images))
        flat = torch.cat([images.flatten(1), inputs[:, inputs.shape[1] - others :]], dim=1)
        return self.last(self._function(self.dense(flat))).reshape(*rows, -1)


class ConvDecoder(nn.Module):
    """Two dense layers and two transposed convolutions. Like that of `ResidualMLP`, its first layer
    is affine and comes apart from the rest."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        image: tuple[int, ...],
        output_bias: bool = True,
        activation: str = "relu",
    ):
        super().__init__()
        self._function, self._image = ACTIVATIONS[activation], image
        small, wide = CHANNELS
        self.first = nn.Linear(inputs, hidden)
        self.dense = nn.Linear(hidden, wide * math.prod(_quarter(image)))
        self.enlarge = nn.ConvTranspose2d(wide, small, kernel_size=4, stride=2, padding=1)
        self.last = nn.ConvTranspose2d(
            small, 1, kernel_size=4, stride=2, padding=1, bias=output_bias
        )

    def after_first(
        self, first: Float[Tensor, "*rows hidden"], overwrite: bool = False
    ) -> Float[Tensor, "*rows pixels"]:
        """Apply the remaining layers. `overwrite` is for networks that can save memory by it."""
        rows, (height, width) = first.shape[:-1], self._image
        features = self._function(self.dense(self._function(first.reshape(-1, first.shape[-1]))))
        images = features.unflatten(1, (CHANNELS[1], *_quarter(self._image)))
        images = self.last(self._function(self.enlarge(images)))
        # Sizes that are no multiple of four are rounded up on the way.
        return images[:, 0, :height, :width].reshape(*rows, height * width)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows pixels"]:
        """The whole network."""
        return self.after_first(self.first(inputs))


def _quarter(image: tuple[int, ...]) -> tuple[int, int]:
    """Size after halving twice, rounded up."""
    return (math.ceil(image[0] / 4), math.ceil(image[1] / 4))
