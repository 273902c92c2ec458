"""`python -m skipstone.training.convert FOLDER ...`: run folders of format 3 become format 4.

JSON files are written anew, with every option of the model and with checksums; so is a calibration.
Weights stay as they are, and are compared with the checksum that the folder has of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput, printable
from skipstone.locks import locked
from skipstone.models.schemas import ConfigRecord
from skipstone.models.sizes import build_sized
from skipstone.models.storage import (
    CALIBRATION,
    CONFIG,
    FORMAT,
    RESULT,
    WEIGHTS,
    describe_model,
    load,
    model_from,
)
from skipstone.models.tensors import open_tensors, write_tensors
from skipstone.records import read_record, seal_of, write_json, write_sealed
from skipstone.training.run import EVALUATION, EVALUATION_FORMAT


def convert_folder(folder: Path) -> None:
    """Write a folder's JSON files in the present format; raise if its weights are not its own."""
    read_record(folder / CONFIG, ConfigRecord)  # Fails before a folder is made to be locked.
    with locked(folder, "write to"):
        config = read_record(folder / CONFIG, ConfigRecord)
        if config.get("format") != FORMAT - 1:
            raise InvalidInput(
                f"{folder / CONFIG} must have format {FORMAT - 1} to be converted; it has "
                f"{config.get('format')}."
            )
        finished = (folder / RESULT).is_file()
        result = read_record(folder / RESULT, dict[str, Any]) if finished else {}
        _require_weights(folder, config, result)
        # All options, so that a later default cannot change what the model predicts.
        config["model"] = describe_model(model_from(config["model"]))
        config = json.loads(json.dumps({**config, "format": FORMAT}))
        if (folder / EVALUATION).is_file():
            measured = read_record(folder / EVALUATION, dict[str, Any])
            write_json(folder / EVALUATION, {"format": EVALUATION_FORMAT, **measured})
        if (folder / CALIBRATION).is_file():
            calibration = open_tensors(folder / CALIBRATION)
            write_tensors(calibration.path, calibration.tensors(), calibration.notes)
        if finished:
            bound = {"format": FORMAT, **result, "config_sha256": seal_of(config)}
            write_sealed(folder / RESULT, bound)
        # Last, so that what is interrupted can be begun again.
        write_sealed(folder / CONFIG, config)
    if (folder / WEIGHTS).is_file():
        load(folder)


def _require_weights(folder: Path, config: dict[str, Any], result: dict[str, Any]) -> None:
    """Raise unless a folder's weights, if it has any, are those that it was written with."""
    expected = result.get("weights_sha256", config.get("weights_sha256"))
    if expected is None:
        raise InvalidInput(
            f"{folder} must be finished to be converted; it has no checksum of its weights. Finish "
            "it with the version of skipstone that began it."
        )
    if not (folder / WEIGHTS).is_file():
        return
    file = open_tensors(folder / WEIGHTS)
    if file.sha256 != expected:
        raise InvalidInput(f"{file.path} is not the file that was written with this folder.")
    where = f"{file.path} must hold the weights of the model in {CONFIG}"
    build_sized(lambda: model_from(config["model"]), file.shapes, where)


def main() -> None:
    """Convert the folders that the command names."""
    try:
        for name in sys.argv[1:]:
            convert_folder(Path(name))
            print(printable(f"converted {name}"))
    except InvalidInput as error:
        print(printable(f"error: {error}"), file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
