"""Calls that break a rule, run in a process of its own: in the tests, shapes and types are checked
before the library can say anything. Prints what is not explained."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from skipstone import (
    ODERNN,
    PCODE,
    RNN,
    Ensemble,
    LatentODE,
    Recipe,
    Run,
    Sequences,
    calibrate,
    evaluate,
    fit,
    load,
    load_task,
    register,
)
from skipstone.errors import InvalidInput
from skipstone.models.state_space import StateSpace
from skipstone.planning import CrossEntropy, GradientDescent, RandomShooting, RolloutScore

VALUES = np.random.default_rng(0).normal(size=(3, 6, 2))
PLAIN: Any = Sequences.from_array(VALUES)
DRIVEN: Any = Sequences.from_array(VALUES, controls=VALUES[..., :1])
CONTEXT: Any = PLAIN.head(4)
MODELS: dict[str, Any] = {
    kind.__name__: kind.for_data(PLAIN, hidden=4) for kind in (PCODE, RNN, ODERNN, LatentODE)
}
MODELS["Ensemble"] = Ensemble([MODELS["PCODE"], MODELS["RNN"]])
PUSHED: Any = PCODE.for_data(DRIVEN, hidden=4)
PATH: Any = MODELS["PCODE"].rollout(CONTEXT, 9.0)
VALUELESS = torch.ones(3, 6, 1, device="meta")
FRAME: Any = PLAIN.to_table("polars")
SMALL: Any = torch.zeros(1, 2, 1).to(torch.float8_e5m2)
MASKED = np.ma.array(np.ones((1, 2, 1), dtype=int), mask=[[[True], [False]]])
MIXED = np.array([[0, 1, None, 3, 4, 5]], dtype=object)
GRID: Any = torch.ones(2, 2)
ARRAY: Any = np.arange(3)
TEXT: Any = "x"
THREE: Any = 3
NAN, INF, HUGE = float("nan"), float("inf"), 10**400

Calls = dict[str, Callable[[], object]]


def of_sequences() -> Calls:
    """Arguments of `Sequences`, by the rule that their message begins with."""
    return {
        "features must be a list of texts": lambda: PLAIN.named(features=[1, 2]),
        "ids must be a list with an entry": lambda: PLAIN.named(ids=3),
        "fractions, each, must be a number": lambda: PLAIN.split(["a", 0.5]),
        "fractions must be a list": lambda: PLAIN.split(0.5),
        "seed must be a whole number": lambda: PLAIN.split([0.5, 0.5], seed=HUGE),
        "batches to join must be Sequences": lambda: Sequences.concat([PLAIN, "x"]),  # pyright: ignore
        "batches to join must be a list": lambda: Sequences.concat(5),  # pyright: ignore
        "values must be a list with an entry": lambda: Sequences.from_lists(3),  # pyright: ignore
        "times must be a list with an entry": lambda: Sequences.from_lists(VALUES, 3),  # pyright: ignore
        "start must be a number": lambda: Sequences.from_array(VALUES, start="now"),  # pyright: ignore
        "start must be a finite number": lambda: Sequences.from_array(VALUES, start=NAN),
        "spacing, the time between": lambda: Sequences.from_array(VALUES, spacing=HUGE),
        "dtype must be a floating": lambda: Sequences(PLAIN.times, VALUES, dtype="float32"),
        "a number of observations must be a whole number": lambda: PLAIN.head(2.5),
        "length, the observations of a window,": lambda: PLAIN.windows(2.5),
        "stride, the observations": lambda: PLAIN.windows(2, stride=True),
        "a length of time must be a number": lambda: PLAIN.windows(2, max_gap="long"),
        "max_gap must be a number": lambda: PLAIN.windows(2, max_gap=np.array([5.0, 5.0])),
        "values must be a dense": lambda: Sequences.from_array(torch.ones(2, 3, 1).to_sparse()),
        "times must be a dense": lambda: Sequences(torch.arange(6)[None].to_sparse(), VALUES[:1]),
        "an index must be a dense": lambda: PLAIN[torch.arange(2, device="meta")],
        "controls must be a dense": lambda: Sequences.from_array(VALUES, controls=VALUELESS),
        "values that are masked must be floats": lambda: Sequences.from_array(MASKED),
        "times must be real numbers; got object": lambda: Sequences(MIXED, VALUES[:1]),
        "time must be a number": lambda: PLAIN.split_by_time(None),
        "a table must be a frame": lambda: Sequences.from_table(5, time="t", values="x"),
        "time must be the name of a column": lambda: Sequences.from_table(
            FRAME, id="id", time=ARRAY, values="x0"
        ),
        "id must be the name of a column": lambda: Sequences.from_table(
            FRAME, id=ARRAY, time="time", values="x0"
        ),
        "spacing, the time between two observations, must be a number": lambda: (
            Sequences.from_array(VALUES, spacing=GRID)
        ),
        "dtype must be a floating-point dtype of torch, such as torch.float32; got torch.float8": (
            lambda: PLAIN.to(dtype=torch.float8_e5m2)
        ),
        "dtype must be a floating-point dtype of torch, such as torch.float32; got array": (
            lambda: PLAIN.to(dtype=ARRAY)
        ),
        "values must be real numbers": lambda: Sequences.from_array(SMALL),
        "device must be one of this machine": lambda: PLAIN.to("nowhere"),
        "device must be one of this machine, such as cpu; got 2.5": lambda: PLAIN.to(2.5),
        "about must be that of other": lambda: Sequences(PLAIN.times, VALUES, about=THREE),
        "observed must be Sequences": lambda: PLAIN.plot(observed=3),
    }


def of_rollouts(model: Any) -> Calls:
    """Arguments of `rollout`."""
    return {
        "data must be Sequences": lambda: model.rollout("context", 9.0),
        "until must be real numbers": lambda: model.rollout(CONTEXT, None),
        "until must be real numbers; got bool": lambda: model.rollout(CONTEXT, True),
        "stamps must be numbers": lambda: model.rollout(CONTEXT, "noon"),
        "until must be a finite time": lambda: model.rollout(CONTEXT, NAN),
        "until must be one time": lambda: model.rollout(CONTEXT, [[9.0]]),
        "max_updates must be a whole number": lambda: model.rollout(CONTEXT, 9, max_updates=2.5),
        "max_updates must be a whole number; got True": lambda: model.rollout(
            CONTEXT, 9.0, max_updates=True
        ),
        "max_updates must be at least 1": lambda: model.rollout(CONTEXT, 9.0, max_updates=0),
        "max_updates must be below 2**63": lambda: model.rollout(CONTEXT, 9.0, max_updates=2**70),
        "controls were given": lambda: model.rollout(CONTEXT, 9.0, ([5.0], [[1.0]])),
    }


def of_stepping(model: Any) -> Calls:
    """Arguments of `rollout` for models that step."""
    return {
        "step must be a number": lambda: model.rollout(CONTEXT, 9.0, step="1"),
        "step must be a number; got True": lambda: model.rollout(CONTEXT, 9.0, step=True),
        "step must be a finite number": lambda: model.rollout(CONTEXT, 9.0, step=HUGE),
        "step must be above 0": lambda: model.rollout(CONTEXT, 9.0, step=-1.0),
    }


def of_configs() -> Calls:
    """Options of models."""
    pcode = PCODE.for_data
    return {
        "missing must be True or False": lambda: pcode(PLAIN, missing="no"),
        "whole_steps must be True or False": lambda: pcode(PLAIN, whole_steps="no"),
        "hidden must be a whole number": lambda: pcode(PLAIN, hidden=8.0),
        "a network must have at most": lambda: pcode(PLAIN, hidden=10**9),
        "a network must have": lambda: pcode(PLAIN, hidden=4096, step_layers=1000),
        "layers must be at least 2 and at most 1000": lambda: pcode(PLAIN, hidden=2, layers=10**6),
        "step_layers must be at least 1 and at most": lambda: pcode(PLAIN, step_layers=1001),
        "blocks must be at least 1 and at most": lambda: StateSpace.for_data(PLAIN, blocks=1001),
        "tolerance must be a finite number": lambda: pcode(PLAIN, tolerance=INF),
        "targets must be a list": lambda: pcode(PLAIN, targets=0.5),
        "a feature can be asked for": lambda: pcode(PLAIN, targets="x"),
        "scale must be a list": lambda: pcode(PLAIN, scale="big"),
        "data must be Sequences": lambda: pcode(VALUES),  # pyright: ignore
        "models must be a list": lambda: Ensemble(3),  # pyright: ignore
        "model must be a Model; got the class RNN": lambda: Ensemble([RNN, MODELS["RNN"]]),
        "options of PCODE must be a dictionary": lambda: PCODE.from_config(3),  # pyright: ignore
        "options of PCODE must have dim": lambda: PCODE.from_config({}),
        "the name of a model must be a text": lambda: register(RNN, name=3),  # pyright: ignore
        "the name of a task must be a text": lambda: load_task(["lines"]),  # pyright: ignore
        "cache must be True or False": lambda: load_task("lines", cache="no"),  # pyright: ignore
    }


def of_paths() -> Calls:
    """Arguments of `Path`."""
    return {
        "every must be a number": lambda: PATH.to_table(every=True, like="pandas"),
        "a table must have at most": lambda: PATH.to_table(every=1e-12, like="pandas"),
        "times must be real numbers": lambda: PATH.evaluate(None),
        "times must nest evenly": lambda: PATH.evaluate([[4.0], [4.0, 5.0]]),
        "side must be": lambda: PATH.evaluate(4.0, side=None),
        "intervals come from": lambda: PATH.interval(4.0, "most"),
        "controls must be real": lambda: PUSHED.rollout(DRIVEN.head(4), 9.0, ([5.0], [["a"]])),
    }


def of_trainings() -> Calls:
    """Arguments of `fit`."""
    model: Any = MODELS["RNN"]
    return {
        "data must be Sequences": lambda: fit(model, VALUES, horizon=2),  # pyright: ignore
        "data must describe": lambda: fit(model, PLAIN, PLAIN, data="mine"),  # pyright: ignore
        "horizon, the observations to predict, must fit": lambda: fit(model, PLAIN, horizon=9),
        "model must be a Model; got str": lambda: fit("x", PLAIN),  # pyright: ignore
        "model must be a Model; got the class RNN": lambda: fit(RNN, PLAIN),  # pyright: ignore
        "recipe must be a Recipe": lambda: fit(model, PLAIN, recipe={}),  # pyright: ignore
        "overwrite must be True or False": lambda: fit(model, PLAIN, overwrite="no"),  # pyright: ignore
        "progress must be True, False": lambda: fit(model, PLAIN, progress=-1),  # pyright: ignore
        "progress must be True, False or what shows it, a function of (what, share, details)": (
            lambda: fit(model, PLAIN, progress=lambda share: None)  # pyright: ignore
        ),
        "folder must be a path, a text": lambda: fit(model, PLAIN, PLAIN, folder=3),  # pyright: ignore
    }


def of_trained_models() -> Calls:
    """Arguments of what is done with a trained model, and names of its folder."""
    model: Any = MODELS["RNN"]
    return {
        "model must be a Model; got int": lambda: evaluate(3, PLAIN),  # pyright: ignore
        "model must be a Model; got str": lambda: calibrate(TEXT, PLAIN),
        "timing must be True or False": lambda: evaluate(model, PLAIN, timing=ARRAY),
        "seed must be a whole number": lambda: evaluate(model, PLAIN, seed="x"),  # pyright: ignore
        "events must be those of a task": lambda: evaluate(model, PLAIN, events=3),  # pyright: ignore
        "folder must be a path, a text or a Path; got NoneType": lambda: load(None),  # pyright: ignore
        "folder must be a path, a text or a Path; got bytes": lambda: Run(b"x"),  # pyright: ignore
        "folder must be a path, a text or a Path; got ndarray": lambda: RNN.load(VALUES),  # pyright: ignore
        "folder must be a path, a text or a Path; got int": lambda: model.save(3),
        "folder must be a path that can be used; embedded null byte": lambda: load("a\0b"),
        "folder must be a path that can be used; File name too long": lambda: load("x" * 5000),
    }


class Anywhere:
    """Any actions."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> torch.Tensor:
        """Random ones."""
        return torch.as_tensor(rng.random((problems, candidates, 2)))

    def project(self, actions: torch.Tensor) -> torch.Tensor:
        """The same."""
        return actions


def of_planners() -> Calls:
    """Arguments of planners and of scores."""
    rng, space, model = np.random.default_rng(0), Anywhere(), MODELS["RNN"]

    def plan(*given: Any) -> Any:
        return [
            planner.plan(*given)
            for planner in (RandomShooting(), CrossEntropy(), GradientDescent())
        ]

    def score(actions: Any) -> Any:
        return actions.sum(-1)

    most = 2**63 - 1
    return {
        "score must tell what each candidate costs": lambda: plan(2.5, space, 2, rng),
        "score must tell what each candidate costs, a function of (actions); got one": (
            lambda: plan(lambda: 3, space, 2, rng)
        ),
        "space must be an ActionSpace": lambda: plan(score, 3, 2, rng),
        "problems must be a whole number": lambda: plan(score, space, 2.5, rng),
        "rng must be a numpy.random.Generator": lambda: plan(score, space, 2, 0),
        "rollouts must be at least 1 and at most": lambda: RandomShooting(rollouts=most),
        "rollouts must be at least 5 and at most": lambda: CrossEntropy(rollouts=most),
        "rollouts must be at least 1 and at most 1": lambda: GradientDescent(rollouts=most),
        "model must have a rollout": lambda: RolloutScore(3, CONTEXT, score, 9.0, score),  # pyright: ignore
        "context must be Sequences": lambda: RolloutScore(model, VALUES, score, 9.0, score),  # pyright: ignore
        "controls must turn actions": lambda: RolloutScore(model, CONTEXT, 3, 9.0, score),  # pyright: ignore
        "a measure must make costs": lambda: RolloutScore(model, CONTEXT, score, 9.0, 3),  # pyright: ignore
    }


def of_numpy() -> None:
    """Numbers of numpy are as good as Python's, also when they are to be JSON."""
    options: Any = {"layers": np.int64(3), "time_unit": np.float32(0.5), "missing": np.bool_(True)}
    with tempfile.TemporaryDirectory() as folder:
        PCODE.from_config({"dim": 2, "hidden": np.uint8(4), **options}).save(folder)
    recipe = Recipe(steps=np.int64(7), noise=np.float32(0.5))  # pyright: ignore
    json.dumps(asdict(recipe))


def main() -> None:
    """Print each call whose error is not the one that explains it."""
    of_numpy()
    groups = [of_sequences(), of_configs(), of_paths(), of_trainings()]
    groups += [of_trained_models(), of_planners()]
    groups += [of_rollouts(model) for model in MODELS.values()]
    groups += [of_stepping(model) for name, model in MODELS.items() if name != "LatentODE"]
    for group in groups:
        for rule, call in group.items():
            try:
                found = repr(call())
            except InvalidInput as error:
                found = str(error)
                if found.startswith(rule):
                    continue
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            print(f"{rule}: {found}")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
