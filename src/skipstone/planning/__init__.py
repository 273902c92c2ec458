"""Plan with learned models: score functions, planners, and the pool table to try them on.

Importing this registers `skipstone/Pool-v0`, if Gymnasium is installed.
"""

from importlib.util import find_spec

from skipstone.planning.game import (
    ImaginedScore,
    MirroredScore,
    ShotSpace,
    TrueScore,
    closest_approach,
    closest_observation,
)
from skipstone.planning.picture import draw_shot, planned_shot
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
    "ImaginedScore",
    "MirroredScore",
    "Plan",
    "Planner",
    "RandomShooting",
    "Score",
    "ShotSpace",
    "TrueScore",
    "closest_approach",
    "closest_observation",
    "draw_shot",
    "planned_shot",
]

if find_spec("gymnasium") is not None:
    from skipstone.planning.pool import register

    register()
