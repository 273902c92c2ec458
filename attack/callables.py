"""What is called by `calls`: good arguments by name, and which others have to be refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skipstone import (
    ODERNN,
    PCODE,
    RNN,
    Ensemble,
    LatentODE,
    Model,
    Recipe,
    Sequences,
    calibrate,
    evaluate,
    fit,
    load,
)
from skipstone.planning import CrossEntropy, GradientDescent, RandomShooting

Rule = Callable[[Any], bool]
"""Whether an argument may be accepted. What may be need not be: a size can be too large."""


@dataclass(frozen=True)
class Subject:
    """A function, and arguments that it takes."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    rules: dict[str, Rule] = field(default_factory=dict)
    """By argument; those without a rule may be anything."""
    weight: float = 1.0
    """How often it is called, beside the others."""
    indexes: bool = False
    """Whether it is indexing, which alone may raise an `IndexError`."""

    def good(self) -> dict[str, Any]:
        """The arguments; what is a function of none is made anew each time."""
        return {
            name: value() if isinstance(value, Fresh) else value
            for name, value in self.arguments.items()
        }


@dataclass(frozen=True)
class Fresh:
    """An argument that no other call may have had."""

    make: Callable[[], Any]

    def __call__(self) -> Any:
        return self.make()


def whole(least: int = 1, none: bool = False) -> Rule:
    """A whole number that 64 bits can hold; or None, where that means something."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        return is_whole and least <= int(value) < 2**63

    return holds


def number(least: float = -math.inf, none: bool = False, above: float = -math.inf) -> Rule:
    """A number that a double can hold."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            return math.isfinite(float(value)) and float(value) >= least and float(value) > above
        except OverflowError:
            return False

    return holds


def flag(value: Any) -> bool:
    """True or False."""
    return isinstance(value, bool | np.bool_)


def one_of(*known: Any) -> Rule:
    """One of the known ones."""
    return lambda value: (
        any(value is each for each in known) or (isinstance(value, str) and value in known)
    )


def floating(value: Any) -> bool:
    """A dtype for values, or None for the usual one."""
    return value is None or (isinstance(value, torch.dtype) and value.is_floating_point)


def small(value: Any) -> bool:
    """A whole number of candidates: beyond this many there is no memory for them anywhere."""
    return whole()(value) and int(value) < 2**40


def of(*kinds: type) -> Rule:
    """An instance of one of some classes."""
    return lambda value: isinstance(value, kinds)


SEED = whole(0)
SEQUENCES = of(Sequences)
MODEL = of(Model)
NONE = type(None)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Times and values, all of them whole numbers, so that any type can hold them."""
    values = np.random.default_rng(0).integers(-9, 9, size=(3, 6, 2)).astype(np.float32)
    return np.arange(18.0).reshape(3, 6), values


def subjects() -> list[Subject]:
    """All that is called."""
    times, values = arrays()
    plain, driven = Sequences(times, values), Sequences(times, values, values[..., :1])
    return [
        *_of_sequences(plain, times, values),
        *_of_models(plain),
        *_of_rollouts(plain, driven),
        *_of_trainings(plain),
        *_of_planners(),
    ]


def _of_sequences(plain: Any, times: np.ndarray, values: np.ndarray) -> list[Subject]:
    frame = plain.to_table("polars")
    table = {"frame": frame, "id": "id", "time": "time", "values": ["x0", "x1"]}
    more = {"duplicates": "error", "unit": None, "dtype": torch.float32}
    from_table = {"duplicates": one_of("error", "first", "last", "mean"), "dtype": floating}
    from_table |= {"id": of(str, NONE), "time": of(str)}
    windows = {"length": whole(), "stride": whole(none=True)}
    return [
        Subject("Sequences", Sequences, {"times": times, "values": values, "controls": values}),
        Subject("masked", Sequences, {"times": times, "values": values, "mask": times >= 0}),
        Subject(
            *("from_array", Sequences.from_array),
            {"values": values, "spacing": 1.0, "start": 0.0},
            {"start": number()},
        ),
        Subject("from_lists", Sequences.from_lists, {"values": [*values], "times": [*times]}),
        Subject("from_table", Sequences.from_table, {**table, **more}, from_table),
        Subject("windows", plain.windows, {"length": 2, "stride": 1, "max_gap": 5.0}, windows),
        Subject(
            "split",
            plain.split,
            {"fractions": [0.5, 0.5], "seed": 0},
            {"seed": whole(0, none=True)},
        ),
        Subject("split_by_time", plain.split_by_time, {"time": 9.0}),
        Subject("select", plain.select, {"keep": times >= 0}),
        Subject("head", plain.head, {"count": 2}, {"count": whole()}),
        Subject("tail", plain.tail, {"count": 2}, {"count": whole()}),
        Subject("index", plain.__getitem__, {"index": 1}, indexes=True),
        Subject("named", plain.named, {"ids": [1, 2, 3], "features": ["a", "b"]}),
        Subject("to", plain.to, {"dtype": torch.float64}),
        Subject("to_table", plain.to_table, {"like": "polars"}),
        Subject("concat", Sequences.concat, {"parts": [plain, plain]}),
    ]


def _of_models(plain: Sequences) -> list[Subject]:
    options = {"hidden": 4, "num_context": 4, "missing": False, "time_unit": 1.0}
    rules = {"sequences": SEQUENCES, "hidden": whole(), "num_context": whole(), "missing": flag}
    rules |= {"time_unit": number(above=0)}
    found = [
        Subject(f"{kind.__name__}.for_data", kind.for_data, {"sequences": plain, **options}, rules)
        for kind in (PCODE, RNN, ODERNN, LatentODE)
    ]
    options = {"tolerance": 1e-3, "max_step": 9.0, "whole_steps": True, "targets": [0]}
    rules = {"sequences": SEQUENCES, "tolerance": number(0), "whole_steps": flag}
    given = {"sequences": plain, **options}
    return [*found, Subject("PCODE options", PCODE.for_data, given, rules)]


def _of_rollouts(plain: Sequences, driven: Sequences) -> list[Subject]:
    found = []
    rules = {"context": SEQUENCES, "max_updates": whole(none=True)}
    stepping = {**rules, "step": number(above=0, none=True)}
    later = ([30.0, 31.0], [[1.0], [2.0]])
    for kind in (PCODE, RNN, ODERNN):
        model = kind.for_data(driven, hidden=4)
        good = {"context": driven.tail(4), "until": 40.0, "controls": later, "step": 2.0}
        good["max_updates"] = 9
        found.append(Subject(f"{kind.__name__}.rollout", model.rollout, good, stepping, 2.0))
    both = Ensemble([RNN.for_data(plain, hidden=4), PCODE.for_data(plain, hidden=4)])
    latent = LatentODE.for_data(plain, hidden=4)
    # The longest rollout of a LatentODE takes half a minute.
    for name, each, weight in (("Ensemble", both, 2.0), ("LatentODE", latent, 0.5)):
        good = {"context": plain.tail(4), "until": 40.0, "max_updates": 9}
        found.append(Subject(f"{name}.rollout", each.rollout, good, rules, weight))
    path = RNN.for_data(plain, hidden=4).rollout(plain.tail(4), 40.0)
    side, every = {"side": one_of("left", "right")}, {"every": number(above=0)}
    return [
        *found,
        Subject("path.evaluate", path.evaluate, {"t": 35.0, "side": "left"}, side),
        Subject("path.to_table", path.to_table, {"every": 1.0, "like": "polars"}, every),
    ]


def _of_trainings(plain: Sequences) -> list[Subject]:
    """Trainings of two steps, and what is done with a trained model."""
    model = RNN.for_data(plain, hidden=4, num_context=2)
    folders = itertools.count()
    model.save(Path("saved"))
    recipe: dict[str, Any] = {
        "steps": 2,
        "batch_size": 2,
        "validate_every": 1,
        "checkpoint_every": 1,
    }
    more = {"patience": 0, "gradient_clip": 1.0, "noise": 0.0, "learning_rate": 1e-3}
    rules = {name: whole() for name in recipe} | {"patience": whole(0), "noise": number(0)}
    rules |= {"gradient_clip": number(0), "learning_rate": number(above=0)}
    training = {
        "model": model,
        "train": plain,
        "validation": plain,
        "recipe": Recipe(**recipe),
        "folder": Fresh(lambda: Path(f"fitted-{next(folders)}")),
        "horizon": None,
        "seed": 0,
        "device": "cpu",
        "devices": 1,
        "precision": "32-true",
        "progress": False,
    }
    trained: dict[str, Rule] = {"train": SEQUENCES, "seed": SEED, "horizon": whole(none=True)}
    trained |= {"model": MODEL, "validation": of(Sequences, NONE), "recipe": of(Recipe, NONE)}
    trained |= {"folder": of(str, Path, NONE), "progress": flag}
    trained |= {"device": one_of("auto", "cpu"), "devices": whole()}
    trained |= {"precision": one_of("32-true", "bf16-mixed", "16-mixed")}
    measured = {"model": model, "sequences": plain, "timing": False, "seed": 0}
    given = {"model": MODEL, "sequences": SEQUENCES, "timing": flag, "seed": SEED}
    return [
        Subject("Recipe", Recipe, {**recipe, **more}, rules),
        Subject("fit", fit, training, trained, 0.7),
        Subject("evaluate", evaluate, measured, given),
        Subject("calibrate", calibrate, {"model": model, "sequences": plain}, given),
        Subject("load", load, {"folder": "saved"}, {"folder": of(str)}),
    ]


class _Box:
    """Actions between 0 and 1."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> torch.Tensor:
        return torch.as_tensor(rng.random((problems, candidates, 2)))

    def project(self, actions: torch.Tensor) -> torch.Tensor:
        return actions.clamp(0, 1)


def _of_planners() -> list[Subject]:
    def planned(kind: Any, problems: Any = 2, score: Any = None, **options: Any) -> Any:
        planner = kind(**options)
        return planner.plan(score, _Box(), problems, np.random.default_rng(0))

    def distance(actions: torch.Tensor) -> torch.Tensor:
        return (actions - 0.5).square().sum(-1)

    options: dict[type, dict[str, Any]] = {
        RandomShooting: {"rollouts": 9},
        CrossEntropy: {"elite": 2, "width": 0.1, "shrink": 0.5, "margin": 0.0},
        GradientDescent: {"learning_rate": 0.1},
    }
    rules = {"elite": whole(), "width": number(above=0), "shrink": number(above=0)}
    rules |= {
        "score": callable,
        "margin": number(0),
        "learning_rate": number(above=0),
        "rollouts": small,
    }
    found = []
    for kind, given in options.items():
        fixed = {} if kind is RandomShooting else {"rollouts": 300}

        def call(kind: type = kind, fixed: Any = fixed, **arguments: Any) -> Any:
            return planned(kind, **fixed, **arguments)

        own = {name: rule for name, rule in rules.items() if name in given or name == "score"}
        found.append(Subject(f"{kind.__name__}.plan", call, {**given, "score": distance}, own, 0.5))
    return found
