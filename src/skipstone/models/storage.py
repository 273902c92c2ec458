"""Models on disk: `config.json` and `weights.safetensors` in a folder.

Everything that decides a prediction is under a checksum. A stranger's folder runs no code, and is
compared with its weights before anything of its size is allocated.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from skipstone.calibration import Calibration
from skipstone.errors import InvalidInput
from skipstone.files import remove_file
from skipstone.locks import locked
from skipstone.models.base import Model
from skipstone.models.registry import find_kind, kind_of
from skipstone.models.schemas import ConfigRecord, ResultRecord
from skipstone.models.sizes import build_sized
from skipstone.models.tensors import TensorFile, open_tensors, read_tensors, write_tensors
from skipstone.records import json_text, read_sealed, require_fields, seal_of, write_sealed

FORMAT = 4
"""Number of the folder format. A folder with another number is refused."""

CONFIG, WEIGHTS, RESULT = "config.json", "weights.safetensors", "result.json"
CALIBRATION = "calibration.safetensors"


def describe_model(model: Model[Any]) -> dict[str, Any]:
    """A model's kind and configuration, as `config.json` holds them."""
    return {"kind": kind_of(model), **asdict(model.config)}


def model_from(described: dict[str, Any]) -> Model[Any]:
    """A model with fresh weights from its description."""
    options = dict(described)
    kind = find_kind(str(options.pop("kind", None)))
    require_fields(options, kind.Config, f"a described {kind.__name__}")
    return kind.from_config(options)


def save_model(model: Model[Any], folder: Path) -> None:
    """Write a model's config, weights and calibration.

    The folder of a training keeps its record: there, only a calibration of its very model is added.
    """
    with locked(folder, "write to"):
        if (folder / CONFIG).is_file() and "recipe" in read_config(folder):
            checksum = _require_trained_here(model, folder)
        else:
            content = {"format": FORMAT, "model": describe_model(model)}
            json_text(content, CONFIG)  # Fails now, not when the weights are there.
            checksum = write_tensors(folder / WEIGHTS, model.state_dict(), {})
            write_sealed(folder / CONFIG, {**content, "weights_sha256": checksum})
        if model.calibration is None:
            remove_file(folder / CALIBRATION)
            return
        found = model.calibration
        tensors = {"quantiles": found.quantiles, "edges": found.edges}
        write_tensors(folder / CALIBRATION, tensors, {"weights_sha256": checksum})


def _require_trained_here(model: Model[Any], folder: Path) -> str:
    """Raise unless the weights of a training are those of this model; return their checksum."""
    own = model.state_dict()
    file = open_tensors(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else None
    kept = file.tensors() if file else {}
    if (
        file is None
        or kept.keys() != own.keys()
        or not all(torch.equal(kept[name], own[name].cpu()) for name in own)
    ):
        raise InvalidInput(
            f"{folder} holds a training with other weights, whose record would no longer be true. "
            "Save the model in a folder of its own."
        )
    return file.sha256


def _load_calibration(folder: Path, weights_sha256: str) -> Calibration | None:
    """The quantiles of a model's errors, if the folder has any, and they are of these weights."""
    path = folder / CALIBRATION
    if not path.is_file():
        return None
    tensors, notes = read_tensors(path)
    if notes.get("weights_sha256") != weights_sha256 or not {"quantiles", "edges"} <= set(tensors):
        raise InvalidInput(
            f"{path} must be of the weights beside it; it is of others. Remove it, and calibrate "
            "again: skipstone.calibrate(model, sequences)."
        )
    return Calibration(tensors["quantiles"], tensors["edges"])


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a folder, checked to be of this format."""
    path = folder / CONFIG
    if not path.is_file():
        raise InvalidInput(
            f"a run is a folder with {CONFIG}; {folder} has none. `skipstone runs FOLDER` lists "
            "those in a folder."
        )
    return read_sealed(path, ConfigRecord, FORMAT, _old(folder))


def _old(folder: Path) -> str:
    """What to do with a folder of another format."""
    return (
        f"A finished one of format {FORMAT - 1} can be converted: python -m "
        f"skipstone.training.convert {folder}. Train any other again, or load it with that version."
    )


def read_result(folder: Path) -> dict[str, Any]:
    """How the training in a folder ended, checked to be of the config beside it."""
    result = read_sealed(folder / RESULT, ResultRecord, FORMAT, _old(folder))
    if result["config_sha256"] != seal_of(read_config(folder)):
        raise InvalidInput(
            f"{folder / RESULT} must be of the {CONFIG} beside it; it is of another. Copy both "
            "again."
        )
    return result


def load(folder: str | Path) -> Model[Any]:
    """The trained model of a folder, in evaluation mode."""
    return load_hashed(Path(folder))[0]


def load_hashed(folder: Path) -> tuple[Model[Any], str]:
    """The trained model of a folder, and the checksum of the very weights that it has."""
    config, path = read_config(folder), folder / WEIGHTS
    if not path.is_file():
        raise InvalidInput(f"{folder} has no {WEIGHTS}: {_why_no_weights(folder)}.")
    file = open_tensors(path)
    finished = (folder / RESULT).is_file()
    expected = read_result(folder)["weights_sha256"] if finished else config.get("weights_sha256")
    if (expected is None and not file.sealed) or expected not in (None, file.sha256):
        raise InvalidInput(
            f"{path} is not the file that was written with this folder (its checksum differs): it "
            "was cut short, edited or replaced. Copy it again."
        )
    model = _with_weights(config["model"], file)
    model.calibration = _load_calibration(folder, file.sha256)
    return model.eval(), file.sha256


def _with_weights(described: dict[str, Any], file: TensorFile) -> Model[Any]:
    """The described model with the weights of a file."""
    where = f"{file.path} must hold the weights of the {described['kind']} in {CONFIG}"
    model = build_sized(lambda: model_from(described), file.shapes, where)
    tensors = file.tensors()
    kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(kinds) == 1:
        model = model.to(kinds.pop())
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InvalidInput(f"{where}; {str(error).splitlines()[-1].strip()}") from None
    return model


def _why_no_weights(folder: Path) -> str:
    if (folder / RESULT).is_file():
        return "only its numbers are kept. Train it again, in another folder"
    return "its training has not finished"
