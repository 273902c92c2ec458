"""Tosses of a cube from a few lines of rigid-body code, in the columns of the real ones."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.reality.cube import CORNERS, rotations_of

RATE, SUBSTEPS = 148, 20
GRAVITY = 9.81 / 0.0524
"""In half-widths per second squared."""

INERTIA = 2 / 3
"""Of a cube of mass 1 and half-width 1."""

STIFF, DAMP, FRICTION = 4e4, 100.0, 0.2


def simulated_tosses(count: int, frames: int, seed: int = 0) -> pd.DataFrame:
    """Cubes that fall, hit the table with springs at their corners, slide and come to rest."""
    rng = np.random.default_rng(seed)
    return pd.concat([_toss(number, frames, rng) for number in range(count)], ignore_index=True)


def _toss(number: int, frames: int, rng: np.random.Generator) -> pd.DataFrame:
    place = np.array([0.0, 0.0, 3.0]) + rng.normal(0, 0.3, 3)
    velocity, spin = rng.normal(0, 8, 3), rng.normal(0, 5, 3)
    turn = rng.standard_normal(4)
    turn /= np.linalg.norm(turn)
    rows, dt = [], 1 / (RATE * SUBSTEPS)
    for frame in range(frames):
        rows.append([number, frame / RATE, *place, *turn])
        for _ in range(SUBSTEPS):
            arm = CORNERS @ rotations_of(turn[None])[0].T
            speed = velocity + np.cross(spin, arm)
            depth = np.minimum((place + arm)[:, 2], 0)
            up = np.where(depth < 0, np.maximum(-STIFF * depth - DAMP * speed[:, 2], 0), 0)
            force = np.zeros_like(arm)
            force[:, 2] = up
            slip = speed[:, :2] / (np.linalg.norm(speed[:, :2], axis=1, keepdims=True) + 0.1)
            force[:, :2] = -FRICTION * up[:, None] * slip
            velocity = velocity + dt * (force.sum(0) - [0, 0, GRAVITY])
            spin = spin + dt * np.cross(arm, force).sum(0) / INERTIA
            place, turn = place + dt * velocity, turn + dt / 2 * _product([0, *spin], turn)
            turn /= np.linalg.norm(turn)
    return pd.DataFrame(rows, columns=["toss", "time", "x", "y", "z", "qw", "qx", "qy", "qz"])


def _product(one: list[float], other: np.ndarray) -> np.ndarray:
    """Of two quaternions."""
    scalar, vector = other[0], other[1:]
    turned = one[0] * vector + scalar * np.array(one[1:]) + np.cross(one[1:], vector)
    return np.array([one[0] * scalar - np.dot(one[1:], vector), *turned])
