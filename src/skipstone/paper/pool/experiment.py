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
from skipstone.errors import require_number
from skipstone.evaluation.estimate import Bootstrap, Estimate
from skipstone.models.base import Model
from skipstone.paper.pool.game import (
    ImaginedScore,
    Measure,
    MirroredScore,
    ShotSpace,
    TrueScore,
    closest_approach,
    closest_observation,
)
from skipstone.paper.tasks.shots import POCKET_RADIUS, random_tables
from skipstone.planning.planners import (
    CrossEntropy,
    GradientDescent,
    Plan,
    RandomShooting,
)

SIMULATOR = "simulator"
"""The contestant that knows what truly happens."""

MEASURES = {"observed": closest_observation, "all times": closest_approach}
"""When the distance to the pocket can be measured."""

REPEATS = 11
"""Shots planned one after the other to time them."""

MARGIN = 0.05
"""Of the cautious planner: chosen among five, 0.01 to 0.08, on other tables; they differ little."""

CHECKED = 20
"""Of the mirrored planner: how many rollouts there are for each candidate that is scored with its
mirror images, which takes eight of them."""

MARKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500)
"""Numbers of rollouts at which success is measured, besides the largest."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How large the experiment is."""

    tables: int = 250
    """Random configurations of the balls; the paper's number."""

    rollouts: int = 1_000
    """Candidate shots for each."""

    seed: int = 0
    """Of tables and candidates, the same for all contestants."""

    def __post_init__(self) -> None:
        require_number("tables", self.tables, 2, whole=True)
        require_number("rollouts", self.rollouts, 1, whole=True)
        require_number("seed", self.seed, 0, whole=True)


@dataclass(frozen=True)
class Result:
    """How well one contestant plays with one planner."""

    contestant: str
    """Whose imagination is used."""

    planner: str
    """How it searches."""

    times: str
    """When the distance to the pocket is measured: one of `MEASURES`."""

    rollouts: list[int]
    """Candidates scored for each shot."""

    success: list[Estimate]
    """Share of the tables won with so many, and its 95 % interval over tables."""

    updates: float
    """Cell updates of one rollout, after its context."""

    evaluations: float
    """Evaluations of an ODE's right-hand side of one rollout."""


class Experiment:
    """All contestants play the same tables."""

    def __init__(
        self,
        models: Mapping[str, Model[Any]],
        settings: Settings,
        progress: Progress = silent,
    ):
        self._models = models
        self._settings = settings
        self._progress = progress
        rng = np.random.default_rng([settings.seed, 0])
        self.tables = random_tables(rng, settings.tables)
        self._bootstrap = Bootstrap(settings.tables, np.random.default_rng([settings.seed, 1]))
        # Fail now, not after minutes, for a model that cannot play or too few rollouts.
        for model in models.values():
            ImaginedScore(model, self.tables[:1])
        self._cross_entropy = CrossEntropy(rollouts=settings.rollouts)
        self._cautious = CrossEntropy(rollouts=settings.rollouts, margin=MARGIN)
        self._gradient = GradientDescent(rollouts=settings.rollouts)

    def contestants(self, *measures: Measure) -> dict[str, Callable[[Any], Any]]:
        """Score functions by name, each waiting for its tables; the simulator first."""

        def imagined(model: Model[Any]) -> Callable[[Any], Any]:
            return lambda tables: ImaginedScore(model, tables, *measures)

        models = {name: imagined(model) for name, model in self._models.items()}
        return {SIMULATOR: TrueScore, **models}

    def curves(self, name: str) -> list[Result]:
        """A contestant's random shooting with more and more rollouts: the paper's figure.

        All candidates are scored once. Success with n rollouts is that of the best of n random
        ones of them, averaged over all choices of n, so that it depends on the luck of the tables
        but hardly on that of the candidates.
        """
        counts = [n for n in MARKS if n < self._settings.rollouts] + [self._settings.rollouts]
        candidates, won = self._candidates
        score = self.contestants(*MEASURES.values())[name](self.tables)
        self._watch(score, name, "random")
        scores = score.measured(candidates).numpy()
        results = []
        # The simulator is exact: it has no other way to measure.
        for column, times in enumerate(["all times"] if name == SIMULATOR else MEASURES):
            shares = best_of(scores[..., column], won, counts)
            results.append(self._result(name, "random", times, counts, shares, score))
        return results

    @cached_property
    def _candidates(self) -> tuple[Tensor, Bool[np.ndarray, "tables candidates"]]:
        """Random shots, the same for everyone, and which of them truly succeed."""
        candidates = ShotSpace().sample(self._rng(), len(self.tables), self._settings.rollouts)
        return candidates, (TrueScore(self.tables)(candidates) < POCKET_RADIUS).numpy()

    def searches(self, name: str) -> list[Result]:
        """The better planners for a contestant, with the same number of rollouts."""
        if name == SIMULATOR:
            return self._cross_entropies(name, TrueScore(self.tables), [self._cross_entropy])
        model = self._models[name]
        score = ImaginedScore(model, self.tables, closest_approach)
        results = self._cross_entropies(name, score, [self._cross_entropy, self._cautious])
        return [*results, self._mirrored(name, model), self._descended(name, model)]

    def _cross_entropies(
        self, name: str, score: Any, planners: Sequence[CrossEntropy]
    ) -> list[Result]:
        """Planners that search alike and choose differently."""
        self._watch(score, name, "cross-entropy")
        found = planners[0].search(score, *self._problem())
        results = []
        for planner in planners:
            title = "cautious" if planner.margin else "cross-entropy"
            results.append(self._played(name, title, planner.choose(found), score))
        return results

    def _mirrored(self, name: str, model: Model[Any]) -> Result:
        score = ImaginedScore(model, self.tables, closest_approach)
        closer = MirroredScore(model, self.tables)
        self._watch(score, name, "mirrored")
        self._watch(closer, name, "mirrored", after=score)
        plan = plan_mirrored(score, closer, self._settings.rollouts, self._rng)
        return self._played(name, "mirrored", plan, score, closer)

    def _descended(self, name: str, model: Model[Any]) -> Result:
        score = ImaginedScore(model, self.tables, closest_approach)
        self._watch(score, name, "gradient")
        return self._played(name, "gradient", self._gradient.plan(score, *self._problem()), score)

    def _problem(self) -> tuple[ShotSpace, int, np.random.Generator]:
        """What a planner gets besides a score."""
        return ShotSpace(), len(self.tables), self._rng()

    def _played(self, name: str, planner: str, plan: Plan, *scores: Any) -> Result:
        """How a plan does in truth, and what it took to find."""
        shares = self.play(plan)[:, None].astype(float)
        rollouts = sum(score.rollouts for score in scores) // len(self.tables)
        return self._result(name, planner, "all times", [rollouts], shares, *scores)

    def wall_times(self) -> dict[str, Estimate]:
        """Seconds to plan one shot by random shooting, contestants taking turns."""
        planner = RandomShooting(rollouts=self._settings.rollouts)
        contestants = self.contestants(closest_observation)
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for repeat in range(REPEATS + 1):
            table = self.tables[[repeat % len(self.tables)]]
            for name, score_for in contestants.items():
                began = perf_counter()
                planner.plan(score_for(table), ShotSpace(), 1, self._rng())
                seconds[name].append(perf_counter() - began)
                self._progress(f"{name}, timing", (repeat + 1) / (REPEATS + 1))
        # The first round warms up.
        quartiles = {
            name: np.quantile(times[1:], [0.5, 0.25, 0.75]) for name, times in seconds.items()
        }
        return {name: Estimate(*values.tolist()) for name, values in quartiles.items()}

    def play(self, plan: Plan) -> Bool[np.ndarray, " tables"]:
        """Whether each table's planned shot truly succeeds."""
        distance = TrueScore(self.tables)(plan.actions[:, None])[:, 0]
        return (distance < POCKET_RADIUS).numpy()

    def _rng(self) -> np.random.Generator:
        """The same candidates for everyone."""
        return np.random.default_rng([self._settings.seed, 2])

    def _watch(self, score: Any, name: str, planner: str, after: Any = None) -> None:
        """Show the progress of a search's score, or of the one that comes after it."""
        total = len(self.tables) * self._settings.rollouts

        def watch(done: int) -> None:
            before = 0 if after is None else after.rollouts
            self._progress(f"{name}, {planner}", (before + done) / total)

        score.watch = watch

    def _result(
        self,
        name: str,
        planner: str,
        times: str,
        rollouts: list[int],
        shares: Float[np.ndarray, "tables counts"],
        *scores: Any,
    ) -> Result:
        total = sum(score.rollouts for score in scores)
        return Result(
            contestant=name,
            planner=planner,
            times=times,
            rollouts=rollouts,
            success=self._bootstrap.ratios(shares, np.ones_like(shares)),
            updates=sum(score.updates for score in scores) / total,
            evaluations=sum(score.evaluations for score in scores) / total,
        )


Kept = dict[str, list[dict[str, Any]]]
"""Results by contestant, as plain data."""


def run_experiment(
    models: Mapping[str, Model[Any]],
    settings: Settings,
    progress: Progress = silent,
    known: Kept | None = None,
    keep: Callable[[Kept], None] = lambda results: None,
) -> dict[str, Any]:
    """Everything the experiment measures, as plain data.

    `known` are results of contestants that have played already; whenever another one has, `keep` is
    told all there are. Wall times are always measured, since contestants take turns at it.
    """
    experiment = Experiment(models, settings, progress)
    began, found = perf_counter(), dict(known or {})
    for name in experiment.contestants():
        if name not in found:
            played = [*experiment.curves(name), *experiment.searches(name)]
            found[name] = [asdict(result) for result in played]
            keep(found)
    # Random shooting first, of everyone, as it is what is compared.
    results = [result for name in experiment.contestants() for result in found[name]]
    results.sort(key=lambda result: result["planner"] != "random")
    walls = experiment.wall_times()
    return {
        "settings": asdict(settings),
        "results": results,
        "seconds_per_shot": {name: asdict(estimate) for name, estimate in walls.items()},
        "wall_seconds": round(perf_counter() - began, 1),
    }


def plan_mirrored(
    score: ImaginedScore,
    closer: MirroredScore,
    rollouts: int,
    rng: Callable[[], np.random.Generator],
) -> Plan:
    """A wide search, and from the best of it a closer one that also looks at mirror images."""
    require_number("rollouts", rollouts, 2 * CHECKED, whole=True)
    checked, space, problems = rollouts // CHECKED, ShotSpace(), len(score.tables)
    wide = CrossEntropy(rollouts=rollouts - checked * closer.rollouts_each)
    found = wide.search(score, space, problems, rng())
    close = CrossEntropy(rollouts=checked, rounds=2, elite=5, width=0.03)
    return close.search(closer, space, problems, rng(), begin=found.actions).plan()


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
    # Stable, and NaN last.
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(won, order, axis=1).astype(float)
    behind = total - 1 - np.arange(total - 1)
    columns = []
    for count in counts:
        ratios = np.maximum(behind - count + 1, 0) / behind
        weights = count / total * np.cumprod(np.concatenate([[1.0], ratios]))
        columns.append(ranked @ weights)
    return np.stack(columns, axis=1)
