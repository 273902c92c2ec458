"""Continuous-time sequence models that skip what is predictable.

The names below are the whole public API. They load on first use, so that importing the package
costs nothing until a model or a tensor is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skipstone.errors import InvalidInput
    from skipstone.sequences import Sequences
    from skipstone.tasks.load import TaskData, load_task

__all__ = ["InvalidInput", "Sequences", "TaskData", "load_task"]

_HOME = {
    "InvalidInput": "skipstone.errors",
    "Sequences": "skipstone.sequences",
    "TaskData": "skipstone.tasks.load",
    "load_task": "skipstone.tasks.load",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'skipstone' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
