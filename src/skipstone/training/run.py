"""`Run`: one training on disk, in plain files. Figures and tables read these and nothing else."""

from __future__ import annotations

import csv
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from skipstone.errors import InvalidInput
from skipstone.files import as_path, read_bytes, remove_file
from skipstone.models.base import Model
from skipstone.models.storage import (
    CONFIG,
    NAMES,
    RESULT,
    WEIGHTS,
    load,
    read_config,
    read_result,
)
from skipstone.records import read_record, require_schema, seal_of, write_json, write_sealed
from skipstone.training.schemas import EvaluationRecord, TrainingRecord

METRICS, CHECKPOINT, EVALUATION = "metrics.csv", "checkpoint.safetensors", "evaluation.json"
TENSORBOARD = "tensorboard"

EVALUATION_FORMAT = 1
"""Number of the format of `evaluation.json`."""


@dataclass(frozen=True, init=False)
class Run:
    """A folder that holds a training: config, metrics, and, when finished, weights and result."""

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", as_path("folder", folder))

    @property
    def config(self) -> dict[str, Any]:
        """What was trained, on what, and how."""
        config = read_config(self.folder)
        if "recipe" not in config:
            raise InvalidInput(
                f"{self.folder / CONFIG} must describe a training; it is of a model that was saved "
                "by hand. Load it with skipstone.load(folder)."
            )
        require_schema(config, TrainingRecord, str(self.folder / CONFIG))
        if "columns" in config["data"] and "times" not in config["data"]:
            raise InvalidInput(f"{self.folder / CONFIG} must say what the times of its table are.")
        return config

    @property
    def identity(self) -> str:
        """Checksum of its config: what its checkpoint and its result have to belong to."""
        return seal_of(self.config)

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return (self.folder / RESULT).is_file()

    def holds_finished(self, config: dict[str, Any]) -> bool:
        """Whether the folder holds a finished training with this very config."""
        return (self.folder / CONFIG).is_file() and self.finished and self.config == config

    @property
    def result(self) -> dict[str, Any]:
        """Final metrics, and what they came from."""
        if not self.finished:
            raise InvalidInput(
                f"{self.folder} has no {RESULT}: its training has not finished. Start the same "
                "training again to resume it."
            )
        return read_result(self.folder)

    @property
    def has_weights(self) -> bool:
        """Whether there is a model to load: of some runs only the numbers are kept."""
        return (self.folder / WEIGHTS).is_file()

    @property
    def evaluation(self) -> dict[str, Any]:
        """Its measurements on test data; empty if there are none."""
        path = self.folder / EVALUATION
        if not path.is_file():
            return {}
        content = read_record(path, EvaluationRecord)
        if content.pop("format") != EVALUATION_FORMAT:
            raise InvalidInput(
                f"{path} must have format {EVALUATION_FORMAT}. Remove it, and measure again: "
                "skipstone evaluate"
            )
        return content

    def keep_evaluation(self, content: dict[str, Any]) -> None:
        """Write its measurements on test data."""
        write_json(self.folder / EVALUATION, {"format": EVALUATION_FORMAT, **content})

    @property
    def metrics(self) -> list[dict[str, float]]:
        """Its validations, in order; columns are those of metrics.csv."""
        path = self.folder / METRICS
        if not path.is_file():
            return []
        try:
            rows = csv.DictReader(read_bytes(path).decode().splitlines())
            return [{name: float(x) for name, x in row.items()} for row in rows]
        except (ValueError, TypeError, csv.Error) as error:
            raise InvalidInput(
                f"{path} must be a table of numbers; it is damaged or was edited: {error}."
            ) from None

    def load(self) -> Model[Any]:
        """The trained model, in evaluation mode."""
        return load(self.folder)


def list_runs(root: Path, refused: list[OSError] | None = None) -> list[Run]:
    """All runs below a folder, by name. Why folders could not be looked into goes to `refused`."""
    note = None if refused is None else refused.append
    walked = os.walk(root, onerror=note)
    return [
        Run(path) for path in sorted(Path(each) for each, _, names in walked if CONFIG in names)
    ]


def provenance() -> dict[str, Any]:
    """What a number came from besides its configuration: versions, commit and machine."""
    return {
        "version": version("skipstone"),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "system": platform.system(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }


def _processor() -> str:
    """The processor's name, which on Linux only the kernel knows."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the source tree this runs from, marked if it has changes; None if installed.

    An installed package may lie inside a repository of the user's, in `.venv` say: that one's
    commit says nothing about the package.
    """
    here = Path(__file__).resolve()
    # Git would rather believe these than the folder, inside a hook for example.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout.strip()

    try:
        root = Path(git("rev-parse", "--show-toplevel")).resolve()
        if here.parents[1] != root / "src" / "skipstone":
            return None
        compiled = ":(top,exclude,glob)**/__pycache__/**"
        own = ["--untracked-files=all", "--", str(here.parents[1]), compiled]
        changed = git("status", "--porcelain", *own)
        return git("rev-parse", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def is_first_process(devices: int) -> bool:
    """Whether this is the first process of a training on so many devices, which locks and writes
    its folder. Further ones come later, and find what it has written."""
    # What started this process, for reasons of its own, may have left the variable behind.
    return devices == 1 or os.environ.get("LOCAL_RANK", "0") == "0"


def require_free(folder: Path) -> None:
    """Raise unless a folder is a run, or empty, or not there."""
    if (folder / CONFIG).is_file() or not folder.is_dir():
        return
    if any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty and not a run. Choose another folder.")


def start_folder(folder: Path, config: dict[str, Any], overwrite: bool) -> None:
    """Make a folder a run of this configuration, unless it already is one."""
    require_free(folder)
    # Before a former run is removed.
    require_schema(config, TrainingRecord, "what a run is told about its training")
    if (folder / CONFIG).is_file():
        if overwrite:
            _clear(folder)
        elif (before := Run(folder).config) != config:
            raise InvalidInput(
                f"{folder} holds a run with another {' and '.join(_differing(before, config))}. "
                "Choose another folder, or replace the run: overwrite=True, or --overwrite."
            )
        else:
            return
    write_sealed(folder / CONFIG, config)


def _differing(before: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """What two configurations do not share, by name."""
    return sorted(name for name in {*before, *config} if before.get(name) != config.get(name))


def _clear(folder: Path) -> None:
    """Remove the files of a run but its config, and nothing else that lies beside them."""
    # The result first: without it the folder holds a training that has not finished.
    models = [name for names in NAMES.values() for name in names]
    for name in (RESULT, EVALUATION, CHECKPOINT, *models, METRICS):
        remove_file(folder / name)
    shutil.rmtree(folder / TENSORBOARD, ignore_errors=True)
