"""The figures of a report, in order, with what there is to see in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone.errors import InvalidInput
from skipstone.paper.examples import CANDIDATES, Example, make_examples, typical_for
from skipstone.paper.figures.collisions import updates_and_collisions
from skipstone.paper.figures.frontier import error_against_step
from skipstone.paper.figures.hero import hero
from skipstone.paper.figures.planning import draw_success
from skipstone.paper.figures.studies import capacity, cost_against_sampling_rate, error_by_horizon
from skipstone.paper.figures.summary import task_summary
from skipstone.paper.frontier import frontiers
from skipstone.paper.groups import OURS, by_model, by_task, comparable
from skipstone.paper.measured import Measured
from skipstone.paper.pool.schemas import read_planning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERO = "billiards2d"
"""The task of the first figure, and of the gif."""

COLLIDING = ("billiards1d", "billiards2d")
"""Tasks whose updates are shown beside their collisions."""

RASTER = 12
"""Trajectories of each whose updates are shown."""


@dataclass(frozen=True)
class Illustration:
    """A figure of the report; `draw` raises `InvalidInput` if there is nothing to show."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]


def illustrations(
    measured: Sequence[Measured], examples: dict[str, Example], planning: Path | None
) -> Iterator[Illustration]:
    """All figures; `planning` is the file of results that `skipstone plan` wrote."""
    if HERO in examples:
        yield Illustration(
            "hero",
            "Two balls, by each model",
            "Predicted paths over what truly happens. Dots are cell updates; the strip above each "
            f"panel shows how long every step lasts. {typical_text(examples[HERO])}",
            lambda: hero(examples[HERO]),
        )
    for task, example in examples.items():
        yield Illustration(
            task,
            task,
            "Left: a prediction by a baseline and one by the PC-ODE. Then the mean step during "
            "training, and error against mean step: training goes from light to dark, the end is "
            "on test data, and grey is the PC-ODE at constant steps. Lower right is better. "
            f"{typical_text(example)}",
            lambda example=example: task_summary(example, measured),
        )
    yield from _studies(measured)
    yield Illustration(
        "planning",
        "Planning",
        "Shots that truly succeed, against the number of rollouts that chose them.",
        lambda: draw_success(_planning_results(planning, measured)),
    )


def typical_text(example: Example) -> str:
    """By which rule a trajectory was chosen."""
    return (
        f"The trajectory is typical: of {CANDIDATES}, the one whose error is the median of the "
        f"{typical_for(example.predictions)}'s."
    )


def _studies(measured: Sequence[Measured]) -> Iterator[Illustration]:
    """The figures about many runs."""
    yield Illustration(
        "frontier",
        "Error against mean step",
        "Each dot is a PC-ODE that was trained for another mean step; the dashed line is the error "
        f"of an RNN. Dots below the line are more exact than the RNN. {_budget(measured)}",
        lambda: error_against_step(measured),
    )
    yield Illustration(
        "horizon",
        "Error against horizon",
        "How fast rollouts drift from the truth.",
        lambda: error_by_horizon(measured),
    )
    yield Illustration(
        "collisions",
        "Updates and collisions",
        "Left: when the PC-ODE updates and when balls collide, for the first trajectories there "
        "are. Right: how many of one are within an observation of the other, against chance.",
        lambda: updates_and_collisions(_raster(measured), measured),
    )
    yield Illustration(
        "capacity",
        "Capacity",
        "The mean step of PC-ODEs of different sizes, each with the same tolerance. In the paper "
        "it grows with the number of units.",
        lambda: capacity(measured),
    )
    yield Illustration(
        "sampling",
        "Cost against sampling rate",
        "The same balls, observed more often. The RNN updates at every observation. The dotted "
        "line is the number of collisions in a rollout.",
        lambda: cost_against_sampling_rate(measured),
    )


def _budget(measured: Sequence[Measured]) -> str:
    """The budgets of the frontier's trainings in words."""
    budgets = {frontier.budget for frontier in frontiers(measured).values()}
    said = " or ".join(f"{units} units and {steps:,} steps" for units, steps in sorted(budgets))
    return f"All have {said}, which is less than in the table." if said else ""


def first_models(runs: Sequence[Measured]) -> dict[str, Any]:
    """The model of the lowest seed of each kind, of those whose weights are kept."""
    kept = sorted((run for run in runs if run.run.has_weights), key=lambda run: run.seed)
    return {model: first.run.load() for model, (first, *_) in by_model(kept).items()}


def _raster(measured: Sequence[Measured]) -> list[Example]:
    examples = []
    ours = [run for run in comparable(measured) if run.model == OURS and run.task in COLLIDING]
    for task, runs in by_task(ours).items():
        if models := first_models(runs):
            examples += make_examples(task, models, RASTER)
    return examples


def _planning_results(path: Path | None, measured: Sequence[Measured]) -> dict[str, Any]:
    """The results of planning, if they are those of the models at hand."""
    if path is None or not path.is_file():
        raise InvalidInput(
            "there must be results of planning to draw, by models of shots. Get some: skipstone "
            "plan; with --from-scratch, train shots."
        )
    content = read_planning(path)
    known = {run.run.result["weights_sha256"] for run in measured}
    strange = [
        run
        for model in content["models"].values()
        for run, checksum in zip(model["runs"], model["weights_sha256"], strict=True)
        if checksum not in known
    ]
    if strange:
        raise InvalidInput(
            f"results of planning must be about the models at hand; {path} has others, "
            f"{', '.join(strange)}. Plan again: skipstone plan"
        )
    return content
