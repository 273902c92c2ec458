"""Continuous-time sequence models that skip what is predictable.

The names below are the whole public API. They load on first use, so that importing the package
costs nothing until a model or a tensor is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skipstone.errors import InvalidInput
    from skipstone.evaluation import Estimate, Evaluation, evaluate
    from skipstone.models.base import Losses
    from skipstone.models.latent_ode import LatentODE
    from skipstone.models.ode_rnn import ODERNN
    from skipstone.models.pcode import PCODE
    from skipstone.models.rnn import RNN
    from skipstone.models.search import Knots, find_knots
    from skipstone.paper.tasks.load import TaskData, load_task
    from skipstone.path import Path, Status
    from skipstone.registry import register
    from skipstone.sequences import Sequences
    from skipstone.training.fit import fit
    from skipstone.training.recipe import Recipe
    from skipstone.training.run import Run, load

_HOME = {
    "Estimate": "skipstone.evaluation",
    "Evaluation": "skipstone.evaluation",
    "InvalidInput": "skipstone.errors",
    "Knots": "skipstone.models.search",
    "LatentODE": "skipstone.models.latent_ode",
    "Losses": "skipstone.models.base",
    "ODERNN": "skipstone.models.ode_rnn",
    "PCODE": "skipstone.models.pcode",
    "Path": "skipstone.path",
    "RNN": "skipstone.models.rnn",
    "Recipe": "skipstone.training.recipe",
    "Run": "skipstone.training.run",
    "Sequences": "skipstone.sequences",
    "Status": "skipstone.path",
    "TaskData": "skipstone.paper.tasks.load",
    "evaluate": "skipstone.evaluation",
    "find_knots": "skipstone.models.search",
    "fit": "skipstone.training.fit",
    "load": "skipstone.training.run",
    "load_task": "skipstone.paper.tasks.load",
    "register": "skipstone.registry",
}

__all__ = [
    "ODERNN",
    "PCODE",
    "RNN",
    "Estimate",
    "Evaluation",
    "InvalidInput",
    "Knots",
    "LatentODE",
    "Losses",
    "Path",
    "Recipe",
    "Run",
    "Sequences",
    "Status",
    "TaskData",
    "evaluate",
    "find_knots",
    "fit",
    "load",
    "load_task",
    "register",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'skipstone' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
