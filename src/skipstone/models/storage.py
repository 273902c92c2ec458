"""Models on disk: `config.json` and `weights.safetensors` in a folder.

Everything that decides a prediction is under a checksum. A stranger's folder runs no code, and is
compared with its weights before anything of its size is allocated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from skipstone.calibration import Calibration
from skipstone.errors import InvalidInput
from skipstone.files import as_path, move_file, read_bytes, remove_file
from skipstone.locks import locked
from skipstone.models.base import Model
from skipstone.models.registry import find_kind, kind_of
from skipstone.models.schemas import ConfigRecord, ResultRecord
from skipstone.models.sizes import build_sized
from skipstone.models.tensors import TensorFile, open_tensors, write_tensors
from skipstone.records import json_text, read_sealed, require_fields, seal_of, write_sealed

FORMAT = 4
"""Number of the folder format. A folder with another number is refused."""

CONFIG, WEIGHTS, RESULT = "config.json", "weights.safetensors", "result.json"
CALIBRATION = "calibration.safetensors"

NAMES = {
    "weights_sha256": (WEIGHTS, "weights.next.safetensors"),
    "calibration_sha256": (CALIBRATION, "calibration.next.safetensors"),
}
"""By the entry of a config that decides which file counts: its name, and the one under which a
save first writes it."""

TRAINING = "training"
"""What a file of weights, or a checkpoint, calls the checksum of the config of its training."""


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
    """Write a model's config, weights and calibration: a kill leaves the former model or this one.

    The folder of a training keeps its record: there, only a calibration of its very model is added.
    """
    with locked(folder, "write to"):
        before = read_config(folder) if (folder / CONFIG).is_file() else {}
        if "recipe" in before:
            checksum = _require_trained_here(model, folder)
            if _write_calibration(model, folder / CALIBRATION, checksum) is None:
                remove_file(folder / CALIBRATION)
            return
        content = {"format": FORMAT, "model": describe_model(model)}
        json_text(content, CONFIG)  # Fails now, not when the weights are there.
        _settle(folder, before)
        weights, calibration = (folder / beside for _, beside in NAMES.values())
        checksum = write_tensors(weights, model.state_dict(), {})
        content["weights_sha256"] = checksum
        content["calibration_sha256"] = _write_calibration(model, calibration, checksum)
        write_sealed(folder / CONFIG, content)  # From here on it is this model.
        _settle(folder, content)


def _write_calibration(model: Model[Any], path: Path, weights_sha256: str) -> str | None:
    """Write the quantiles of a model's errors, if it has any; return the file's checksum."""
    if model.calibration is None:
        return None
    tensors = {"quantiles": model.calibration.quantiles, "edges": model.calibration.edges}
    return write_tensors(path, tensors, {"weights_sha256": weights_sha256})


def _settle(folder: Path, config: dict[str, Any]) -> None:
    """Give what a save has written its final name if the config is of it, and remove the rest."""
    for entry, (name, beside) in NAMES.items():
        coming = folder / beside
        if coming.is_file() and sha256(read_bytes(coming)).hexdigest() == config.get(entry):
            move_file(coming, folder / name)
        remove_file(coming)
        if config.get(entry, "unknown") is None:
            remove_file(folder / name)


def _open_own(folder: Path, config: dict[str, Any], entry: str) -> TensorFile | None:
    """The weights or the calibration of a folder; None if it has none. After a save was killed
    they may not have got their final names yet."""
    name, beside = NAMES[entry]
    expected = config.get(entry, "unknown")
    with suppress(InvalidInput):
        if (file := open_tensors(folder / beside)).sha256 == expected:
            return file
    is_there = expected is not None and (folder / name).is_file()
    return open_tensors(folder / name) if is_there else None


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


def _load_calibration(
    folder: Path, config: dict[str, Any], weights_sha256: str
) -> Calibration | None:
    """The quantiles of a model's errors, if the folder has any, and they are of these weights."""
    file = _open_own(folder, config, "calibration_sha256")
    if file is None:
        return None
    own = file.sealed and file.notes.get("weights_sha256") == weights_sha256
    own = own and config.get("calibration_sha256") in (None, file.sha256)
    tensors = file.tensors() if own else {}
    if not {"quantiles", "edges"} <= set(tensors):
        raise InvalidInput(
            f"{file.path} must be of the weights beside it; it is of others. Remove it, and "
            "calibrate again: skipstone.calibrate(model, sequences)."
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
    return load_hashed(as_path("folder", folder))[0]


def load_hashed(folder: Path) -> tuple[Model[Any], str]:
    """The trained model of a folder, and the checksum of the very weights that it has."""
    config = read_config(folder)
    weights = _open_own(folder, config, "weights_sha256")
    if weights is None:
        raise InvalidInput(f"{folder} has no {WEIGHTS}: {_why_no_weights(folder)}.")
    _require_own(weights, folder, config)
    model = _with_weights(config["model"], weights)
    model.calibration = _load_calibration(folder, config, weights.sha256)
    return model.eval(), weights.sha256


def _require_own(weights: TensorFile, folder: Path, config: dict[str, Any]) -> None:
    """Raise unless weights are those that a folder was written with."""
    finished = (folder / RESULT).is_file()
    expected = read_result(folder)["weights_sha256"] if finished else config.get("weights_sha256")
    # The weights of a training that ended early have no result to say so: they name it themselves.
    own = weights.notes.get(TRAINING) == seal_of(config) and weights.sealed
    if not own if expected is None else expected != weights.sha256:
        raise InvalidInput(
            f"{weights.path} is not the file that was written with this folder (its checksum, or "
            "that of its training, differs): it was cut short, edited or replaced. Copy it again."
        )


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
