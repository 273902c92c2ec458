"""Planners: they search actions with a score function, and know nothing else.

A score is lower for a better action. Many independent problems are planned at once, so that a
score function sees few large batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput, require_number
from skipstone.models.base import require_positive

Actions = Float[Tensor, "problems candidates action"]
Scores = Float[Tensor, "problems candidates"]

Score = Callable[[Actions], Scores]
"""How bad each candidate is for its problem: NaN is the worst."""


@runtime_checkable
class ActionSpace(Protocol):
    """The actions there are."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Actions:
        """Random actions: what is known of good ones before any is tried."""
        ...

    def project(self, actions: Actions) -> Actions:
        """The nearest allowed actions."""
        ...


@dataclass(frozen=True)
class Plan:
    """The best action found for each problem."""

    actions: Float[Tensor, "problems action"]
    """What to do."""

    scores: Float[Tensor, " problems"]
    """What the score function says of it."""

    rollouts: int
    """Candidates scored for each problem."""


@runtime_checkable
class Planner(Protocol):
    """Anything that searches actions."""

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        ...


class Candidates:
    """The best actions of a search so far, sorted, and how many there were in all."""

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
        # A NaN compares with nothing: as infinity it is the worst, and an action all the same.
        scores = scores.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
        known, self._rollouts = self._rollouts > 0, self._rollouts + scores.shape[1]
        if known:
            actions = torch.cat([self.actions, actions], dim=1)
            scores = torch.cat([self.scores, scores], dim=1)
        count = min(self._count, scores.shape[1])
        # Stable: of equal candidates the first one, whatever came after it.
        order = scores.sort(dim=1, stable=True).indices[:, :count]
        self.actions, self.scores = _take(actions, scores, order)

    def plan(self, instead: Scores | None = None) -> Plan:
        """The first of each problem; or that of the first few with the lowest score in another
        order. Its own score stays with it."""
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
        require_number("rollouts", self.rollouts, 1, whole=True)

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
        best = Candidates()
        best.offer(space.sample(rng, problems, self.rollouts), score)
        return best.plan()


@dataclass(frozen=True, kw_only=True)
class CrossEntropy:
    """Score random actions, fit Gaussians to the best, draw from them, and again.

    Good actions lie in several places, for example straight at the target or off a cushion. One
    Gaussian over all of them would have its mean where none of them is. So there is one around
    each of the elite, drawn from equally often, and their width shrinks from round to round.
    """

    rollouts: int = 1_000
    """Candidates for each problem, all rounds together."""

    rounds: int = 5
    """How often candidates are drawn; the first time from the space at random. More rounds search
    less widely and more finely."""

    elite: int = 10
    """How many of the best candidates so far the next ones are drawn around."""

    width: float = 0.1
    """Standard deviation of the first Gaussians, in units of the action."""

    shrink: float = 0.5
    """Factor by which it falls from each round to the next."""

    margin: float = 0.0
    """How far from its neighbours an action should be able to lie, in units of the action. A score
    that a model imagines is off, and searching for the lowest finds where it flatters most. With a
    margin the plan is the action, of the best `SHORTLIST`, around which scores are lowest on
    average: a shot that also succeeds when it is not hit exactly. 0 takes the very best."""

    def __post_init__(self) -> None:
        require_number("margin", self.margin, 0)
        require_number("rounds", self.rounds, 1, whole=True)
        require_number("rollouts", self.rollouts, self.rounds, whole=True)
        require_number("elite", self.elite, 1, whole=True)
        require_positive("width", self.width)
        require_positive("shrink", self.shrink)

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

        `begin` holds actions (problems, candidates, action) for the first round instead of random
        ones, of which it takes as many as it needs: those that another search found, to go on with
        a score that costs more.
        """
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
        """The best of a search, or the safest of its best."""
        if not self.margin:
            return found.plan()
        return found.plan(_around(found.actions, found.scores, self.margin))


SHORTLIST = 50
"""Candidates among which a margin decides; those beyond are not good enough themselves."""


def _around(actions: Actions, scores: Scores, margin: float) -> Float[Tensor, "problems shortlist"]:
    """Scores of the best candidates, averaged over their neighbours by a Gaussian's weights.

    One that is infinite counts as much as the worst that is not: a neighbour cannot veto.
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
        require_number("rollouts", self.rollouts, 1, whole=True)
        least = self.starts * (self.steps + 1)
        if self.rollouts < least:
            raise InvalidInput(
                f"gradient descent from {self.starts} starts in {self.steps} steps takes at least "
                f"{least} rollouts; got {self.rollouts}."
            )
        require_positive("learning_rate", self.learning_rate)

    def plan(
        self, score: Score, space: ActionSpace, problems: int, rng: np.random.Generator
    ) -> Plan:
        """Search each problem's actions for the one with the lowest score."""
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
            # Each candidate has its own gradient. One that is NaN leaves its action where it is.
            scores.nansum().backward()
            assert actions.grad is not None
            best.keep(actions.detach().clone(), scores.detach())
            actions.grad.nan_to_num_(0.0, 0.0, 0.0)
            adam.step()
            with torch.no_grad():
                actions.copy_(space.project(actions))
        return best.plan()


def _first_round(begin: Any, size: int) -> Actions:
    """As many of the given actions as a first round takes."""
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
    """Some candidates of each problem, in an order."""
    wide = order[..., None].expand(-1, -1, actions.shape[2])
    return actions.gather(1, wide), scores.gather(1, order)
