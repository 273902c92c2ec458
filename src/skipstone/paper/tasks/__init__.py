"""The tasks of the paper: exact trajectories with their true collisions.

`skipstone.load_task` gives them as `Sequences`. Nothing exported here needs torch.
"""

from skipstone.paper.tasks.base import TASKS, Observed, Options, Scene, Task
from skipstone.paper.tasks.billiards import Motion, simulate
from skipstone.paper.tasks.events import Events, Kind
from skipstone.paper.tasks.recording import Recording, record
from skipstone.paper.tasks.registry import find_task, task_options

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
