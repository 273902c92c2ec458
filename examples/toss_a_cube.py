"""A real cube tossed onto a table: rotations as corners, and a forecast of where it comes to rest.

`python examples/toss_a_cube.py cube_tosses.parquet`. The table is not ours to ship. It is made from
`data/tosses_processed` of the repository DAIRLab/contact-nets (BSD 3-Clause; Pfrommer, Halm and
Posa 2020): a row per tracked frame with `toss`, `time` in seconds, the position `x`, `y`, `z` and
the quaternion `qw`, `qx`, `qy`, `qz`, lengths in half-widths of the cube (52.4 mm). Prints, after
some minutes on one core, the like of:

    399 tosses to learn from, 86 to test
    0.05 s ahead: 9 mm off, standing still would be 68 mm
    0.20 s ahead: 36 mm off, standing still would be 198 mm
    at rest: 103 mm off, standing still would be 342 mm
    32 updates for 97 frames
"""

import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from skipstone import PCODE, Recipe, Sequences, fit

HALF_WIDTH = 52.4  # Millimetres.
CONTEXT = 10  # Frames that are seen.
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def corners_of(frame):
    """Corners of the cube: they meet the table, and unlike quaternions they have one sign."""
    w, *v = frame[["qw", "qx", "qy", "qz"]].to_numpy().T
    v = np.stack(v, axis=1)[:, None]
    aside = 2 * np.cross(v, CORNERS)
    turned = CORNERS + w[:, None, None] * aside + np.cross(v, aside)
    return (frame[["x", "y", "z"]].to_numpy()[:, None] + turned).reshape(len(frame), -1)


file = Path(sys.argv[1] if len(sys.argv) == 2 else "cube_tosses.parquet")
if not file.is_file():
    sys.exit(f"{file} is not here. {__doc__}")
frame = pd.read_parquet(file).sort_values(["toss", "time"])
# Where on the table a toss begins says nothing.
frame[["x", "y"]] -= frame.groupby("toss")[["x", "y"]].transform("first")
names = [f"{axis}{corner}" for corner in range(len(CORNERS)) for axis in "xyz"]
table = pd.concat(
    [
        frame[["toss", "time"]].reset_index(drop=True),
        pd.DataFrame(corners_of(frame), columns=names),
    ],
    axis=1,
)
tosses = Sequences.from_table(table, id="toss", time="time", values=names)
train, validation, test = tosses.split((0.7, 0.15, 0.15), seed=0)
print(f"{len(train)} tosses to learn from, {len(test)} to test")

torch.manual_seed(0)
model = PCODE.for_data(train, hidden=64, num_context=CONTEXT, target_step=4.0)
fit(model, train, validation, folder="runs/cube", recipe=Recipe(steps=600), overwrite=True)

with torch.no_grad():
    path = model.rollout(test.head(CONTEXT), until=test.ends)
    predicted = path.evaluate(test.times[:, CONTEXT:])


def middle(values):
    """The middle of the cube, in millimetres."""
    return HALF_WIDTH * values.unflatten(-1, (len(CORNERS), 3)).mean(-2)


off = (middle(predicted) - middle(test.values[:, CONTEXT:])).norm(dim=-1)
still = (middle(test.values[:, CONTEXT - 1, None]) - middle(test.values[:, CONTEXT:])).norm(dim=-1)
last = (test.lengths - CONTEXT - 1)[:, None]
for when, frame in [("0.05 s ahead", 7), ("0.20 s ahead", 29), ("at rest", None)]:
    index = last if frame is None else last.clamp(max=frame)
    errors = [int(each.gather(1, index).mean()) for each in (off, still)]
    print(f"{when}: {errors[0]} mm off, standing still would be {errors[1]} mm")
updates, frames = (
    float(path.num_updates.float().mean()),
    float((test.lengths - CONTEXT).float().mean()),
)
print(f"{updates:.0f} updates for {frames:.0f} frames")
