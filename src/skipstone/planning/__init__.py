"""Planners, which search actions with a score function, and scores of any model."""

from skipstone.planning.planners import (
    ActionSpace,
    Candidates,
    CrossEntropy,
    GradientDescent,
    Plan,
    Planner,
    RandomShooting,
    Score,
)
from skipstone.planning.scores import BatchScore, Cost, RolloutScore

__all__ = [
    "ActionSpace",
    "BatchScore",
    "Candidates",
    "Cost",
    "CrossEntropy",
    "GradientDescent",
    "Plan",
    "Planner",
    "RandomShooting",
    "RolloutScore",
    "Score",
]
