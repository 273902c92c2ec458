"""What a training on a task has to hold in its config, beyond what any has; it may hold more.

Annotations are evaluated here, unlike elsewhere: `NotRequired` is only seen so.
"""

from typing import Any, NotRequired, TypedDict

from skipstone.models.schemas import ModelRecord
from skipstone.models.storage import CONFIG
from skipstone.records import require_schema
from skipstone.training.run import Run
from skipstone.training.schemas import JobRecord


class TaskRecord(TypedDict):
    """The task and its options, all of them."""

    task: str
    options: dict[str, Any]


class TaskTrainingRecord(TypedDict):
    """`config.json` of a training whose data can be made again."""

    data: TaskRecord


class SpacingRecord(TypedDict):
    """Options of a task, as far as a report reads them."""

    spacing: float


class ReportedDataRecord(TypedDict):
    """The data of a training in a report."""

    task: str
    options: SpacingRecord
    job: JobRecord


class ReportedModelRecord(ModelRecord):
    """The model of a training in a report."""

    hidden: int
    scale: NotRequired[list[float]]


class ReportedRecord(TypedDict):
    """`config.json` of a training in a report."""

    model: ReportedModelRecord
    data: ReportedDataRecord


def require_record(run: Run, schema: Any) -> dict[str, Any]:
    """The config of a run, if it has what a schema asks for."""
    config = run.config
    require_schema(config, schema, str(run.folder / CONFIG))
    return config
