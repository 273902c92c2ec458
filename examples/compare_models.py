"""Compare models on the same data with the same recipe: how wrong, and at what cost.

Errors are of rollouts on unseen balls, with 95 % intervals. Prints, after 10 to 30 seconds on one
core:

    model   error    low      high     updates  step
    RNN     1.1e-03  8.2e-04  1.4e-03     16.0   1.0
    PC-ODE  5.7e-04  4.5e-04  7.1e-04      9.0   1.8
"""

import tempfile
from pathlib import Path

import torch

from skipstone import PCODE, RNN, Recipe, Sequences, evaluate, fit

torch.manual_seed(0)
time = 2 * torch.rand(400, 1) + 0.1 * torch.arange(20)
ball = (time % 2 - 1).abs()[..., None]  # It bounces between two walls, at 0 and at 1.
data = Sequences.from_array(ball, spacing=0.1)
train, test = data[:300], data[300:]

recipe = Recipe(steps=150, batch_size=32)
print("model   error    low      high     updates  step")
with tempfile.TemporaryDirectory() as runs:
    for kind in (RNN, PCODE):
        torch.manual_seed(0)
        model = kind.for_data(train, hidden=32)
        fit(model, train, folder=Path(runs) / kind.__name__, recipe=recipe, progress=False)
        result = evaluate(model, test, timing=False)
        error, updates, step = result.sample_mse, result.updates.value, result.mean_step.value
        errors = f"{error.value:.1e}  {error.low:.1e}  {error.high:.1e}"
        print(f"{kind.title:7} {errors}  {updates:7.1f}  {step:4.1f}")
