"""Controls that change at every step: Hopper-v5, a random action per step or held for several.

    python benchmarks/hopper.py --seeds 3 --out results/hopper.json

Needs `pip install 'gymnasium[mujoco]'`. Episodes of 60 observations, 400 to train, 70 to test, from
random actions; an episode goes on when the hopper has fallen. Errors are squared, of rollouts over
56 observations, in units of each feature's variance. A PC-ODE is trained for several mean steps.
Trials that the file already has, of the same code and number of steps, are not trained again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skipstone import PCODE, RNN, Recipe, Sequences, fit
from skipstone.files import read_bytes
from skipstone.records import parse_json, write_json
from skipstone.training.run import provenance

OBSERVATIONS = 60
TRAIN, VALIDATION, TEST = 400, 70, 70

TARGETS = {1: (3.2, 5.6), 8: (7.0,)}
"""Mean steps that a PC-ODE is trained for, by how long an action is held."""


@dataclass(frozen=True)
class Trial:
    """One training: a model, its options and how it did."""

    model: str
    options: dict[str, Any]
    seed: int
    hold: int
    error: float
    updates: float
    seconds: float


def episodes(
    count: int,
    hold: int,
    seed: int,
    env_name: str = "Hopper-v5",
    observations: int = OBSERVATIONS,
    spread: float = 0.0,
) -> Sequences:
    """Episodes of random actions, each held for some steps; with `hold=0` there are none.

    They begin as the environment would have them, or with a `spread` from random positions and
    velocities, a little above the ground.
    """
    import gymnasium

    env = gymnasium.make(env_name, terminate_when_unhealthy=False)
    assert env.action_space.shape is not None
    rng = np.random.default_rng(seed)
    values, controls = [], []
    for episode in range(count):
        observation, _ = env.reset(seed=seed * 1_000_000 + episode)
        if spread:
            observation = scattered(env.unwrapped, spread, rng)
        seen, done = [], []
        action = np.zeros(env.action_space.shape, dtype=np.float32)
        for step in range(observations):
            if hold and step % hold == 0:
                action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
            seen.append(observation)
            done.append(action)
            observation = env.step(action)[0]
        values.append(np.stack(seen))
        controls.append(np.stack(done))
    known = np.stack(controls) if hold else None
    return Sequences.from_array(np.stack(values), controls=known)


def scattered(env: Any, spread: float, rng: np.random.Generator) -> np.ndarray:
    """The observation of a random state: joints and angles moved by up to `spread`."""
    position = env.init_qpos + spread * rng.uniform(-1, 1, len(env.init_qpos))
    position[1] = env.init_qpos[1] + spread * rng.uniform(0.5, 1.5)  # The height.
    env.set_state(position, 2 * spread * rng.standard_normal(len(env.init_qvel)))
    return env._get_obs()


def scaled_error(model: Any, test: Sequences) -> tuple[float, float]:
    """Error of rollouts in scaled units, and updates per rollout."""
    count = model.config.num_context
    assert test.controls is not None
    with torch.inference_mode():
        context = test.head(count)
        controls = test.times[:, count:], test.controls[:, count:]
        path = model.rollout(context, test.ends, controls)
        off = (path.evaluate(test.times[:, count:]) - test.values[:, count:]) / torch.tensor(
            model.config.scale
        )
    return float(off.square().mean()), float(path.num_updates.double().mean())


def run(kind: Any, options: dict[str, Any], hold: int, seed: int, steps: int) -> Trial:
    """Train and measure one model."""
    train, validation, test = (
        episodes(count, hold, seed=10 * hold + part)
        for part, count in enumerate((TRAIN, VALIDATION, TEST))
    )
    torch.manual_seed(seed)
    model = kind.for_data(train, hidden=64, **options)
    recipe = Recipe(steps=steps, validate_every=max(1, steps // 6))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        fit(model, train, validation, folder=folder, recipe=recipe, seed=seed, progress=False)
    error, updates = scaled_error(model.eval(), test)
    seconds = time.monotonic() - start
    return Trial(kind.title, options, seed, hold, error, updates, round(seconds, 1))


def planned(seeds: int) -> Iterator[tuple[Any, dict[str, Any], int, int]]:
    """Models, their options, how long actions are held, and seeds."""
    for seed in range(seeds):
        for hold, targets in TARGETS.items():
            yield RNN, {}, hold, seed
            for target in targets:
                yield PCODE, {"target_step": target}, hold, seed


def main() -> None:
    """Train all, and write what came out after each."""
    parser = argparse.ArgumentParser(description="Controls that change at every step")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--out", type=Path, default=Path("results/hopper.json"))
    given = parser.parse_args()
    about = {"steps": given.steps, **provenance()}
    known = parse_json(read_bytes(given.out), str(given.out)) if given.out.exists() else {}
    same = all(known.get(name) == about[name] for name in ("steps", "commit"))
    trials: list[dict[str, Any]] = known["trials"] if known and same else []
    done = {
        (each["model"], *each["options"].values(), each["hold"], each["seed"]) for each in trials
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for kind, options, hold, seed in planned(given.seeds):
        if (kind.title, *options.values(), hold, seed) in done:
            continue
        trial = run(kind, options, hold, seed, given.steps)
        print(trial, flush=True)
        trials.append(vars(trial))
        write_json(given.out, {**about, "trials": trials})


if __name__ == "__main__":
    main()
