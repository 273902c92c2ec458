"""Folders of the format before: refused with the command that converts them."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from skipstone import RNN, InvalidInput, Run, load
from skipstone.training.convert import convert_folder, main


def write_old(folder: Path, **result: Any) -> torch.nn.Module:
    """A folder as format 3 had them: no checksums of JSON files, and only some options."""
    torch.manual_seed(0)
    model = RNN.from_config({"dim": 2, "hidden": 4})
    folder.mkdir()
    weights = safetensors.torch.save(model.state_dict(), metadata={"kind": "rnn"})
    (folder / "weights.safetensors").write_bytes(weights)
    described = {"kind": "rnn", "dim": 2, "hidden": 4}
    checksum = hashlib.sha256(weights).hexdigest()
    recipe = {"steps": 2, "batch_size": 4}
    config = {"format": 3, "model": described, "recipe": recipe, "seed": 0, "data": {}}
    ended = {"steps": 2, "best_step": 2, "validation_error": None, "training_loss": 0.5, "seed": 0}
    source = {"finished": "", "version": "", "commit": None, "machine": {}, "wall_seconds": 1}
    bound = {**ended, **source, "weights_sha256": checksum, **result}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "result.json").write_text(json.dumps(bound))
    return model


def test_an_old_folder_says_how_to_convert_it_and_then_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old"
    model = write_old(folder)
    before = (folder / "weights.safetensors").read_bytes()
    command = f"python -m skipstone.training.convert {folder}"
    with pytest.raises(InvalidInput, match=f"it has format 3, of another version.*{command}"):
        load(folder)
    monkeypatch.setattr(sys, "argv", ["convert", str(folder)])
    main()
    assert (folder / "weights.safetensors").read_bytes() == before
    loaded = load(folder)
    assert loaded.config == model.config
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    # All options are there, so that a later default cannot change what it predicts.
    assert Run(folder).config["model"]["activation"] == "relu"
    assert Run(folder).result["steps"] == 2
    with pytest.raises(SystemExit, match="2"):
        main()


def test_a_calibration_is_converted_with_its_model(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    write_old(folder)
    checksum = json.loads((folder / "result.json").read_text())["weights_sha256"]
    tensors = {"quantiles": torch.ones(99, 3, 2), "edges": torch.arange(1.0, 4.0)}
    old = safetensors.torch.save(tensors, metadata={"weights_sha256": checksum})
    (folder / "calibration.safetensors").write_bytes(old)
    convert_folder(folder)
    calibration = load(folder).calibration
    assert calibration is not None
    assert torch.equal(calibration.edges, tensors["edges"])


def test_an_interrupted_conversion_can_be_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old"
    write_old(folder)
    import skipstone.training.convert as module

    original = module.write_sealed

    def interrupted(path: Path, content: Any) -> str:
        if path.name == "config.json":
            raise KeyboardInterrupt
        return original(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_sealed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert_folder(folder)
    convert_folder(folder)
    assert load(folder) is not None


def test_what_cannot_be_vouched_for_is_not_converted(tmp_path: Path) -> None:
    write_old(tmp_path / "damaged", weights_sha256="00ff")
    with pytest.raises(InvalidInput, match="is not the file that was written with this folder"):
        convert_folder(tmp_path / "damaged")
    write_old(tmp_path / "unfinished")
    (tmp_path / "unfinished" / "result.json").unlink()
    with pytest.raises(InvalidInput, match="must be finished to be converted"):
        convert_folder(tmp_path / "unfinished")
    assert json.loads((tmp_path / "damaged" / "config.json").read_text())["format"] == 3
    with pytest.raises(InvalidInput, match="must be a file; No such file"):
        convert_folder(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
