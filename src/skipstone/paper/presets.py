"""Presets: how the paper's tasks are trained. Everything else is a default of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skipstone.errors import require_choice
from skipstone.models.base import Model
from skipstone.models.ode import ODEConfig
from skipstone.models.pcode_config import PCODEConfig
from skipstone.training.recipe import Recipe

AUTO = "auto"
"""Tolerance that is the final training loss of an RNN of the same budget, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A recipe, and what differs from the defaults of the models that go with it."""

    recipe: Recipe = field(default_factory=Recipe)
    """How models are trained."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """Options of the task."""

    every: Mapping[str, Any] = field(default_factory=dict)
    """Options of every model."""

    pcode: Mapping[str, Any] = field(default_factory=dict)
    """Options of the PC-ODE."""

    ode: Mapping[str, Any] = field(default_factory=dict)
    """Options of models that integrate an ODE."""

    def options(self, model: type[Model[Any]]) -> dict[str, Any]:
        """The options of a model that are not its defaults."""
        options = dict(self.every)
        if issubclass(model.Config, PCODEConfig):
            options |= self.pcode
        if issubclass(model.Config, ODEConfig):
            options |= self.ode
        return options


PAPER = Preset(
    recipe=Recipe(
        steps=10_000,
        batch_size=256,
        optimizer="adam",
        learning_rate=1e-3,
        schedule="decay",
        gradient_clip=0.0,
    ),
    every={"hidden": 128, "scaling": "none", "reads": "values"},
    pcode={
        "tolerance": AUTO,
        "anneal_from": 0.0,
        "explore": 0.01,
        "overshoot": 0.0,
        "own_steps": 0.0,
        "step_loss": "difference",
        "step_layers": 1,
        "control_effect": "update",
    },
    ode={"solver": "dopri5"},
)
"""The paper's own settings, complete."""

SMOKE = Preset(
    recipe=Recipe(steps=30, batch_size=16, validate_every=10, checkpoint_every=10),
    every={"hidden": 16},
)
"""Seconds, to see that everything runs. Learns little."""

PRESETS = {"cpu": Preset(), "paper": PAPER, "smoke": SMOKE}
"""By name. `cpu` is what we recommend: the library's defaults, and a budget for each task."""

STEPS = {
    "lines": 8_000,
    "circles": 2_000,
    "shots": 20_000,
    "pixels1d": 3_000,
    "pixels2d": 12_000,
}
"""Gradient steps of the `cpu` preset, where they are not the default."""

TARGET_STEPS = {"billiards1d": 4.2, "billiards2d": 3.7, "pixels1d": 4.4, "shots": 3.5}
"""Mean steps that the PC-ODE of the `cpu` preset is trained for: a little above the paper's."""

TOLERANCES = {"lines": 4.4e-5, "circles": 4.2e-3, "pixels2d": 2.0}
"""Tolerances of the others, in scaled units. The first two are of the order of the paper's sample
errors: an RNN trained like this ends so far below the paper's losses that its own would ask for
shorter steps. The last is one that no line misses: where the balls of an image will be is soon
unknown, and one line for everything learns the mean of what may come.
"""

LEARNING_RATES = {"pixels2d": 2e-3}
"""Learning rates of the `cpu` preset, where they are not the default."""

DATA: dict[str, dict[str, Any]] = {"pixels2d": {"trajectories": 60_000, "test": 0.02}}
"""Options of tasks in the `cpu` preset: the PC-ODE learned the paper's 10,000 films of
`pixels2d` by heart. For every model alike; about as many are kept for the test."""

NOISE = {"shots": 0.12}
"""Noise on the encoder's input in the `cpu` preset."""

PIXELS = ("pixels1d", "pixels2d")
"""The tasks that are images."""

OPTIONS: dict[str, dict[str, Any]] = {
    # Smooth motion wants a smooth network. With rates to read, the RNN drifts.
    "circles": {"activation": "silu", "reads": "values"},
}
"""Options of every model in the `cpu` preset."""

WIDER = {"hidden": 192}
"""A PC-ODE updates less often than the RNN, and may think longer: no more arithmetic per rollout,
and about as many seconds per training step."""

_PCODE_OPTIONS: dict[str, dict[str, Any]] = {
    "circles": {"reads": "motion"},
    # A shot is one action, at its beginning.
    "shots": {"control_effect": "update"},
    # Seen only at observations, a collision is met best at one.
    "billiards1d": {"whole_steps": True, **WIDER},
    "billiards2d": WIDER,
    "pixels1d": {"whole_steps": True},
    # Lines may last as long as the longest sequences, and there is nothing to explore.
    "pixels2d": {
        "anneal_from": 2.0,
        "explore": 0.0,
        "max_step": 60.0,
        "overshoot": 0.0,
        "own_steps": 0.0,
    },
}


def preset_for(name: str, task: str) -> Preset:
    """A preset for a task; for one of your own, the preset as it is."""
    require_choice("preset", name, PRESETS)
    preset = PRESETS[name]
    if name == "paper" and task in PIXELS:
        recipe = replace(preset.recipe, steps=50_000)
        return replace(preset, recipe=recipe, every={**preset.every, "hidden": 512})
    if name != "cpu":
        return preset
    usual = preset.recipe
    recipe = replace(
        usual,
        steps=STEPS.get(task, usual.steps),
        learning_rate=LEARNING_RATES.get(task, usual.learning_rate),
        noise=NOISE.get(task, usual.noise),
    )
    pcode = dict(_PCODE_OPTIONS.get(task, {}))
    if task in TOLERANCES:
        pcode["tolerance"] = TOLERANCES[task]
    if task in TARGET_STEPS:
        pcode["target_step"] = TARGET_STEPS[task]
    return replace(
        preset,
        recipe=recipe,
        data=DATA.get(task, {}),
        every=OPTIONS.get(task, {}),
        pcode=pcode,
    )
