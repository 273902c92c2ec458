"""Real tosses of an acrylic cube onto a table, tracked at 148 Hz.

The table is not shipped. It has the columns `toss`, `time` in seconds, the position `x`, `y`, `z`
and the rotation quaternion `qw`, `qx`, `qy`, `qz`, lengths in half-widths of the cube (52.4 mm). It
is made from the folder `data/tosses_processed` of the repository DAIRLab/contact-nets (BSD
3-Clause; Pfrommer, Halm and Posa, "ContactNets", CoRL 2020).
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from benchmarks.reality.problem import MissingData, Parts
from skipstone import Sequences

HALF_WIDTH = 52.4
"""Of the cube, in millimetres."""

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
"""In the cube's own frame."""

FEATURES = [f"{axis}{corner}" for corner in range(len(CORNERS)) for axis in "xyz"]

SHARES = (0.7, 0.15, 0.15)
"""Tosses to train on, to validate and to test with."""

COPIES = 6
"""Turned copies of each training toss. A table has no direction and a cube's faces are alike, so
that a toss turned about the vertical, or with its corners renamed, is one that could have been."""


def load_cube(file: Path | None) -> Parts:
    """Tosses as positions of the corners, split by toss."""
    if file is None or not file.is_file():
        raise MissingData(
            f"the table of cube tosses is not here ({file}). Make it from data/tosses_processed of "
            "the repository DAIRLab/contact-nets: columns toss, time, x, y, z, qw, qx, qy, qz, in "
            "seconds and half-widths of the cube. Then: --cube FILE."
        )
    import pandas

    return split_tosses(pandas.read_parquet(file))


def split_tosses(frame: Any, copies: int = COPIES) -> Parts:
    """Training tosses with their turned copies, and the others as they are."""
    train, validation, test = tosses_of(frame).split(SHARES, seed=0)
    turned = [train] + [turn_tosses(train, seed) for seed in range(1, copies)]
    return Parts(Sequences.concat(turned), validation, test)


def tosses_of(frame: Any) -> Sequences:
    """One sequence per toss: the corners, from above where the toss begins."""
    frame = frame.sort_values(["toss", "time"])
    first = frame.groupby("toss")[["x", "y"]].transform("first")
    position = frame[["x", "y", "z"]].to_numpy(np.float64).copy()
    position[:, :2] -= first.to_numpy(np.float64)
    quaternion = frame[["qw", "qx", "qy", "qz"]].to_numpy(np.float64)
    table = frame[["toss", "time"]].copy()
    table[FEATURES] = corners_of(position, rotations_of(quaternion))
    return Sequences.from_table(table, id="toss", time="time", values=FEATURES)


def rotations_of(quaternion: Float[np.ndarray, "rows 4"]) -> Float[np.ndarray, "rows 3 3"]:
    """Rotation matrices of quaternions w, x, y, z."""
    w, x, y, z = (quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def corners_of(
    position: Float[np.ndarray, "rows 3"], rotation: Float[np.ndarray, "rows 3 3"]
) -> Float[np.ndarray, "rows 24"]:
    """Where the corners are: what meets the table, and linear in the pose."""
    corners = position[:, None] + np.einsum("nij,cj->nci", rotation, CORNERS)
    return corners.reshape(len(position), -1)


def pose_of(
    corners: Float[np.ndarray, "rows 24"],
) -> tuple[Float[np.ndarray, "rows 3"], Float[np.ndarray, "rows 3 3"]]:
    """The position and rotation of the cube that fits corners best (Kabsch)."""
    points = corners.reshape(-1, len(CORNERS), 3)
    position = points.mean(axis=1)
    spread = np.einsum("nci,cj->nij", points - position[:, None], CORNERS)
    left, _, right = np.linalg.svd(spread)
    # A mirror image is no rotation.
    left[:, :, 2] *= np.linalg.det(left @ right)[:, None]
    return position, left @ right


def position_error(
    predicted: Float[np.ndarray, "rows 24"], observed: Float[np.ndarray, "rows 24"]
) -> Float[np.ndarray, " rows"]:
    """Distance of the centres, in millimetres."""
    apart = pose_of(predicted)[0] - pose_of(observed)[0]
    return HALF_WIDTH * np.linalg.norm(apart, axis=1)


def rotation_error(
    predicted: Float[np.ndarray, "rows 24"], observed: Float[np.ndarray, "rows 24"]
) -> Float[np.ndarray, " rows"]:
    """Angle of the rotation from one to the other, in degrees."""
    between = np.einsum("nij,nij->n", pose_of(predicted)[1], pose_of(observed)[1])
    return np.degrees(np.arccos(np.clip((between - 1) / 2, -1, 1)))


def turn_tosses(tosses: Sequences, seed: int) -> Sequences:
    """The same tosses, each turned about the vertical by chance and with its corners renamed."""
    rng, symmetries = np.random.default_rng(seed), cube_symmetries()
    angle = rng.uniform(0, 2 * np.pi, len(tosses))
    cosine, sine, zero = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    turn = np.array([[cosine, -sine, zero], [sine, cosine, zero], [zero, zero, zero + 1]])
    points = tosses.values.double().numpy().reshape(*tosses.mask.shape, len(CORNERS), 3)
    renamed = symmetries[rng.integers(len(symmetries), size=len(tosses))]
    points = np.take_along_axis(points, renamed[:, None, :, None], axis=2)
    points = np.einsum("ijn,ntcj->ntci", turn, points).reshape(tosses.values.shape)
    # A copy keeps the name of its toss, so that no split ever separates them.
    values = points.astype(np.float32)
    return Sequences(tosses.times, values, mask=tosses.mask, about=tosses.about)


def cube_symmetries() -> np.ndarray:
    """For each of the 24 rotations of a cube onto itself, which corner comes where."""
    found = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            matrix = np.eye(3)[list(order)] * np.array(signs)[:, None]
            if np.linalg.det(matrix) > 0:
                moved = CORNERS @ matrix.T
                found.append([int(np.abs(CORNERS - each).sum(1).argmin()) for each in moved])
    return np.array(found)
