"""Known inputs: a cart that is told how fast to roll. Ask what different orders would do.

An update falls on every change of a control. Prints, after 10 to 30 seconds on one core:

    Sequences(batch=400, observations=25, dim=1, control=1, dtype=torch.float32, device=cpu)
    [0.5, 0.5]: 1.00, truly 0.99, 3 updates
    [0.5, -0.5]: -0.02, truly -0.01, 3 updates
    [-1.0, 0.0]: -0.99, truly -1.01, 3 updates
"""

import tempfile

import torch

from skipstone import PCODE, Recipe, Sequences, fit

torch.manual_seed(0)
orders = 2 * torch.rand(400, 5, 1) - 1
speed = orders.repeat_interleave(5, dim=1)  # An order holds for five observations.
position = torch.nn.functional.pad(0.2 * speed[:, :-1], (0, 0, 1, 0)).cumsum(1)
data = Sequences.from_array(position, spacing=0.2, controls=speed)
print(data)

model = PCODE.for_data(data, hidden=32)
with tempfile.TemporaryDirectory() as folder:
    recipe = Recipe(steps=150, batch_size=32)
    fit(model, data, folder=folder, recipe=recipe, progress=False)

# From one beginning, three plans: orders at times 1 and 2, each held until the next.
context = data[0].head(5)  # Ends at time 0.8; its own order holds on until time 1.
there, now = position[0, 5].item(), torch.tensor([1.0, 2.0])
with torch.no_grad():
    for plan in ([0.5, 0.5], [0.5, -0.5], [-1.0, 0.0]):
        path = model.rollout(context, until=3.0, controls=(now, torch.tensor(plan)[:, None]))
        truth = there + sum(plan)
        updates = path.num_updates.item()
        print(f"{plan}: {path.evaluate(3.0).item():.2f}, truly {truth:.2f}, {updates} updates")
