"""Frictionless billiards in the unit box, simulated exactly from collision to collision.

Between collisions balls move on straight lines, so the next collision time has a closed form.
Every round advances each trajectory of the batch to its own next collision; trajectories that are
done leave the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from skipstone.errors import InvalidInput, require_number
from skipstone.paper.tasks.events import Events, Kind

RADIUS = 0.1
"""Radius of a ball."""

SLACK = 1e-9
"""Depth by which balls may overlap at the start, from rounding."""

GRAZING = 1e-12
"""Contacts with cos² of the impact angle below this are ignored.

They would change velocities by a millionth at most; without them balls overlap by less than 1e-12.
"""

STILL = 1e-13
"""Balls that approach more slowly than this share of their own speed do not collide.

Otherwise rounding errors of velocities could make touching balls collide for ever.
"""

MOST_COLLISIONS = 100_000
"""Collisions of one trajectory after which its balls count as jammed."""

State = Float[np.ndarray, "batch ball axis"]


class Segments(NamedTuple):
    """Straight pieces of motion; trajectory i owns rows `offsets[i]` to `offsets[i + 1]`."""

    offsets: Int[np.ndarray, " batch_plus_one"]
    starts: Float[np.ndarray, " segment"]
    durations: Float[np.ndarray, " segment"]
    positions: Float[np.ndarray, "segment ball axis"]
    velocities: Float[np.ndarray, "segment ball axis"]


@dataclass(frozen=True)
class Motion:
    """Motion of balls from time 0 to `duration`: the start, and every collision."""

    positions: State
    """Positions at time 0."""
    velocities: State
    """Velocities at time 0."""
    duration: float
    """End of the motion."""
    events: Events
    """Every collision until then."""

    @cached_property
    def segments(self) -> Segments:
        """The straight pieces between collisions."""
        at = self.events.offsets[:-1]
        offsets = self.events.offsets + np.arange(len(self.events.offsets))
        starts = np.insert(self.events.times, at, 0.0)
        ends = np.append(starts[1:], 0.0)
        ends[offsets[1:] - 1] = self.duration
        return Segments(
            offsets,
            starts,
            ends - starts,
            np.insert(self.events.positions, at, self.positions, axis=0),
            np.insert(self.events.velocities, at, self.velocities, axis=0),
        )

    def state_at(
        self, times: Any
    ) -> tuple[
        Float[np.ndarray, "batch time ball axis"], Float[np.ndarray, "batch time ball axis"]
    ]:
        """Positions and velocities at any `times`, shape `(time,)` or `(batch, time)`.

        At the very time of a collision the velocities are those after it.
        """
        times = self._checked_times(times)
        segments = self.segments
        index = _last_at_or_before(segments, times)
        velocities = segments.velocities[index]
        elapsed = times - segments.starts[index]
        positions = segments.positions[index] + velocities * elapsed[..., None, None]
        return positions, velocities

    def _checked_times(self, times: Any) -> Float[np.ndarray, "batch time"]:
        times = np.asarray(times, dtype=np.float64)
        batch = len(self.positions)
        if times.ndim not in (1, 2) or (times.ndim == 2 and len(times) != batch):
            raise InvalidInput(
                f"times must have shape (time,) or (batch, time) with batch {batch}; "
                f"got {times.shape}."
            )
        if not np.all((times >= 0) & (times <= self.duration)):
            raise InvalidInput(
                f"times must lie in the simulated span from 0 to {self.duration:g}; got "
                f"{times.min():g} to {times.max():g}. Simulate for longer."
            )
        return np.broadcast_to(times, (batch, times.shape[-1]))


def simulate(positions: Any, velocities: Any, duration: float, radius: float = RADIUS) -> Motion:
    """Play out `positions` and `velocities` of shape (batch, ball, axis) until `duration`.

    Any number of equal balls on a line, on a table or in a cube, between walls at 0 and 1 of each
    axis, without friction and perfectly elastic. Collisions that happen at the same time are
    resolved one after another, walls first, then pairs in the order of their balls, until no
    contact is closing any more.
    """
    position, velocity = _checked_state(positions, velocities, radius)
    require_number("duration", duration, 0)
    start = position.copy(), velocity.copy()
    rows, time = np.arange(len(position)), np.zeros(len(position))
    rounds: list[tuple[np.ndarray, ...]] = []
    while True:
        delay, contact = _next_contact(position, velocity, radius)
        going = time + delay <= duration
        if not going.any():
            return Motion(*start, float(duration), _gather(rounds, *start))
        rows, time, delay, contact, position, velocity = (
            array[going] for array in (rows, time, delay, contact, position, velocity)
        )
        time += delay
        position += velocity * delay[:, None, None]
        what = _bounce(position, velocity, contact, radius)
        rounds.append((rows, time.copy(), *what, position.copy(), velocity.copy()))
        if len(rounds) > MOST_COLLISIONS:
            raise InvalidInput(
                f"balls must have room to move; trajectory {rows[0]} had {MOST_COLLISIONS:,} "
                f"collisions by time {time[0]:g}. Use fewer or smaller balls, or less time."
            )


def _next_contact(
    position: State, velocity: State, radius: float
) -> tuple[Float[np.ndarray, " batch"], Int[np.ndarray, " batch"]]:
    """Time to the next collision of each trajectory, and the index of its contact."""
    batch = len(position)
    walls = _wall_delays(position, velocity, radius).reshape(batch, -1)
    delays = np.concatenate([walls, _pair_delays(position, velocity, radius)], axis=1)
    contact = delays.argmin(axis=1)
    return delays[np.arange(batch), contact], contact


def _wall_delays(position: State, velocity: State, radius: float) -> State:
    ahead = np.where(velocity > 0, 1 - radius, radius)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        delay = (ahead - position) / velocity
    return np.where(velocity == 0, np.inf, np.maximum(delay, 0))


def _pair_delays(
    position: State, velocity: State, radius: float
) -> Float[np.ndarray, "batch pair"]:
    """Solve |gap + closing·t| = 2·radius for the first t ≥ 0, for every pair of balls."""
    one, two = _pairs(position.shape[1])
    gap = position[:, two] - position[:, one]
    closing = velocity[:, two] - velocity[:, one]
    # Lengths stay squared: distance is |gap|², speed |closing|², own |velocity|².
    approach = np.einsum("bpa,bpa->bp", gap, closing)
    speed = np.einsum("bpa,bpa->bp", closing, closing)
    distance = np.einsum("bpa,bpa->bp", gap, gap)
    own = np.einsum("bna,bna->bn", velocity, velocity)
    closes = approach < -STILL * np.sqrt(distance * (own[:, one] + own[:, two]))
    contact = (2 * radius) ** 2
    # Rounding can leave touching balls a hair inside each other: that counts as touching.
    apart = np.maximum(distance - contact, 0)
    discriminant = approach**2 - speed * apart
    meets = closes & (discriminant > GRAZING * speed * contact)
    # The usual root (-b - √d)/a cancels for balls that almost touch; c/(-b + √d) does not.
    delay = np.full(meets.shape, np.inf)
    np.divide(apart, np.sqrt(np.abs(discriminant)) - approach, out=delay, where=meets)
    return delay


def _bounce(
    position: State, velocity: State, contact: Int[np.ndarray, " batch"], radius: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Change `velocity` in place by each trajectory's contact; return kind, ball and other."""
    balls, axes = position.shape[1:]
    at_wall = contact < balls * axes
    ball, axis = np.divmod(contact, axes)
    rows = np.flatnonzero(at_wall)
    touched = rows, ball[rows], axis[rows]
    upper = velocity[touched] > 0
    position[touched] = np.where(upper, 1 - radius, radius)
    velocity[touched] *= -1
    other = 2 * axis
    other[rows] += upper

    rows = np.flatnonzero(~at_wall)
    one, two = (index[contact[rows] - balls * axes] for index in _pairs(balls))
    ball[rows], other[rows] = one, two
    # Equal masses: the parts of the velocities along the line of centres are exchanged.
    gap = position[rows, two] - position[rows, one]
    closing = velocity[rows, two] - velocity[rows, one]
    share = np.einsum("ra,ra->r", gap, closing) / np.einsum("ra,ra->r", gap, gap)
    exchange = share[:, None] * gap
    velocity[rows, one] += exchange
    velocity[rows, two] -= exchange
    return np.where(at_wall, Kind.WALL, Kind.BALL), ball, other


def _pairs(balls: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(balls, 1)


def _gather(rounds: Sequence[tuple[np.ndarray, ...]], position: State, velocity: State) -> Events:
    """Events of all rounds, ordered by trajectory; within one they are in order of time already."""
    batch = len(position)
    integers = np.zeros(0, dtype=np.int64)
    nothing = (integers, np.zeros(0), *(integers,) * 3, position[:0], velocity[:0])
    rows, *columns = (np.concatenate(parts) for parts in zip(nothing, *rounds, strict=True))
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(batch + 1))
    return Events(offsets, *(column[order] for column in columns))


def _last_at_or_before(
    segments: Segments, times: Float[np.ndarray, "batch time"]
) -> Int[np.ndarray, "batch time"]:
    """The last segment that has started at each time, by bisection of all at once."""
    low = np.broadcast_to(segments.offsets[:-1, None], times.shape)
    high = np.broadcast_to(segments.offsets[1:, None], times.shape)
    longest = int(np.diff(segments.offsets).max())
    for _ in range(longest.bit_length()):
        middle = (low + high) // 2
        started = segments.starts[middle] <= times
        low, high = np.where(started, middle, low), np.where(started, high, middle)
    return low


def _checked_state(positions: Any, velocities: Any, radius: float) -> tuple[State, State]:
    # Copies: the simulation moves them in place.
    position = np.array(positions, dtype=np.float64)
    velocity = np.array(velocities, dtype=np.float64)
    require_number("radius", radius, above=0, below=0.5)
    if position.ndim != 3 or position.shape != velocity.shape or 0 in position.shape:
        raise InvalidInput(
            "positions and velocities must have the same shape (batch, ball, axis), none of them "
            f"0; got {position.shape} and {velocity.shape}. One trajectory needs a first axis: "
            "x[None]."
        )
    if not (np.isfinite(position).all() and np.isfinite(velocity).all()):
        raise InvalidInput("positions and velocities must be finite; got NaN or infinity.")
    check_placement(position, radius)
    return position, velocity


def check_placement(position: State, radius: float = RADIUS, *, each: str = "trajectory") -> None:
    """Raise unless all balls lie within the box and apart; messages call a row `each`."""
    outside = (position < radius - SLACK) | (position > 1 - radius + SLACK)
    if outside.any():
        row, ball, _ = np.argwhere(outside)[0]
        raise InvalidInput(
            f"balls must lie within the box, centres from {radius:g} to {1 - radius:g}; ball "
            f"{ball} of {each} {row} is at {position[row, ball].tolist()}. Move it inside."
        )
    one, two = _pairs(position.shape[1])
    overlap = 2 * radius - np.linalg.norm(position[:, two] - position[:, one], axis=-1)
    if (overlap > SLACK).any():
        row, pair = np.argwhere(overlap > SLACK)[0]
        raise InvalidInput(
            f"balls must not overlap; balls {one[pair]} and {two[pair]} of {each} {row} overlap by "
            f"{overlap[row, pair]:g}. Move them apart."
        )
