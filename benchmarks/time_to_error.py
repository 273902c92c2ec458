"""How long a PC-ODE trains until it is as exact as the RNN is in the end.

    python benchmarks/time_to_error.py billiards2d --steps 6000 --set target_step=2

Both train in one process, in turns of 50 steps, and a turn is measured in processor time, so that
other work on the machine meets both alike. The RNN has the preset's recipe; the PC-ODE has the same
one with a number of steps of its own, since a schedule reaches its error at its end. Errors are
those of rollouts on the validation data. Writes `results/time-to-error.json`, one entry per task.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from skipstone import PCODE, RNN, Recipe, load_task
from skipstone.evaluation.rollouts import roll_out_all
from skipstone.files import read_bytes
from skipstone.paper.presets import preset_for
from skipstone.records import parse_json, write_json
from skipstone.training.objective import Objective
from skipstone.training.recipe import OPTIMIZERS
from skipstone.training.run import provenance

TURN = 50
VALIDATIONS = 24


@dataclass
class Contender:
    """A model in training, and what it took so far."""

    model: Any
    objective: Objective
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        recipe = self.objective.recipe
        self._optimizer = OPTIMIZERS[recipe.optimizer](
            self.model.parameters(), lr=recipe.learning_rate
        )

    @property
    def done(self) -> bool:
        return self.step >= self.objective.recipe.steps

    def turn(self) -> None:
        """Some training steps, timed."""
        recipe, began = self.objective.recipe, time.process_time()
        for _ in range(min(TURN, recipe.steps - self.step)):
            for group in self._optimizer.param_groups:
                group["lr"] = recipe.learning_rate_at(self.step)
            losses = self.objective.losses(self.model, self.step)
            self._optimizer.zero_grad()
            losses.total.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.gradient_clip)
            self._optimizer.step()
            self.model.adapt(losses)
            self.step += 1
        self.seconds += time.process_time() - began

    def validate(self, data: Any) -> None:
        """Note the error of rollouts; not timed."""
        self.model.eval()
        with torch.inference_mode():
            rolled = roll_out_all(self.model, data)
        self.model.train()
        error = rolled.errors.values.sum() / rolled.errors.observed.sum()
        units = (rolled.end - rolled.start).sum() / self.model.config.time_unit
        self.history.append(
            {
                "step": self.step,
                "seconds": round(self.seconds, 2),
                "error": float(error),
                "mean_step": float(units / rolled.updates.sum()),
            }
        )
        print(type(self.model).__name__, self.history[-1], flush=True)


def contender(kind: Any, task: str, train: Any, steps: int | None, options: Any) -> Contender:
    """A model with its preset, and another number of steps if given."""
    preset = preset_for("cpu", task)
    recipe: Recipe = preset.recipe if steps is None else replace(preset.recipe, steps=steps)
    torch.manual_seed(0)
    model = kind.for_data(train, **{**preset.options(kind), **options})
    return Contender(model, Objective(train, recipe, 0))


def race(task: str, steps: int | None, options: dict[str, Any]) -> dict[str, Any]:
    """Train both in turns; what each took, and when the PC-ODE was as exact."""
    data = load_task(task)
    rnn = contender(RNN, task, data.train, None, {})
    pcode = contender(PCODE, task, data.train, steps, options)
    while not (rnn.done and pcode.done):
        for each in (rnn, pcode):
            if each.done:
                continue
            before, total = each.step, each.objective.recipe.steps
            each.turn()
            if each.done or before * VALIDATIONS // total < each.step * VALIDATIONS // total:
                each.validate(data.validation)
    wanted = rnn.history[-1]["error"]
    reached = next((point for point in pcode.history if point["error"] <= wanted), None)
    return {
        "task": task,
        "rnn_error": wanted,
        "rnn_seconds": rnn.seconds,
        "pcode_options": options,
        "pcode_reached": reached,
        "ratio": reached and reached["seconds"] / rnn.seconds,
        "rnn": rnn.history,
        "pcode": pcode.history,
        **provenance(),
    }


def main() -> None:
    """Race, and add the result to the file."""
    parser = argparse.ArgumentParser(description="Time to the RNN's final error")
    parser.add_argument("task", choices=["billiards1d", "billiards2d"])
    parser.add_argument("--steps", type=int, help="of the PC-ODE; default: the preset's")
    parser.add_argument("--set", action="append", default=[], help="option of the PC-ODE, a=b")
    parser.add_argument("--out", type=Path, default=Path("results/time-to-error.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    options = {k: json.loads(v) for k, v in (each.split("=", 1) for each in given.set)}
    found = race(given.task, given.steps, options)
    known = parse_json(read_bytes(given.out), str(given.out)) if given.out.exists() else {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(given.out, {**known, given.task: found})
    print(f"ratio {found['ratio']}")


if __name__ == "__main__":
    main()
