"""The paper's planning experiment: how often a planned shot succeeds, and what planning costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from skipstone.console import Progress, silent
from skipstone.errors import require_number, require_seed
from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.models.base import Model
from skipstone.paper.pool.game import (
    MIRRORS,
    ImaginedScore,
    MirroredScore,
    ShotSpace,
    TrueScore,
    closest_approach,
    closest_observation,
)
from skipstone.paper.tasks.shots import POCKET_RADIUS, random_tables
from skipstone.planning.planners import CrossEntropy, GradientDescent, Plan, RandomShooting
from skipstone.planning.scores import BatchScore, Cost, Measure

SIMULATOR = "simulator"
"""The contestant that knows what truly happens."""

MEASURES = {"observed": closest_observation, "all times": closest_approach}
"""Times at which the distance to the pocket can be measured."""

REPEATS = 11
"""Shots planned one after the other to time them."""

MARGIN = 0.05
"""Margin of the cautious planner: the best of five, 0.01 to 0.08, on other tables, by a little."""

CHECKED = 20
"""Rollouts of the mirrored planner for each candidate that it also scores by mirror images, which
takes eight of them."""

MARKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500)
"""Numbers of rollouts at which success is measured, besides the largest."""

MOST = 1_000_000
"""Tables, and rollouts for each, that an experiment may have."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How large the experiment is."""

    tables: int = 250
    """Random configurations of the balls; the paper's number."""
    rollouts: int = 1_000
    """Candidate shots for each."""
    seed: int = 0
    """Seed of tables and candidates, the same for all contestants."""

    def __post_init__(self) -> None:
        require_number("tables", self.tables, 2, most=MOST, whole=True)
        require_number("rollouts", self.rollouts, 1, most=MOST, whole=True)
        require_seed(self.seed)


Contestants = Mapping[str, Sequence[Model[Any]]]
"""Models by the name they play under: one, or several that differ only by their seeds."""


@dataclass(frozen=True)
class Result:
    """How well one contestant plays with one planner; of several seeds, their mean."""

    contestant: str
    """Name of the contestant, or `SIMULATOR`."""
    planner: str
    """Name of the planner."""
    times: str
    """Times at which the distance to the pocket is measured: one of `MEASURES`."""
    rollouts: list[int]
    """Candidates scored for each shot."""
    success: list[Estimate]
    """Share of the tables won with that many, and its 95 % interval over tables."""
    updates: float
    """Cell updates of one rollout, after its context."""
    evaluations: float
    """Evaluations of an ODE's right-hand side of one rollout."""


class Experiment:
    """All contestants play the same tables."""

    def __init__(self, models: Contestants, settings: Settings, progress: Progress = silent):
        self._models, self._settings, self._progress = models, settings, progress
        rng = np.random.default_rng([settings.seed, 0])
        self.tables = random_tables(rng, settings.tables)
        self._bootstrap = Bootstrap(settings.tables, np.random.default_rng([settings.seed, 1]))
        # Fail now, not after minutes, for a model that cannot play or too few rollouts.
        for name in models:
            self._scores(name, self.tables[:1])
        self._cross_entropy = CrossEntropy(rollouts=settings.rollouts)
        self._cautious = CrossEntropy(rollouts=settings.rollouts, margin=MARGIN)
        self._gradient = GradientDescent(rollouts=settings.rollouts)

    @property
    def contestants(self) -> list[str]:
        """Names of all that play; the simulator first."""
        return [SIMULATOR, *self._models]

    def curves(self, name: str) -> list[Result]:
        """A contestant's random shooting with more and more rollouts: the paper's figure.

        All candidates are scored once. Success with n rollouts is that of the best of n random
        ones of them, averaged over all choices of n, so that it depends on the luck of the tables
        but hardly on that of the candidates.
        """
        counts = [n for n in MARKS if n < self._settings.rollouts] + [self._settings.rollouts]
        candidates, won = self._candidates
        cost = self._cost(name, "random")
        scores = self._scores(name, self.tables, *MEASURES.values(), cost=cost)
        found = [score.measured(candidates).numpy() for score in scores]
        results = []
        # The simulator is exact: it has no other way to measure.
        for column, times in enumerate(["all times"] if name == SIMULATOR else MEASURES):
            shares = [best_of(each[..., column], won, counts) for each in found]
            results.append(self._result(name, "random", times, counts, shares, cost))
        return results

    @cached_property
    def _candidates(self) -> tuple[Tensor, Bool[np.ndarray, "tables candidates"]]:
        """Random shots, the same for everyone, and which of them truly succeed."""
        candidates = ShotSpace().sample(self._rng(), len(self.tables), self._settings.rollouts)
        return candidates, (TrueScore(self.tables)(candidates) < POCKET_RADIUS).numpy()

    def searches(self, name: str) -> list[Result]:
        """The better planners for a contestant, with the same number of rollouts."""
        problem = ShotSpace(), len(self.tables)
        cost = self._cost(name, "cross-entropy")
        scores = self._scores(name, self.tables, closest_approach, cost=cost)
        found = [self._cross_entropy.search(score, *problem, self._rng()) for score in scores]
        plans = [self._cross_entropy.choose(each) for each in found]
        results = [self._played(name, "cross-entropy", plans, cost)]
        if name == SIMULATOR:
            return results
        # The same search; only the choice among its candidates differs.
        plans = [self._cautious.choose(each) for each in found]
        results.append(self._played(name, "cautious", plans, cost))

        cost = self._cost(name, "mirrored")
        rest = self.tables, self._settings.rollouts, self._rng, cost
        plans = [plan_mirrored(model, *rest) for model in self._models[name]]
        results.append(self._played(name, "mirrored", plans, cost))

        cost = self._cost(name, "gradient")
        scores = self._scores(name, self.tables, closest_approach, cost=cost)
        plans = [self._gradient.plan(score, *problem, self._rng()) for score in scores]
        results.append(self._played(name, "gradient", plans, cost))
        return results

    def wall_times(self) -> dict[str, Estimate]:
        """Seconds to plan one shot by random shooting, contestants taking turns."""
        planner = RandomShooting(rollouts=self._settings.rollouts)
        seconds: dict[str, list[float]] = {name: [] for name in self.contestants}
        for repeat in range(REPEATS + 1):
            table = self.tables[[repeat % len(self.tables)]]
            for name in self.contestants:
                began = perf_counter()
                score = self._scores(name, table, closest_observation)[0]
                planner.plan(score, ShotSpace(), 1, self._rng())
                seconds[name].append(perf_counter() - began)
                self._progress(f"{name}, timing", (repeat + 1) / (REPEATS + 1))
        # The first round warms up. An estimate is the median and the quartiles.
        return {
            name: Estimate(*np.quantile(times[1:], [0.5, 0.25, 0.75]).tolist())
            for name, times in seconds.items()
        }

    def play(self, plan: Plan) -> Bool[np.ndarray, " tables"]:
        """Whether each table's planned shot truly succeeds."""
        distance = TrueScore(self.tables)(plan.actions[:, None])[:, 0]
        return (distance < POCKET_RADIUS).numpy()

    def _scores(
        self, name: str, tables: Any, *measures: Measure, cost: Cost | None = None
    ) -> list[BatchScore]:
        """A contestant's score functions for some tables, one for each seed."""
        if name == SIMULATOR:
            return [TrueScore(tables, cost)]
        return [ImaginedScore(model, tables, *measures, cost=cost) for model in self._models[name]]

    def _rng(self) -> np.random.Generator:
        """The same candidates for everyone."""
        return np.random.default_rng([self._settings.seed, 2])

    def _cost(self, name: str, planner: str) -> Cost:
        """Counts the work of a planner, and shows its progress."""
        seeds = 1 if name == SIMULATOR else len(self._models[name])
        total = len(self.tables) * self._settings.rollouts * seeds
        return Cost(watch=lambda done: self._progress(f"{name}, {planner}", done / total))

    def _played(self, name: str, planner: str, plans: Sequence[Plan], cost: Cost) -> Result:
        """How the plans of a planner, one for each seed, succeed."""
        rollouts = [cost.rollouts // (len(plans) * len(self.tables))]
        shares = [self.play(plan)[:, None].astype(float) for plan in plans]
        return self._result(name, planner, "all times", rollouts, shares, cost)

    def _result(
        self,
        name: str,
        planner: str,
        times: str,
        rollouts: list[int],
        by_seed: Sequence[Float[np.ndarray, "tables counts"]],
        cost: Cost,
    ) -> Result:
        shares = np.mean(by_seed, axis=0)
        return Result(
            contestant=name,
            planner=planner,
            times=times,
            rollouts=rollouts,
            success=self._bootstrap.ratios(shares, np.ones_like(shares)),
            updates=cost.updates / cost.rollouts,
            evaluations=cost.evaluations / cost.rollouts,
        )


Kept = dict[str, list[dict[str, Any]]]
"""Results by contestant, as plain data."""


def run_experiment(
    models: Contestants,
    settings: Settings,
    progress: Progress = silent,
    known: Kept | None = None,
    keep: Callable[[Kept], None] = lambda results: None,
) -> dict[str, Any]:
    """Everything the experiment measures, as plain data.

    `known` are results of contestants that have played already; `keep` is called with all results
    whenever another one has. Wall times are always measured, since contestants take turns at it.
    """
    experiment = Experiment(models, settings, progress)
    began, found = perf_counter(), dict(known or {})
    for name in experiment.contestants:
        if name not in found:
            played = [*experiment.curves(name), *experiment.searches(name)]
            found[name] = [asdict(result) for result in played]
            keep(found)
    # Random shooting of everyone first: that is what the paper compares.
    results = [result for name in experiment.contestants for result in found[name]]
    results.sort(key=lambda result: result["planner"] != "random")
    walls = experiment.wall_times()
    return {
        "settings": asdict(settings),
        "results": results,
        "seconds_per_shot": {name: asdict(estimate) for name, estimate in walls.items()},
        "wall_seconds": round(perf_counter() - began, 1),
    }


def plan_mirrored(
    model: Any,
    tables: Any,
    rollouts: int,
    rng: Callable[[], np.random.Generator],
    cost: Cost | None = None,
) -> Plan:
    """A wide search, and from the best of it a closer one that also scores mirror images."""
    require_number("rollouts", rollouts, 2 * CHECKED, whole=True)
    score = ImaginedScore(model, tables, closest_approach, cost=cost)
    closer = MirroredScore(model, tables, cost)
    checked, space, problems = rollouts // CHECKED, ShotSpace(), len(tables)
    wide = CrossEntropy(rollouts=rollouts - checked * len(MIRRORS))
    found = wide.search(score, space, problems, rng())
    close = CrossEntropy(rollouts=checked, rounds=2, elite=5, width=0.03)
    return close.search(closer, space, problems, rng(), begin=found.actions).plan()


def in_the_paper(result: dict[str, Any]) -> bool:
    """Whether a result is a curve of the paper's figure: random shooting, measured at observations
    (the simulator always measures at all times)."""
    measured = result["times"] == "observed" or result["contestant"] == SIMULATOR
    return result["planner"] == "random" and measured


def best_of(
    scores: Float[np.ndarray, "tables candidates"],
    won: Bool[np.ndarray, "tables candidates"],
    counts: list[int],
) -> Float[np.ndarray, "tables counts"]:
    """How often the best-scored of n random candidates wins, exactly, for each table and n.

    Of n out of N candidates, the one ranked i (from 0) is the best with probability
    C(N - 1 - i, n - 1) / C(N, n): it is drawn, and none of the i before it.
    """
    total = scores.shape[1]
    order = np.argsort(scores, axis=1, kind="stable")  # NaN last
    ranked = np.take_along_axis(won, order, axis=1).astype(float)
    behind = total - 1 - np.arange(total - 1)
    columns = []
    for count in counts:
        ratios = np.maximum(behind - count + 1, 0) / behind
        weights = count / total * np.cumprod(np.concatenate([[1.0], ratios]))
        columns.append(ranked @ weights)
    return np.stack(columns, axis=1)
