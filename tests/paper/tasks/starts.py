"""Random starts for the simulator."""

import numpy as np

from skipstone.paper.tasks.balls import place_balls, random_directions


def random_start(
    batch: int, balls: int = 2, axes: int = 2, radius: float = 0.1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of shape (batch, ball, axis)."""
    rng = np.random.default_rng(seed)
    positions = place_balls(rng, batch, balls, axes, radius)
    if axes == 3:
        return positions, rng.normal(size=positions.shape)
    return positions, random_directions(rng, (batch, balls), axes)
