"""What the JSON files of a training have to hold; they may hold more.

Annotations are evaluated here, unlike elsewhere: `NotRequired` is only seen so.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

from skipstone.models.schemas import ConfigRecord
from skipstone.training.recipe import LONGEST, Recipe


class JobRecord(TypedDict):
    """What a training on a task was asked for, as far as it is read again."""

    steps: int | None
    finer: int
    options: dict[str, Any]


class ColumnsRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The columns of the table that a training was on."""

    time: str
    values: list[str]
    controls: list[str]
    id: str | None = None
    duplicates: str = "error"


class DataRecord(TypedDict, total=False):
    """Where the data of a training came from; users add what they like."""

    task: str
    options: dict[str, Any]
    job: JobRecord
    columns: ColumnsRecord
    times: str
    fingerprint: str
    validation: str


class TrainingRecord(ConfigRecord):
    """`config.json` of a training."""

    recipe: Recipe
    seed: int
    data: DataRecord
    horizon: NotRequired[int | None]


class EstimateRecord(TypedDict):
    """A measured number with its interval; None for what is not finite."""

    value: float | None
    low: float | None
    high: float | None


class WallTimeRecord(TypedDict):
    """Seconds that a batch of rollouts takes."""

    batch: int
    seconds: EstimateRecord


class ConstantStepRecord(TypedDict):
    """Errors of rollouts at a constant step."""

    step: float
    mean_step: EstimateRecord
    sample_mse: EstimateRecord


class ValidTimeRecord(TypedDict):
    """How long rollouts stay close to the truth."""

    share: float
    time: EstimateRecord


class FeatureRecord(TypedDict):
    """Errors of one feature, by forecast."""

    name: str
    rmse: dict[str, EstimateRecord]


class ForecastsRecord(TypedDict):
    """Errors of the model and of naive forecasts."""

    features: list[FeatureRecord]


class EvaluationRecord(TypedDict):
    """`evaluation.json`: what was measured of a run, as far as it is read again."""

    format: int
    num_trajectories: int
    test_mse: EstimateRecord
    sample_mse: EstimateRecord
    mean_step: EstimateRecord
    updates: EstimateRecord
    function_evaluations: EstimateRecord
    horizon_mse: list[EstimateRecord]
    constant_steps: list[ConstantStepRecord]
    wall_times: list[WallTimeRecord]
    alignment: dict[str, EstimateRecord | int] | None
    valid_times: NotRequired[list[ValidTimeRecord]]
    forecasts: NotRequired[ForecastsRecord | None]


_Count = Annotated[int, msgspec.Meta(ge=0, le=LONGEST)]
_Number = float | Literal["nan", "inf", "-inf"]


class MetricsRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A validation, as a row of `metrics.csv` has it."""

    step: _Number
    training_loss: _Number
    mean_step: _Number
    validation_error: _Number
    learning_rate: _Number
    wall_seconds: _Number


class ProgressRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Where a training stood, in its checkpoint."""

    step: _Count
    best_error: _Number
    best_step: _Count
    stale: _Count
    recent_loss: _Number
    wall_seconds: Annotated[float, msgspec.Meta(ge=0)]
    rows: list[MetricsRecord]
