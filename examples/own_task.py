"""A task of your own: damped oscillators, to load, draw and train on like any other.

`python examples/own_task.py show springs` is the skipstone command with this task registered.
Without arguments it prints:

    Sequences(batch=81, observations=30, dim=2, control=0, dtype=torch.float32, device=cpu)
"""

import sys
from dataclasses import dataclass

import numpy as np

import skipstone
from skipstone.cli import main
from skipstone.paper.tasks import Observed, Options, Task


@dataclass(frozen=True, kw_only=True)
class SpringOptions(Options):
    damping: float = 0.1  # How fast the oscillation decays.


def observe(options, times, rng):
    angle = times + rng.uniform(0, 2 * np.pi, (len(times), 1))
    size = np.exp(-options.damping * times)
    return Observed(np.stack([size * np.cos(angle), -size * np.sin(angle)], axis=-1))


options = SpringOptions(observations=30, spacing=0.2)
skipstone.register(Task("springs", "position and velocity of a damped spring", observe, options))

if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        print(skipstone.load_task("springs", damping=0.3, trajectories=100).train)
