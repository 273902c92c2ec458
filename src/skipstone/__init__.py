"""Continuous-time sequence models that skip what is predictable.

The names below are the whole public API. They load on first use, so that importing the package
costs nothing until a model or a tensor is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skipstone.errors import InvalidInput
    from skipstone.knots import Knots, find_knots
    from skipstone.models.base import Losses
    from skipstone.models.latent_ode import LatentODE
    from skipstone.models.ode_rnn import ODERNN
    from skipstone.models.pcode import PCODE
    from skipstone.models.rnn import RNN
    from skipstone.path import Path, Status
    from skipstone.sequences import Sequences
    from skipstone.tasks.load import TaskData, load_task

_HOME = {
    "InvalidInput": "skipstone.errors",
    "Knots": "skipstone.knots",
    "LatentODE": "skipstone.models.latent_ode",
    "Losses": "skipstone.models.base",
    "ODERNN": "skipstone.models.ode_rnn",
    "PCODE": "skipstone.models.pcode",
    "Path": "skipstone.path",
    "RNN": "skipstone.models.rnn",
    "Sequences": "skipstone.sequences",
    "Status": "skipstone.path",
    "TaskData": "skipstone.tasks.load",
    "find_knots": "skipstone.knots",
    "load_task": "skipstone.tasks.load",
}

__all__ = [
    "ODERNN",
    "PCODE",
    "RNN",
    "InvalidInput",
    "Knots",
    "LatentODE",
    "Losses",
    "Path",
    "Sequences",
    "Status",
    "TaskData",
    "find_knots",
    "load_task",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'skipstone' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
