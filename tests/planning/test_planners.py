"""Planners on problems whose best action is known: they see a function and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skipstone import InvalidInput
from skipstone.planning import CrossEntropy, GradientDescent, Planner, RandomShooting


class Square:
    """Actions in [-1, 1]²."""

    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Tensor:
        return torch.as_tensor(rng.uniform(-1, 1, (problems, candidates, 2)))

    def project(self, actions: Tensor) -> Tensor:
        return actions.clamp(-1, 1)


GOALS = torch.tensor([[0.3, -0.2], [-0.9, 0.9], [2.0, 0.0]], dtype=torch.float64)
PLANNERS: list[Planner] = [
    RandomShooting(rollouts=300),
    CrossEntropy(rollouts=300),
    GradientDescent(rollouts=300, starts=4, steps=50),
]
CAUTIOUS = CrossEntropy(rollouts=300, margin=0.1)
each_planner = pytest.mark.parametrize("planner", PLANNERS, ids=lambda p: type(p).__name__)


def distance(actions: Tensor) -> Tensor:
    return (actions - GOALS[:, None]).square().sum(-1)


def plan(planner: Planner, score: Callable[[Tensor], Tensor] = distance, seed: int = 0) -> Any:
    return planner.plan(score, Square(), len(GOALS), np.random.default_rng(seed))


@each_planner
def test_finds_each_problems_best_action(planner: Planner) -> None:
    found = plan(planner)
    nearest = GOALS.clamp(-1, 1)
    precision = 0.25 if isinstance(planner, RandomShooting) else 0.02
    assert (found.actions - nearest).norm(dim=-1).max() < precision
    assert torch.equal(found.scores, distance(found.actions[:, None])[:, 0])


@each_planner
def test_scores_as_many_candidates_as_it_says(planner: Planner) -> None:
    scored = 0

    def counting(actions: Tensor) -> Tensor:
        nonlocal scored
        scored += actions.shape[1]
        return distance(actions)

    assert plan(planner, counting).rollouts == scored == 300


@each_planner
def test_never_worse_than_any_candidate_it_saw(planner: Planner) -> None:
    seen = []

    def remembering(actions: Tensor) -> Tensor:
        seen.append(distance(actions).detach())
        return distance(actions)

    found = plan(planner, remembering)
    assert torch.equal(found.scores, torch.cat(seen, dim=1).amin(1))


@each_planner
def test_the_same_seed_plans_the_same(planner: Planner) -> None:
    assert torch.equal(plan(planner).actions, plan(planner).actions)
    assert not torch.equal(plan(planner).actions, plan(planner, seed=1).actions)


@each_planner
def test_nan_is_the_worst_score(planner: Planner) -> None:
    def broken_on_the_right(actions: Tensor) -> Tensor:
        return torch.where(actions[..., 0] > -0.5, torch.nan, distance(actions))

    found = plan(planner, broken_on_the_right)
    assert bool((found.actions[:, 0] <= -0.5).all())
    assert bool(found.scores.isfinite().all())


@each_planner
def test_only_nan_still_gives_an_allowed_action(planner: Planner) -> None:
    found = plan(planner, lambda actions: distance(actions) * torch.nan)
    assert bool((found.scores == torch.inf).all())
    assert bool((found.actions.abs() <= 1).all())


@each_planner
def test_problems_do_not_touch_each_other(planner: Planner) -> None:
    def with_first_goal_moved(actions: Tensor) -> Tensor:
        goals = GOALS.clone()
        goals[0] = torch.tensor([0.7, 0.7])
        return (actions - goals[:, None]).square().sum(-1)

    assert torch.equal(plan(planner).actions[1:], plan(planner, with_first_goal_moved).actions[1:])


def test_cross_entropy_follows_several_good_places_at_once() -> None:
    """A wide shallow hollow, and a narrow deep one far away: the mean of both is in neither."""
    deep = torch.tensor([-0.8, -0.8], dtype=torch.float64)
    shallow = torch.tensor([0.7, 0.7], dtype=torch.float64)

    def hollows(actions: Tensor) -> Tensor:
        far, near = ((actions - place).norm(dim=-1) for place in (deep, shallow))
        return -1.5 * torch.exp(-((far / 0.45) ** 2)) - torch.exp(-((near / 0.7) ** 2))

    found = plan(CrossEntropy(rollouts=600), hollows)
    assert (found.actions - deep).norm(dim=-1).max() < 0.02


def test_a_gradient_needs_a_score_that_has_one() -> None:
    with pytest.raises(InvalidInput, match="can be differentiated"):
        plan(PLANNERS[2], lambda actions: distance(actions).detach())


def test_a_score_of_the_wrong_shape_is_an_error() -> None:
    with pytest.raises(InvalidInput, match=r"returns must be a tensor; got ndarray. Give torch"):
        plan(PLANNERS[0], lambda actions: np.asarray(distance(actions)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match=r"shape \(3, 300\); got \(3,\)"):
        plan(PLANNERS[0], lambda actions: distance(actions)[:, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RandomShooting(rollouts=0),
            "rollouts must be at least 1 and at most 100000000; got 0",
        ),
        (
            lambda: CrossEntropy(rollouts=3, rounds=5),
            "rollouts must be at least 5 and at most 100000000; got 3",
        ),
        (lambda: CrossEntropy(width=0), "width must be above 0; got 0"),
        (lambda: GradientDescent(rollouts=100), "takes at least 260 rollouts; got 100"),
        (lambda: GradientDescent(learning_rate=-1), "learning_rate must be above 0; got -1"),
    ],
)
def test_settings_are_checked(make: Callable[[], Planner], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_margin_prefers_actions_that_may_be_missed() -> None:
    narrow, wide = torch.tensor([-0.5, 0.0]), torch.tensor([0.5, 0.0])

    def score(actions: Tensor) -> Tensor:
        # Deep and narrow on the left, not quite as deep and wide on the right.
        left = (actions - narrow).norm(dim=-1) / 0.1 - 0.5
        right = 0.1 + (actions - wide).norm(dim=-1)
        return torch.minimum(left, right).clamp(max=1)

    deepest, safest = (
        plan(CrossEntropy(rollouts=3_000, rounds=1, margin=margin), score) for margin in (0, 0.1)
    )
    assert (deepest.actions - narrow).norm(dim=-1).max() < 0.1
    assert (safest.actions - wide).norm(dim=-1).max() < 0.1
    # It is told what its own action scores, not its neighbourhood.
    assert torch.equal(safest.scores, score(safest.actions[:, None])[:, 0])


def test_a_search_can_go_on_from_another() -> None:
    wide = CrossEntropy(rollouts=100).search(distance, Square(), 3, np.random.default_rng(0))
    first: list[Tensor] = []

    def score(actions: Tensor) -> Tensor:
        first.append(actions)
        return distance(actions)

    closer = CrossEntropy(rollouts=40, rounds=2)
    found = closer.search(score, Square(), 3, np.random.default_rng(1), begin=wide.actions)
    assert torch.equal(first[0], wide.actions[:, :20])
    assert (found.plan().scores <= wide.plan().scores).all()
    with pytest.raises(InvalidInput, match=r"begin must be a tensor; got Candidates. Give found"):
        closer.search(score, Square(), 3, np.random.default_rng(1), begin=wide)
    with pytest.raises(InvalidInput, match="begin must hold the 20 candidates"):
        closer.search(score, Square(), 3, np.random.default_rng(1), begin=wide.actions[:, :5])


def test_a_margin_near_zero_is_none() -> None:
    assert torch.equal(
        plan(CrossEntropy(rollouts=300, margin=1e-9)).actions,
        plan(CrossEntropy(rollouts=300)).actions,
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_neighbour_that_is_not_finite_vetoes_nothing(bad: float) -> None:
    def score(actions: Tensor) -> Tensor:
        return distance(actions).where(actions[..., 0] > -0.95, bad)

    found = plan(CAUTIOUS, score).actions
    assert found.isfinite().all()
    assert (found[0] - GOALS[0]).norm() < 0.1 or bad == -torch.inf


def test_no_finite_score_is_still_a_plan() -> None:
    found = plan(CAUTIOUS, lambda actions: torch.full(actions.shape[:2], torch.nan))
    assert found.actions.shape == (3, 2)
    assert found.actions.isfinite().all()
