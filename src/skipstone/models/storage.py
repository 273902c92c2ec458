"""Models on disk: `config.json` and `weights.safetensors` in a folder. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.files import read_json, replacing, write_json
from skipstone.models.base import Model
from skipstone.models.registry import find_kind, kind_of

FORMAT = 2
"""Number of the folder format. A folder with another number is refused."""

CONFIG, WEIGHTS, RESULT = "config.json", "weights.safetensors", "result.json"


def describe_model(model: Model[Any]) -> dict[str, Any]:
    """A model's kind and configuration, as `config.json` holds them."""
    return {"kind": kind_of(model), **asdict(model.config)}


def model_from(described: dict[str, Any]) -> Model[Any]:
    """A model with fresh weights from its description."""
    options = dict(described)
    return find_kind(str(options.pop("kind", None))).from_config(options)


def save_model(model: Model[Any], folder: Path) -> None:
    """Write a model's config and weights, into any folder but that of a training."""
    if (folder / CONFIG).is_file() and "recipe" in read_config(folder):
        raise InvalidInput(
            f"{folder} holds a training, whose record would no longer be true. Save the model in a "
            "folder of its own."
        )
    write_tensors(folder / WEIGHTS, model.state_dict(), {})
    content = {"format": FORMAT, "model": describe_model(model)}
    write_json(folder / CONFIG, {**content, "weights_sha256": sha256(folder / WEIGHTS)})


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
