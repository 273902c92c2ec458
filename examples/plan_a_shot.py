"""Plan one shot at pool with a trained model, play it, and draw what was imagined and what came.

Writes shot.png, and prints after a few seconds:

    15.1 updates a rollout, imagined 0.143
    shot [-0.13605773 -0.74384856]: in, closest 0.142
"""

from pathlib import Path

import gymnasium
import numpy as np

import skipstone
from skipstone.paper.pool import ImaginedScore, ShotSpace, draw_shot, planned_shot
from skipstone.planning import CrossEntropy

table = gymnasium.make("skipstone/Pool-v0")
balls, _ = table.reset(seed=4)
tables = balls.reshape(1, 2, 2)

weights = Path(__file__).parents[1] / "weights" / "shots-pcode-cpu-seed0"
model = skipstone.load(weights)
score = ImaginedScore(model, tables)
plan = CrossEntropy(rollouts=1_000).plan(score, ShotSpace(), 1, np.random.default_rng(0))

shot = plan.actions[0].numpy()
_, reward, _, _, info = table.step(shot)
updates = score.cost.updates / score.cost.rollouts
print(f"{updates:.1f} updates a rollout, imagined {plan.scores[0]:.3f}")
print(f"shot {shot}: {'in' if reward else 'missed'}, closest {info['pocket_distance']:.3f}")
draw_shot(planned_shot(model, tables[0], shot)).savefig("shot.png")
