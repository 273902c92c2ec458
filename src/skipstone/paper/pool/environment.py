"""The pool table as a Gymnasium environment: one shot, then the balls roll.

import gymnasium, skipstone.paper.pool
env = gymnasium.make("skipstone/Pool-v0")
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from jaxtyping import Float, UInt8

from skipstone.drawing.style import look, new_figure, pixels
from skipstone.errors import InvalidInput
from skipstone.paper.figures.shot import Shot, paint_shot
from skipstone.paper.pool.game import checked_shots, checked_tables
from skipstone.paper.tasks.billiards import RADIUS, Motion
from skipstone.paper.tasks.shots import (
    AFTER_SHOT,
    POCKET_RADIUS,
    SPACING,
    SPEEDS,
    play,
    pocket_distance,
    random_shots,
    random_tables,
)

NAME = "skipstone/Pool-v0"
"""Name of the environment in Gymnasium."""

INCHES = 3.0
"""Width of a rendered table; 480 pixels."""


class Velocities(spaces.Box):
    """Velocities of the cue ball: two numbers whose length lies within `SPEEDS`.

    Samples are drawn like the shots in the training data, not evenly from a square. With a `count`
    there is one for each environment of a vector.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count
        shape = (2,) if count is None else (count, 2)
        super().__init__(-SPEEDS[1], SPEEDS[1], shape, np.float32)

    def sample(self, mask: None = None, probability: None = None) -> Float[np.ndarray, "*count 2"]:
        """Random shots."""
        if mask is not None or probability is not None:
            raise InvalidInput("velocities cannot be masked; call sample() without arguments.")
        shots = random_shots(self.np_random, self._count or 1)
        return shots.reshape(self.shape).astype(np.float32)

    def contains(self, x: Any) -> bool:
        """Whether shots are allowed."""
        try:
            return checked_shots([x] if self._count is None else x).size == math.prod(self.shape)
        except (InvalidInput, TypeError, ValueError):
            return False

    def __repr__(self) -> str:
        return f"Velocities(speed={SPEEDS})"


@batch_space.register(Velocities)
def _velocities_of_many(space: Velocities, n: int = 1) -> Velocities:
    """The space of a vector of environments; Gymnasium's own would be a square."""
    many = Velocities(n)
    many.seed(int(space.np_random.integers(2**31)))
    return many


class Pool(gymnasium.Env[Float[np.ndarray, "4"], Float[np.ndarray, "2"]]):
    """Sink the target ball with one shot.

    An episode is one step. Both balls lie still; the action is the velocity of the cue ball; the
    true simulator plays 35 observations, 0.05 apart. The reward is 1 if the target comes within
    0.17 of the pocket at (1, 0), at any time until then, and 0 otherwise.

    Observations are x and y of the cue ball and of the target, before and after the shot. `info` of
    a step has `success`, `pocket_distance`, the closest the target came, and `trajectory`, the
    positions of both balls at each of the 36 observations.

    `reset(options={"table": [[x, y], [x, y]]})` sets the balls instead of drawing them.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012  Gymnasium's own way

    def __init__(self, render_mode: str | None = None):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InvalidInput(f'render_mode must be "rgb_array" or None; got {render_mode!r}.')
        self.render_mode = render_mode
        self.observation_space = spaces.Box(RADIUS, 1 - RADIUS, (4,), np.float32)
        self.action_space = Velocities()
        self._table: Float[np.ndarray, "2 2"] | None = None
        self._motion: Motion | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, 4], dict[str, Any]]:
        """Set up a table: a random one, or `options["table"]`."""
        super().reset(seed=seed)
        unknown = sorted(set(options or {}) - {"table"})
        if unknown:
            raise InvalidInput(f'options of a pool table can have a "table"; got {unknown}.')
        given = (options or {}).get("table")
        tables = random_tables(self.np_random, 1) if given is None else checked_tables([given])
        self._table, self._motion = tables[0], None
        return self._observed(tables[0]), {}

    def step(self, action: Any) -> tuple[Float[np.ndarray, 4], float, bool, bool, dict[str, Any]]:
        """Play a shot to its end."""
        if self._table is None or self._motion is not None:
            raise InvalidInput("a table is for one shot; call reset() before the next step().")
        shot = checked_shots([action])
        self._motion = play(self._table[None], shot)
        times = np.minimum(SPACING * np.arange(AFTER_SHOT + 1), self._motion.duration)
        trajectory = self._motion.state_at(times)[0][0]
        distance = float(pocket_distance(self._motion)[0])
        success = distance < POCKET_RADIUS
        info = {"success": success, "pocket_distance": distance, "trajectory": trajectory}
        return self._observed(trajectory[-1]), float(success), True, False, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The table as an image: the balls, and after the shot the way they went."""
        if self.render_mode is None:
            return None
        if self._table is None:
            raise InvalidInput("there is nothing to draw yet; call reset() before render().")
        with look():
            figure = new_figure(INCHES, INCHES)
            paint_shot(figure.subplots(), Shot(self._table, self._motion))
            return pixels(figure)

    def _observed(self, balls: Float[np.ndarray, "2 2"]) -> Float[np.ndarray, 4]:
        """An observation; clipped, as single precision can round a ball into the wall."""
        space = self.observation_space
        assert isinstance(space, spaces.Box)
        return np.clip(balls.ravel().astype(np.float32), space.low, space.high)


def register_environment() -> None:
    """Register the table with Gymnasium, once."""
    if NAME not in gymnasium.registry:
        gymnasium.register(NAME, entry_point="skipstone.paper.pool.environment:Pool")
