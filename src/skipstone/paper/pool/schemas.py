"""What `planning.json` has to hold; it may hold more.

Annotations are evaluated here, unlike elsewhere: `NotRequired` is only seen so.
"""

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from skipstone.errors import InvalidInput
from skipstone.records import read_record
from skipstone.training.schemas import EstimateRecord

PLANNING_FORMAT = 2
"""Number of the format of `planning.json`."""


class ContestantRecord(TypedDict):
    """Who has played: runs, which differ only by their seeds, and their weights."""

    runs: list[str]
    weights_sha256: list[str]
    together: bool
    """Whether they played as an ensemble; else success is the mean over them."""
    commit: NotRequired[str | None]


class PlannedRecord(TypedDict):
    """How one way to plan has done."""

    contestant: str
    planner: str
    times: str
    rollouts: list[int]
    success: list[EstimateRecord]
    updates: float | None
    evaluations: float | None


class PlanningRecord(TypedDict):
    """`planning.json`, of an experiment that is finished or not."""

    format: int
    settings: dict[str, int]
    models: dict[str, ContestantRecord]
    results: list[PlannedRecord]
    seconds_per_shot: NotRequired[dict[str, EstimateRecord]]
    commit: NotRequired[str | None]


def read_planning(path: Path) -> dict[str, Any]:
    """The results of planning in a file."""
    content = read_record(path, PlanningRecord)
    if content.pop("format") != PLANNING_FORMAT:
        raise InvalidInput(
            f"{path} must have format {PLANNING_FORMAT}. Remove it, and plan again: skipstone plan"
        )
    return content
