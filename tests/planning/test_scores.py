"""Scores by rollouts of any model: exact on a model whose paths are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from skipstone import PCODE, RNN, Ensemble, InvalidInput, Path, Sequences
from skipstone.path import Status
from skipstone.planning import Cost, GradientDescent, RandomShooting, RolloutScore, scores


class Pushed:
    """A point that moves at the speed of its control: x(end) is known in closed form."""

    def rollout(self, context: Sequences, until: Any, *, controls: Any = None) -> Path:
        assert context.controls is not None
        last = (context.lengths - 1)[:, None, None]
        begin = context.values.gather(1, last)[:, 0]
        speed = context.controls.gather(1, last)[:, 0]
        knots, values = context.ends[:, None], speed[:, None]
        if controls is not None:
            later = torch.as_tensor(controls[0], dtype=torch.float64).expand(len(context), -1)
            knots, values = torch.cat([knots, later], 1), torch.cat([values, controls[1]], 1)
        end = torch.as_tensor(until, dtype=torch.float64).expand(len(context))
        # Where each segment begins: the sum of the moves before it.
        moves = (values * knots.diff(dim=1, append=end[:, None])[..., None]).cumsum(1)
        starts = begin[:, None] + torch.cat([torch.zeros_like(moves[:, :1]), moves[:, :-1]], 1)

        def predict(segment: Tensor, offset: Tensor) -> tuple[Tensor, int]:
            index = segment[..., None]
            return starts.gather(1, index) + values.gather(1, index) * offset[..., None], 2

        rows = torch.zeros(len(context), dtype=torch.long)
        return Path(predict, knots, end, rows + Status.REACHED_END, rows)


CONTEXT = Sequences.from_lists(
    [[[0.0], [1.0]], [[2.0], [3.0], [4.0]]],
    controls=[np.zeros((2, 1)), np.zeros((3, 1))],
).to(dtype=torch.float64)
"""Two problems: at 1 at time 1, and at 4 at time 2."""

GOAL = 10.0


def two_pushes(actions: Tensor) -> tuple[Tensor, Any]:
    """The first action from the last observation on, the second from time 3 on."""
    return actions[:, :1], ([3.0], actions[:, 1:, None])


def miss(path: Path) -> Tensor:
    return (path.evaluate(path.end[:, None])[:, 0, 0] - GOAL).abs()


def middle(path: Path) -> Tensor:
    return path.evaluate(torch.full((len(path), 1), 3.0))[:, 0, 0]


def actions(candidates: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, candidates, 2, generator=generator, dtype=torch.float64)


def expected(tried: Tensor) -> tuple[Tensor, Tensor]:
    """Where each candidate is at time 3, and how far from the goal at time 5."""
    begin, before = torch.tensor([[1.0], [4.0]]), torch.tensor([[2.0], [1.0]])
    at_three = begin + before * tried[..., 0]
    return at_three, (at_three + 2 * tried[..., 1] - GOAL).abs()


def test_actions_become_controls_and_paths_become_costs() -> None:
    score = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss, middle)
    tried = actions(4)
    at_three, missed = expected(tried)
    torch.testing.assert_close(score(tried), missed)
    torch.testing.assert_close(score.measured(tried), torch.stack([missed, at_three], dim=-1))


def test_each_problem_can_have_its_own_end() -> None:
    score = RolloutScore(Pushed(), CONTEXT, two_pushes, torch.tensor([5.0, 3.5]), miss)
    at_three, missed = expected(actions(3))
    late = (at_three + 0.5 * actions(3)[..., 1] - GOAL).abs()
    torch.testing.assert_close(score(actions(3)), torch.stack([missed[0], late[1]]))


def test_batches_change_nothing_and_everything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    whole = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss, middle)
    together = whole(actions(5))
    monkeypatch.setattr(scores, "ROWS", 4)
    cost = Cost(watch=seen.append)
    apart = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss, middle, cost=cost)
    assert torch.equal(apart(actions(5)), together)
    assert seen == [4, 8, 10]
    # Two knots and two evaluations of two each.
    assert (cost.rollouts, cost.updates, cost.evaluations) == (10, 20, 40)
    assert (whole.cost.rollouts, whole.cost.updates, whole.cost.evaluations) == (10, 20, 40)


def test_scores_can_share_their_cost() -> None:
    cost = Cost()
    for _ in range(2):
        RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss, cost=cost)(actions(3))
    assert cost.rollouts == 12


def test_scores_have_the_gradient_of_the_path() -> None:
    score = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss)
    assert torch.autograd.gradcheck(score, actions(2).requires_grad_())
    assert not score(actions(2)).requires_grad
    # Scores without gradients are tensors like any others.
    score(actions(2)).add_(1)


class Line:
    def sample(self, rng: np.random.Generator, problems: int, candidates: int) -> Tensor:
        return torch.as_tensor(rng.uniform(-5, 5, (problems, candidates, 2)))

    def project(self, actions: Tensor) -> Tensor:
        return actions.clamp(-5, 5)


@pytest.mark.parametrize(
    ("planner", "close"),
    [
        (RandomShooting(rollouts=500), 0.2),
        (GradientDescent(rollouts=500, starts=4, steps=60, learning_rate=0.05), 0.1),
    ],
)
def test_planners_reach_the_goal(planner: Any, close: float) -> None:
    score = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss)
    plan = planner.plan(score, Line(), 2, np.random.default_rng(0))
    assert plan.scores.max() < close
    assert score.cost.rollouts == 2 * 500


@pytest.mark.parametrize("kind", [PCODE, RNN])
def test_a_model_of_ours_is_scored_as_it_rolls_out(kind: Any) -> None:
    torch.manual_seed(0)
    model = kind.from_config({"dim": 1, "control": 1, "hidden": 8, "num_context": 2}).double()
    score = RolloutScore(model.eval(), CONTEXT.tail(2), two_pushes, 6.0, middle)
    tried = actions(3)
    found = score(tried)
    for problem in range(2):
        for candidate in range(3):
            context = CONTEXT.tail(2)[problem]
            assert context.controls is not None
            context.controls[:, -1] = tried[problem, candidate, 0]
            later = [3.0], tried[problem, candidate, 1:, None]
            with torch.no_grad():
                path = model.rollout(context, 6.0, controls=later)
            torch.testing.assert_close(found[problem, candidate], middle(path)[0])


def test_an_ensemble_is_scored_by_the_mean_of_its_members_costs() -> None:
    torch.manual_seed(0)
    options = {"dim": 1, "control": 1, "hidden": 8, "num_context": 2}
    models = [PCODE.from_config(options).double().eval() for _ in range(3)]
    parts = [RolloutScore(each, CONTEXT.tail(2), two_pushes, 6.0, miss, middle) for each in models]
    together = RolloutScore(Ensemble(models).eval(), CONTEXT.tail(2), two_pushes, 6.0, miss, middle)
    tried = actions(4)
    alone = torch.stack([part.measured(tried) for part in parts])
    torch.testing.assert_close(together.measured(tried), alone.mean(0))
    assert together.cost.rollouts == parts[0].cost.rollouts
    assert together.cost.updates == sum(part.cost.updates for part in parts)


def test_the_contexts_own_controls_stay_without_new_ones() -> None:
    score = RolloutScore(Pushed(), CONTEXT, lambda actions: (None, None), 5.0, miss)
    torch.testing.assert_close(score(actions(1)), torch.tensor([[9.0], [6.0]]).double())


def test_mistakes_are_explained() -> None:
    score = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, miss, width=2)
    for wrong in (actions(3)[0], actions(3)[:1], actions(3)[..., :1]):
        with pytest.raises(InvalidInput, match=r"shape \(2, candidates, 2\).* got \("):
            score(wrong)
    with pytest.raises(InvalidInput, match="at least one measure"):
        RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0)
    total = RolloutScore(Pushed(), CONTEXT, two_pushes, 5.0, lambda path: miss(path).sum())
    with pytest.raises(InvalidInput, match=r"one cost for each path, shape \(6,\); got \(\)"):
        total(actions(3))
    bare = Sequences(CONTEXT.times, CONTEXT.values, mask=CONTEXT.mask)
    with pytest.raises(InvalidInput, match="a context must have controls"):
        RolloutScore(Pushed(), bare, two_pushes, 5.0, miss)(actions(3))
