"""Billiards as one would first write it: one trajectory, one ball, one wall at a time.

The oracle for the vectorised simulator, and what the benchmark measures it against.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class Collision(NamedTuple):
    time: float
    partners: tuple[int, int | str]
    """A ball and another one, or a ball and the wall ("x0", "x1", "y0", ...)."""


def simulate_one(
    positions: np.ndarray, velocities: np.ndarray, times: np.ndarray, radius: float
) -> tuple[np.ndarray, list[Collision]]:
    """Positions (time, ball, axis) of one trajectory at increasing times, and its collisions."""
    where = [list(map(float, ball)) for ball in positions]
    speed = [list(map(float, ball)) for ball in velocities]
    now, seen, collisions = 0.0, [], []
    for time in times:
        while True:
            delay, partners = _next_collision(where, speed, radius)
            if now + delay > time:
                break
            _move(where, speed, delay)
            now += delay
            _collide(where, speed, partners)
            collisions.append(Collision(now, partners))
        _move(where, speed, time - now)
        now = float(time)
        seen.append([list(ball) for ball in where])
    return np.array(seen), collisions


def _next_collision(where: Any, speed: Any, radius: Any) -> Any:
    best = (math.inf, (0, "x0"))
    for ball, (place, velocity) in enumerate(zip(where, speed, strict=True)):
        for axis, (x, v) in enumerate(zip(place, velocity, strict=True)):
            name = "xyz"[axis]
            if v > 0:
                best = min(best, ((1 - radius - x) / v, (ball, name + "1")), key=_time)
            elif v < 0:
                best = min(best, ((radius - x) / v, (ball, name + "0")), key=_time)
    for one in range(len(where)):
        for two in range(one + 1, len(where)):
            delay = _meeting(where[one], where[two], speed[one], speed[two], 2 * radius)
            best = min(best, (delay, (one, two)), key=_time)
    return best


def _time(candidate: Any) -> Any:
    return candidate[0]


def _meeting(x1: Any, x2: Any, v1: Any, v2: Any, distance: Any) -> Any:
    gap = [b - a for a, b in zip(x1, x2, strict=True)]
    drift = [b - a for a, b in zip(v1, v2, strict=True)]
    a = sum(v * v for v in drift)
    b = 2 * sum(x * v for x, v in zip(gap, drift, strict=True))
    c = sum(x * x for x in gap) - distance**2
    if a == 0 or b >= 0 or b * b - 4 * a * c <= 0:
        return math.inf
    return max(0.0, (-b - math.sqrt(b * b - 4 * a * c)) / (2 * a))


def _move(where: Any, speed: Any, delay: Any) -> None:
    for place, velocity in zip(where, speed, strict=True):
        for axis, v in enumerate(velocity):
            place[axis] += v * delay


def _collide(where: Any, speed: Any, partners: Any) -> None:
    one, two = partners
    if isinstance(two, str):
        axis = "xyz".index(two[0])
        speed[one][axis] = abs(speed[one][axis]) if two[1] == "0" else -abs(speed[one][axis])
        return
    gap = [b - a for a, b in zip(where[one], where[two], strict=True)]
    length = math.sqrt(sum(x * x for x in gap))
    normal = [x / length for x in gap]
    closing = sum(n * (b - a) for n, a, b in zip(normal, speed[one], speed[two], strict=True))
    for axis, n in enumerate(normal):
        speed[one][axis] += closing * n
        speed[two][axis] -= closing * n
