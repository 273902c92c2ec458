"""`Scene`: how trajectories of one kind are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

FLATTEST = 0.6
"""Least height of a picture in the plane as a share of its width, and the other way round."""

MARGIN = 0.08
"""Room around paths in the open, as a share of their extent."""


@dataclass(frozen=True)
class Scene:
    """How trajectories of one kind are drawn."""

    kind: Literal["time", "plane", "film"]
    """Positions over time, paths in the plane, or images side by side."""
    radius: float | None = None
    """Radius of the balls in their unit box; None for points in the open."""
    pocket: tuple[float, float, float] | None = None
    """x, y and radius of a pocket."""
    labels: tuple[str, ...] = ()
    """Names of the balls; "ball 0" and so on if empty."""

    def paths(
        self, values: Float[np.ndarray, "moments dim"]
    ) -> list[Float[np.ndarray, "moments axis"]]:
        """The path of each ball: y for balls over time, x and y in the plane."""
        axes = 1 if self.kind == "time" else 2
        return list(np.moveaxis(values.reshape(len(values), values.shape[1] // axes, axes), 1, 0))

    def limits(self, points: Float[np.ndarray, "points 2"]) -> tuple[np.ndarray, np.ndarray]:
        """Lower left and upper right corner of a picture of these points."""
        if self.kind == "film" or self.radius is not None:
            return np.zeros(2), np.ones(2)
        low, high = points.min(axis=0), points.max(axis=0)
        size = (high - low).max()
        # A straight line needs some room around it to be seen as one.
        room = np.maximum(MARGIN * size, (FLATTEST * size - (high - low)) / 2)
        return low - room, high + room
