"""One shot at pool, to plan with learned models.

Importing this registers `skipstone/Pool-v0`, if Gymnasium is installed.
"""

from importlib.util import find_spec

from skipstone.paper.figures.shot import draw_shot, planned_shot
from skipstone.paper.pool.game import (
    ImaginedScore,
    MirroredScore,
    ShotSpace,
    TrueScore,
    closest_approach,
    closest_observation,
)

__all__ = [
    "ImaginedScore",
    "MirroredScore",
    "ShotSpace",
    "TrueScore",
    "closest_approach",
    "closest_observation",
    "draw_shot",
    "planned_shot",
]

if find_spec("gymnasium") is not None:
    from skipstone.paper.pool.environment import register_environment

    register_environment()
