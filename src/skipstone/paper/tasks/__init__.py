"""The tasks of the paper: trajectories made exactly, with the true events behind them.

`skipstone.load_task` gives them as `Sequences`. What is exported here needs no torch.
"""

from skipstone.paper.tasks.base import Observed, Options, Scene, Task
from skipstone.paper.tasks.billiards import Motion, simulate
from skipstone.paper.tasks.events import Events, Kind
from skipstone.paper.tasks.recording import Recording, record
from skipstone.paper.tasks.registry import TASKS, find_task, task_options

__all__ = [
    "TASKS",
    "Events",
    "Kind",
    "Motion",
    "Observed",
    "Options",
    "Recording",
    "Scene",
    "Task",
    "find_task",
    "record",
    "simulate",
    "task_options",
]
