"""Learn a Gymnasium task from random episodes, plan in the model, and act in the true environment.

A pendulum has to be swung up and held there; 0 would be a perfect return. Prints, after half a
minute to a minute on one core:

    Sequences(batch=100, observations=201, dim=3, control=1, dtype=torch.float32, device=cpu)
    random play: -1190
    planned in the model: -93
"""

import tempfile

import gymnasium
import numpy as np
import torch

from skipstone import PCODE, Recipe, Sequences, fit
from skipstone.integrations.gymnasium import sequences_from_episodes
from skipstone.planning import CrossEntropy, RolloutScore

INTERVAL, HOLD, TORQUES = 0.05, 4, 6  # A plan has six torques, each held for four steps.


def play(policy, seed):
    """An episode of the true pendulum: its transitions, and its return."""
    env, episode = gymnasium.make("Pendulum-v1"), []
    seen, _ = env.reset(seed=seed)
    while len(episode) < 200:
        action = policy(seen)
        for _ in range(HOLD):
            after, reward, _, _, _ = env.step(action)
            episode.append((seen, action, reward, after))
            seen = after
    return episode, sum(reward for _, _, reward, _ in episode)


rng = np.random.default_rng(0)
episodes, returns = zip(
    *(play(lambda _: rng.uniform(-2, 2, 1), n) for n in range(100)), strict=True
)
data = sequences_from_episodes(episodes, INTERVAL)
print(data)
print(f"random play: {np.mean(returns):.0f}")

torch.manual_seed(0)
model = PCODE.for_data(data, hidden=48, num_context=1)
with tempfile.TemporaryDirectory() as folder:
    recipe = Recipe(steps=600, batch_size=64)
    fit(model, data, folder=folder, recipe=recipe, horizon=24, progress=False)


class Torques:
    def sample(self, rng, problems, candidates):
        return torch.as_tensor(rng.uniform(-2, 2, (problems, candidates, TORQUES))).float()

    def project(self, actions):
        return actions.clamp(-2, 2)


def planned(seen):
    """The first torque of the best plan."""
    context = Sequences.from_array(seen[None, None], controls=np.zeros((1, 1, 1)))
    times = INTERVAL * HOLD * torch.arange(1, TORQUES + 1).double()

    def cost(path):
        cos, sin, speed = path.evaluate(INTERVAL * torch.arange(1.0, HOLD * TORQUES + 1)).unbind(2)
        return (torch.atan2(sin, cos) ** 2 + 0.1 * speed**2).mean(1)

    def controls(actions):
        return actions[:, :1], (times[:-1], actions[:, 1:, None])

    score = RolloutScore(model, context, controls, float(times[-1]), cost)
    planner = CrossEntropy(rollouts=300, rounds=3, width=0.7)
    return planner.plan(score, Torques(), 1, rng).actions[0, :1].numpy()


returns = [play(planned, seed)[1] for seed in range(1000, 1004)]
print(f"planned in the model: {np.mean(returns):.0f}")
