"""Planners: search actions with a score function.

A planner sees only the function, never a model. A better action has a lower score. Many independent
problems are planned at once, so that a score function sees few large batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput, require_function, require_kind, require_number

Actions = Float[Tensor, "problems candidates action"]
Scores = Float[Tensor, "problems candidates"]

Score = Callable[[Actions], Scores]
"""Cost of each candidate of each problem; lower is better, NaN is the worst."""

MOST_ROLLOUTS = 100_000_000
"""Candidates for each problem, at most: more than fit into memory."""


@runtime_checkable
class ActionSpace(Protocol):
    """The allowed actions."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Actions:
        """Random actions, the first candidates of a search."""
        ...

    def project(self, actions: Actions) -> Actions:
        """The nearest allowed actions."""
        ...


@dataclass(frozen=True)
class Plan:
    """The best action found for each problem."""

    actions: Float[Tensor, "problems action"]
    """The actions."""

    scores: Float[Tensor, " problems"]
    """Their scores."""

    rollouts: int
    """Candidates scored for each problem."""


@runtime_checkable
class Planner(Protocol):
    """A search for the best action."""

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        ...


def _check(score: Any, space: Any, problems: Any, rng: Any) -> None:
    """Whatever is of another kind is said before the search begins."""
    require_function("score must tell what each candidate costs", score, "actions")
    require_kind("space must be an ActionSpace, with sample and project", space, ActionSpace)
    require_number("problems", problems, 1, whole=True)
    generator = "Make one: numpy.random.default_rng(seed)."
    require_kind("rng must be a numpy.random.Generator", rng, np.random.Generator, generator)


class Candidates:
    """The best actions of a search so far, best first."""

    def __init__(self, count: int = 1):
        self._count = count
        self._rollouts = 0
        self.actions = self.scores = torch.empty(0)

    def offer(self, actions: Actions, score: Score) -> None:
        """Score candidates and keep the best."""
        with torch.no_grad():
            self.keep(actions, score(actions))

    def keep(self, actions: Actions, scores: Any) -> None:
        """Keep the best of these and those before."""
        _require_tensor("what a score function returns", scores, "torch.as_tensor(scores)")
        if scores.shape != actions.shape[:2]:
            raise InvalidInput(
                "a score function must return one score for each candidate, shape "
                f"{tuple(actions.shape[:2])}; got {tuple(scores.shape)}."
            )
        # NaN has no order; infinity is the worst score, and still belongs to an action.
        scores = scores.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
        known, self._rollouts = self._rollouts > 0, self._rollouts + scores.shape[1]
        if known:
            actions = torch.cat([self.actions, actions], dim=1)
            scores = torch.cat([self.scores, scores], dim=1)
        count = min(self._count, scores.shape[1])
        # Stable: of equal candidates the first one wins.
        order = scores.sort(dim=1, stable=True).indices[:, :count]
        self.actions, self.scores = _take(actions, scores, order)

    def plan(self, instead: Scores | None = None) -> Plan:
        """The best candidate of each problem, or the best by other scores of the first few."""
        if instead is None:
            return Plan(self.actions[:, 0], self.scores[:, 0], self._rollouts)
        first = instead.sort(dim=1, stable=True).indices[:, :1]
        actions, scores = _take(self.actions, self.scores, first)
        return Plan(actions[:, 0], scores[:, 0], self._rollouts)


@dataclass(frozen=True, kw_only=True)
class RandomShooting:
    """Score random actions and take the best: the paper's planner."""

    rollouts: int = 1_000
    """Candidates for each problem."""

    def __post_init__(self) -> None:
        require_number("rollouts", self.rollouts, 1, most=MOST_ROLLOUTS, whole=True)

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        _check(score, space, problems, rng)
        best = Candidates()
        best.offer(space.sample(rng, problems, self.rollouts), score)
        return best.plan()


@dataclass(frozen=True, kw_only=True)
class CrossEntropy:
    """Score random actions, then draw new ones around the best, closer from round to round.

    Good actions lie in several places, for example straight at the target or off a cushion. The
    mean of one Gaussian over all of them would be a bad action. So there is a Gaussian around each
    of the elite, drawn from equally often.
    """

    rollouts: int = 1_000
    """Candidates for each problem, all rounds together."""

    rounds: int = 5
    """Rounds of candidates; the first is random. More rounds search less widely and more finely."""

    elite: int = 10
    """How many of the best candidates so far the next ones are drawn around."""

    width: float = 0.1
    """Standard deviation of the first Gaussians, in units of the action."""

    shrink: float = 0.5
    """Factor by which the standard deviation falls from each round to the next."""

    margin: float = 0.0
    """Width of the neighbourhood over which scores are averaged to choose the plan, in units of the
    action. A model's scores are inexact, and a search finds where they are too low. With a margin
    the plan is the action, of the best `SHORTLIST`, around which scores are lowest on average: one
    that also works when it is missed a little. 0 takes the very best."""

    def __post_init__(self) -> None:
        require_number("margin", self.margin, 0)
        require_number("rounds", self.rounds, 1, whole=True)
        require_number("rollouts", self.rollouts, self.rounds, most=MOST_ROLLOUTS, whole=True)
        require_number("elite", self.elite, 1, whole=True)
        require_number("width", self.width, above=0)
        require_number("shrink", self.shrink, above=0)

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        return self.choose(self.search(score, space, problems, rng))

    def search(
        self,
        score: Score,
        space: ActionSpace,
        problems: int,
        rng: np.random.Generator,
        begin: Any = None,
    ) -> Candidates:
        """All candidates, the best first; they do not depend on the margin.

        `begin` are actions (problems, candidates, action) for the first round instead of random
        ones, at least as many as it takes: for example those of another search, to refine with a
        score that costs more.
        """
        _check(score, space, problems, rng)
        best, width = Candidates(self.rollouts), self.width
        sizes = [len(part) for part in np.array_split(np.arange(self.rollouts), self.rounds)]
        if begin is None:
            first = space.sample(rng, problems, sizes[0])
        else:
            first = space.project(_first_round(begin, sizes[0]))
        best.offer(first, score)
        for size in sizes[1:]:
            elite = best.actions[:, : self.elite]
            centres = elite[:, np.arange(size) % elite.shape[1]]
            noise = torch.as_tensor(rng.standard_normal(centres.shape)).to(centres)
            best.offer(space.project(centres + width * noise), score)
            width *= self.shrink
        return best

    def choose(self, found: Candidates) -> Plan:
        """The plan among the candidates of a search, by the margin."""
        if not self.margin:
            return found.plan()
        return found.plan(_around(found.actions, found.scores, self.margin))


SHORTLIST = 50
"""Best candidates among which a margin chooses."""


def _around(actions: Actions, scores: Scores, margin: float) -> Float[Tensor, "problems shortlist"]:
    """Scores of the best candidates, averaged over their neighbours with Gaussian weights.

    An infinite score counts as the worst finite one: a neighbour cannot veto.
    """
    finite = scores.isfinite()
    lowest = torch.where(finite, scores, torch.inf).amin(1, keepdim=True)
    highest = torch.where(finite, scores, -torch.inf).amax(1, keepdim=True)
    scores = scores.clamp(lowest, highest).nan_to_num(0.0, 0.0, 0.0)
    distance = torch.cdist(actions[:, :SHORTLIST], actions).to(scores.dtype)
    weight = (-(distance / margin).square() / 2).exp()
    return (weight @ scores[..., None])[..., 0] / weight.sum(2)


@dataclass(frozen=True, kw_only=True)
class GradientDescent:
    """Score random actions, then follow the gradient of the score from the best of them.

    For scores that can be differentiated, such as those of a model's `Path`.
    """

    rollouts: int = 1_000
    """Candidates for each problem, random ones and gradient steps together."""

    starts: int = 10
    """How many of the random candidates are improved."""

    steps: int = 25
    """Gradient steps from each start; each costs a rollout, and about as much again to go back."""

    learning_rate: float = 0.02
    """Of Adam, in units of the action."""

    def __post_init__(self) -> None:
        require_number("starts", self.starts, 1, whole=True)
        require_number("steps", self.steps, 1, whole=True)
        require_number("rollouts", self.rollouts, 1, most=MOST_ROLLOUTS, whole=True)
        least = self.starts * (self.steps + 1)
        if self.rollouts < least:
            raise InvalidInput(
                f"gradient descent from {self.starts} starts in {self.steps} steps takes at least "
                f"{least} rollouts; got {self.rollouts}."
            )
        require_number("learning_rate", self.learning_rate, above=0)

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        _check(score, space, problems, rng)
        best = Candidates(self.starts)
        scored = self.rollouts - self.starts * self.steps
        best.offer(space.sample(rng, problems, scored), score)
        actions = best.actions.clone().requires_grad_()
        adam = torch.optim.Adam([actions], lr=self.learning_rate)
        for _ in range(self.steps):
            adam.zero_grad()
            scores = score(actions)
            if not scores.requires_grad:
                raise InvalidInput(
                    "GradientDescent needs a score that can be differentiated by the actions; "
                    "this one cannot. Use RandomShooting or CrossEntropy."
                )
            # Each candidate has its own gradient; where it is NaN, the action stays.
            scores.nansum().backward()
            assert actions.grad is not None
            best.keep(actions.detach().clone(), scores.detach())
            actions.grad.nan_to_num_(0.0, 0.0, 0.0)
            adam.step()
            with torch.no_grad():
                actions.copy_(space.project(actions))
        return best.plan()


def _first_round(begin: Any, size: int) -> Actions:
    """The given actions, as many as a first round takes."""
    _require_tensor("begin", begin, "found.actions of another search")
    if begin.shape[1] < size:
        raise InvalidInput(
            f"begin must hold the {size} candidates of the first round for each problem; got "
            f"{begin.shape[1]}. Lower rollouts, or search more before."
        )
    return begin[:, :size]


def _require_tensor(name: str, value: Any, instead: str) -> None:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise InvalidInput(f"{name} must be a tensor; got {kind}. Give {instead}.")


def _take(
    actions: Actions, scores: Scores, order: Int[Tensor, "problems chosen"]
) -> tuple[Float[Tensor, "problems chosen action"], Float[Tensor, "problems chosen"]]:
    """The candidates of each problem at these indices."""
    wide = order[..., None].expand(-1, -1, actions.shape[2])
    return actions.gather(1, wide), scores.gather(1, order)
