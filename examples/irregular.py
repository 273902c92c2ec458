"""Logs of different lengths, with gaps and time stamps: leave out what is missing.

Prints, after 10 to 30 seconds on one core:

    Sequences(batch=300, observations=7 to 19, dim=2, control=0, dtype=torch.float32, device=cpu)
     0.25 s ahead: [-1. -0.], truly [-1.   -0.01]
     1.70 s ahead: [-0.62  0.81], truly [-0.62  0.79]
     3.14 s ahead: [0.25 1.  ], truly [0.24 0.97]
    6 updates for 5 seconds
"""

import tempfile

import numpy as np
import torch

from skipstone import PCODE, Recipe, Sequences, fit


def swing(phase, time):
    """Angle and speed of a pendulum with a period of 10 seconds."""
    angle = phase + 2 * np.pi * time / 10
    return np.stack([np.cos(angle), -np.sin(angle)], axis=-1)


rng = np.random.default_rng(0)
began = 1.7e9  # Time stamps: seconds since 1970.
logs, clocks, phases = [], [], rng.uniform(0, 2 * np.pi, 300)
for phase in phases:
    seconds = np.cumsum(rng.uniform(0.2, 0.8, size=rng.integers(12, 20)))
    log = swing(phase, seconds)
    log[rng.random(len(log)) < 0.1] = np.nan  # A tenth was not recorded.
    kept = ~np.isnan(log).any(axis=1)
    logs.append(log[kept])
    clocks.append(began + seconds[kept])

data = Sequences.from_lists(logs, clocks)
print(data)

torch.manual_seed(0)
model = PCODE.for_data(data, hidden=32)
with tempfile.TemporaryDirectory() as folder:
    recipe = Recipe(steps=120, batch_size=32)
    fit(model, data, folder=folder, recipe=recipe, progress=False)

with torch.no_grad():
    context = data[0].tail(4)  # Predict on from where the first log ends.
    now = float(context.ends)
    path = model.rollout(context, until=now + 5)
    for ahead in (0.25, 1.7, 3.14):
        predicted = path.evaluate(now + ahead)[0].numpy()
        truth = swing(phases[0], now + ahead - began)
        print(f"{ahead:5.2f} s ahead: {predicted.round(2)}, truly {truth.round(2)}")
    print(path.num_updates.item(), "updates for 5 seconds")
