"""Models on disk: `config.json` and `weights.safetensors` in a folder. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from skipstone.calibration import Calibration
from skipstone.errors import InvalidInput
from skipstone.files import read_json, replacing, write_json
from skipstone.models.base import Model
from skipstone.models.registry import find_kind, kind_of

FORMAT = 3
"""Number of the folder format. A folder with another number is refused."""

CONFIG, WEIGHTS, RESULT = "config.json", "weights.safetensors", "result.json"
CALIBRATION = "calibration.safetensors"


def describe_model(model: Model[Any]) -> dict[str, Any]:
    """A model's kind and configuration, as `config.json` holds them."""
    return {"kind": kind_of(model), **asdict(model.config)}


def model_from(described: dict[str, Any]) -> Model[Any]:
    """A model with fresh weights from its description."""
    options = dict(described)
    return find_kind(str(options.pop("kind", None))).from_config(options)


def save_model(model: Model[Any], folder: Path) -> None:
    """Write a model's config, weights and calibration.

    The folder of a training keeps its record: there, only a calibration of its very model is added.
    """
    if (folder / CONFIG).is_file() and "recipe" in read_config(folder):
        _require_trained_here(model, folder)
    else:
        write_tensors(folder / WEIGHTS, model.state_dict(), {})
        content = {"format": FORMAT, "model": describe_model(model)}
        write_json(folder / CONFIG, {**content, "weights_sha256": sha256(folder / WEIGHTS)})
    if model.calibration is None:
        (folder / CALIBRATION).unlink(missing_ok=True)
        return
    found = model.calibration
    tensors = {"quantiles": found.quantiles, "edges": found.edges}
    write_tensors(folder / CALIBRATION, tensors, {"weights_sha256": sha256(folder / WEIGHTS)})


def _require_trained_here(model: Model[Any], folder: Path) -> None:
    """Raise unless the weights of a training are those of this model."""
    here, own = folder / WEIGHTS, model.state_dict()
    kept = read_tensors(here)[0] if here.is_file() else {}
    if kept.keys() != own.keys() or not all(
        torch.equal(kept[name], own[name].cpu()) for name in own
    ):
        raise InvalidInput(
            f"{folder} holds a training with other weights, whose record would no longer be true. "
            "Save the model in a folder of its own."
        )


def _load_calibration(folder: Path, weights: bytes) -> Calibration | None:
    """The quantiles of a model's errors, if the folder has any, and they are of these weights."""
    path = folder / CALIBRATION
    if not path.is_file():
        return None
    tensors, notes = read_tensors(path)
    if notes.get("weights_sha256") != hashlib.sha256(weights).hexdigest():
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
    config = read_json(path)
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise InvalidInput(f"{path} must describe a model; it was written by something else.")
    if config.get("format", 1) != FORMAT:
        raise InvalidInput(
            f"{folder} must have format {FORMAT}; it has format {config.get('format', 1)}, of "
            f"another version of skipstone. Train it again, or load it with that version."
        )
    return config


def load(folder: str | Path) -> Model[Any]:
    """The trained model of a folder, in evaluation mode."""
    folder = Path(folder)
    config, path = read_config(folder), folder / WEIGHTS
    model = model_from(config["model"])
    if not path.is_file():
        raise InvalidInput(f"{folder} has no {WEIGHTS}: {_why_no_weights(folder)}.")
    content, expected = path.read_bytes(), config.get("weights_sha256")
    if (folder / RESULT).is_file():
        expected = read_json(folder / RESULT)["weights_sha256"]
    if expected is not None and expected != hashlib.sha256(content).hexdigest():
        raise InvalidInput(
            f"{path} is not the file that was written with this folder (its checksum differs): it "
            "was cut short, edited or replaced. Copy it again."
        )
    try:
        tensors, _ = parse_tensors(content, path)
        kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
        if len(kinds) == 1:
            model = model.to(kinds.pop())
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        kind = config["model"]["kind"]
        raise InvalidInput(
            f"{path} must hold the weights of the {kind} in {CONFIG}; {reason}"
        ) from None
    model.calibration = _load_calibration(folder, content)
    return model.eval()


def _why_no_weights(folder: Path) -> str:
    if (folder / RESULT).is_file():
        return "only its numbers are kept. Train it again, in another folder"
    return "its training has not finished"


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    """Write tensors as safetensors, atomically, with notes in the file's header."""
    # Copies: weights that are tied share memory, which the format does not know.
    copies = {name: each.detach().cpu().clone().contiguous() for name, each in tensors.items()}
    with replacing(path) as beside:
        # Through bytes, so that permissions and errors are those of any other file.
        beside.write_bytes(safetensors.torch.save(copies, metadata=notes))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors of a safetensors file, and the notes in its header."""
    return parse_tensors(path.read_bytes(), path)


def parse_tensors(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The same from bytes that were read before; `path` is named in errors."""
    try:
        tensors = safetensors.torch.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return tensors, header.get("__metadata__", {})
    except (SafetensorError, ValueError) as error:
        raise InvalidInput(
            f"{path} must be a safetensors file; it is damaged or something else: {error}."
        ) from None


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
