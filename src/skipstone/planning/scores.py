"""Scores for planners, computed batch by batch; `RolloutScore` makes one of any model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.errors import InvalidInput, require_function, require_kind
from skipstone.path import Path
from skipstone.planning.planners import Scores
from skipstone.sequences import Sequences

ROWS = 1_000
"""Candidates scored together: enough to fill the machine, few enough for its cache. Candidates of
the same problem share the reading of their context."""

Measure = Callable[[Path], Float[Tensor, " rows"]]
"""Cost of each path of a batch; lower is better."""

Controls = Callable[[Float[Tensor, "rows action"]], tuple[Any, Any]]
"""`controls(actions) -> (now, later)`: the controls that actions stand for.

`now`, shape (rows, control), is in force from the last observation of the context on; None leaves
the context's own. `later` are times and values of the controls after that, as `rollout` takes them;
None if there are none.
"""


@runtime_checkable
class RollsOut(Protocol):
    """A model, as far as a score needs it."""

    def rollout(self, context: Sequences, until: Any, *, controls: Any = None) -> Path:
        """Predict from the end of a context until a time."""
        ...


@dataclass
class Cost:
    """Work done by one score, or by several that share it."""

    rollouts: int = 0
    """Rollouts so far."""
    updates: int = 0
    """Cell updates of these rollouts."""
    evaluations: int = 0
    """Evaluations of an ODE's right-hand side of these rollouts."""
    watch: Callable[[int], None] = lambda rollouts: None
    """Called after every batch with the rollouts so far, to show progress."""

    def add(self, rollouts: int, updates: int = 0, evaluations: int = 0) -> None:
        """Count a batch."""
        self.rollouts += rollouts
        self.updates += updates
        self.evaluations += evaluations
        self.watch(self.rollouts)


class BatchScore(ABC):
    """A score function that sees at most `ROWS` candidates at a time."""

    def __init__(self, problems: int, width: int | None = None, cost: Cost | None = None):
        """For so many problems, and actions of `width` numbers, or any number of them."""
        self.problems = problems
        self.width = width
        self.cost = Cost() if cost is None else cost

    def __call__(self, actions: Tensor) -> Scores:
        """The cost of each candidate of each problem, by the first measure."""
        return self.measured(actions)[..., 0]

    def measured(self, actions: Tensor) -> Float[Tensor, "problems candidates measures"]:
        """The cost of each candidate of each problem, by every measure."""
        shape = tuple(actions.shape)
        if len(shape) != 3 or shape[0] != self.problems or self.width not in (None, shape[2]):
            raise InvalidInput(
                f"actions must have shape ({self.problems}, candidates, {self.width or 'action'}), "
                f"candidates for each of the {self.problems} problems; got {shape}."
            )
        problems = torch.arange(self.problems).repeat_interleave(shape[1])
        batches = zip(problems.split(ROWS), actions.flatten(0, 1).split(ROWS), strict=True)
        scores = [self._score(rows, batch) for rows, batch in batches]
        return torch.cat(scores).reshape(*shape[:2], -1)

    @abstractmethod
    def _score(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows action"]
    ) -> Float[Tensor, "rows measures"]:
        """The costs of a batch, one action for one problem in each row; adds to `self.cost`."""


class RolloutScore(BatchScore):
    """Scores actions by rolling a model out, once for each candidate.

    `context` has one sequence for each problem: the observations before acting. `controls` turns
    actions into control inputs, `until` is the end of the rollout, one time for all problems or one
    for each, and each of `measures` makes a cost of the predicted path. Scores can be
    differentiated by the actions.

    The score of an `Ensemble` is the mean of its members' costs, and its updates are those of all.
    A search finds where one model is wrong in the action's favour; others seldom agree.
    """

    def __init__(
        self,
        model: RollsOut,
        context: Sequences,
        controls: Controls,
        until: float | Float[Tensor, " problems"],
        *measures: Measure,
        width: int | None = None,
        cost: Cost | None = None,
    ):
        if not measures:
            raise InvalidInput("a score must have at least one measure, Path -> cost; got none.")
        require_kind("model must have a rollout, as a Model has", model, RollsOut)
        require_kind("context must be Sequences", context, Sequences)
        require_function("controls must turn actions into inputs", controls, "actions")
        for measure in measures:
            require_function("a measure must make costs of a path", measure, "path")
        super().__init__(len(context), width, cost)
        self.model = model
        self._context, self._controls, self._until = context, controls, until
        self._measures = measures

    def inputs(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows action"]
    ) -> tuple[Sequences, Any]:
        """The context of each rollout, and the controls after it."""
        now, later = self._controls(actions)
        context = self._context[problems]
        return context if now is None else _with_last_control(context, now), later

    def rollout(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows action"]
    ) -> Path:
        """The predicted path of one action for one problem in each row."""
        context, controls = self.inputs(problems, actions)
        until = self._until[problems] if isinstance(self._until, Tensor) else self._until
        return self.model.rollout(context, until, controls=controls)

    def _score(
        self, problems: Int[Tensor, " rows"], actions: Float[Tensor, "rows action"]
    ) -> Float[Tensor, "rows measures"]:
        with torch.inference_mode(not actions.requires_grad):
            path = self.rollout(problems, actions)
            # Where members disagree, the mean of their paths is a path that none of them predicts.
            parts = path.members or (path,)
            stacked = torch.stack([self._costs(part) for part in parts]).mean(0)
        updates = sum(int(part.num_updates.sum()) for part in parts)
        self.cost.add(len(actions), updates, int(path.num_evaluations.sum()))
        # Outside inference mode, so that scores are tensors like any others.
        return stacked.to(actions.device).clone()

    def _costs(self, path: Path) -> Float[Tensor, "rows measures"]:
        """The costs of a batch of paths, by every measure."""
        rows = len(path.start)
        costs = [measure(path) for measure in self._measures]
        for cost in costs:
            if cost.shape != (rows,):
                raise InvalidInput(
                    f"a measure must return one cost for each path, shape ({rows},); got "
                    f"{tuple(cost.shape)}."
                )
        return torch.stack(costs, dim=1)


def _with_last_control(context: Sequences, now: Float[Tensor, "rows control"]) -> Sequences:
    """The context with other controls at its last observation."""
    if context.controls is None:
        raise InvalidInput(
            "a context must have controls for actions to set its last one; it has none. Give it "
            "controls of zero."
        )
    last = (context.lengths - 1)[:, None, None].expand(-1, 1, context.control_dim)
    now = now.to(context.controls)
    controls = context.controls.scatter(1, last, now[:, None])
    return Sequences(context.times, context.values, controls, context.mask)
