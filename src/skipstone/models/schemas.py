"""What the JSON files of a model's folder have to hold; they may hold more.

Annotations are evaluated here, unlike elsewhere: `NotRequired` is only seen so.
"""

from typing import NotRequired, TypedDict


class ModelRecord(TypedDict):
    """A model in `config.json`: its kind, and the options of that kind."""

    kind: str


class ConfigRecord(TypedDict):
    """`config.json`, of a training or of a model that was saved by hand."""

    format: int
    model: ModelRecord
    weights_sha256: NotRequired[str]
    calibration_sha256: NotRequired[str | None]


class ResultRecord(TypedDict):
    """`result.json`: how a training ended."""

    format: int
    steps: int
    best_step: int
    validation_error: float | None
    training_loss: float
    wall_seconds: float
    seed: int
    config_sha256: str
    weights_sha256: str
    finished: str
    version: str
    commit: str | None
    machine: dict[str, str | int | None]
