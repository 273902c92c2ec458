"""Planners: they search actions with a score function, and know no model."""

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

__all__ = [
    "ActionSpace",
    "Candidates",
    "CrossEntropy",
    "GradientDescent",
    "Plan",
    "Planner",
    "RandomShooting",
    "Score",
]
