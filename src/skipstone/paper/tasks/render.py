"""Balls as anti-aliased grey images, seen from above."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, UInt8

PIXELS = 28
"""Width and height of an image."""


def render(
    positions: Float[np.ndarray, "*shape ball 2"], radius: float, pixels: int = PIXELS
) -> UInt8[np.ndarray, "*shape height width"]:
    """Draw white discs on black; x points to the right and y up, so row 0 is the top.

    A pixel's brightness is the share of it that a disc covers, approximated by how far its centre
    is inside the rim: clip(radius − distance + 1/2, 0, 1), in pixels.
    """
    balls = positions.shape[-2]
    scale = np.array([pixels, -pixels], dtype=np.float32)
    # Centres in pixels: column to the right, row down from the top.
    centres = positions.reshape(-1, balls, 2) * scale + np.array([0, pixels], dtype=np.float32)
    images = np.zeros((len(centres), pixels, pixels), dtype=np.uint8)
    number = np.arange(len(centres))[:, None, None]
    # A disc touches only the pixels around it, so only those are computed.
    reach = radius * pixels + 0.5
    patch = np.arange(min(math.ceil(2 * reach) + 1, pixels))
    for ball in range(balls):
        centre = centres[:, ball].astype(np.float32)
        corner = np.clip(np.floor(centre - reach).astype(np.int64), 0, pixels - len(patch))
        column, row = (corner[:, axis, None] + patch for axis in range(2))
        across = (column + np.float32(0.5) - centre[:, :1]) ** 2
        down = (row + np.float32(0.5) - centre[:, 1:]) ** 2
        distance = np.sqrt(down[:, :, None] + across[:, None, :])
        cover = np.clip(reach - distance, 0, 1)
        index = number, row[:, :, None], column[:, None, :]
        grey = np.rint(255 * cover).astype(np.uint8)
        images[index] = np.maximum(images[index], grey)
    return images.reshape(*positions.shape[:-2], pixels, pixels)
