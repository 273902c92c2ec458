"""`Run`: one training on disk, in plain files. Figures and tables read these and nothing else."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.files import read_json, replacing, write_json
from skipstone.models.base import Model
from skipstone.models.latent_ode import LatentODE
from skipstone.models.ode_rnn import ODERNN
from skipstone.models.pcode import PCODE
from skipstone.models.rnn import RNN

MODELS: dict[str, type[Model[Any]]] = {
    "pcode": PCODE,
    "rnn": RNN,
    "odernn": ODERNN,
    "latentode": LatentODE,
}
"""Models by the name used on disk and on the command line."""

TITLES = {"pcode": "PC-ODE", "rnn": "RNN", "odernn": "ODE-RNN", "latentode": "latent ODE"}
"""The same models by the name that people read."""

CONFIG, METRICS, WEIGHTS, RESULT, CHECKPOINT = (
    "config.json",
    "metrics.csv",
    "weights.safetensors",
    "result.json",
    "checkpoint.safetensors",
)


@dataclass(frozen=True)
class Run:
    """A folder that holds a training: config, metrics, and, when finished, weights and result."""

    folder: Path

    @property
    def config(self) -> dict[str, Any]:
        """What was trained, on what, and how."""
        path = self.folder / CONFIG
        if not path.is_file():
            raise InvalidInput(
                f"a run is a folder with {CONFIG}; {self.folder} has none. `skipstone runs FOLDER` "
                "lists those in a folder."
            )
        config = read_json(path)
        if not isinstance(config, dict) or not {"model", "recipe", "seed"} <= set(config):
            raise InvalidInput(f"{path} must describe a run; it was written by something else.")
        return config

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return (self.folder / RESULT).is_file()

    @property
    def result(self) -> dict[str, Any]:
        """Final metrics, and what they came from."""
        if not self.finished:
            raise InvalidInput(
                f"{self.folder} has no {RESULT}: its training has not finished. Start the same "
                "training again to resume it."
            )
        return read_json(self.folder / RESULT)

    @property
    def has_weights(self) -> bool:
        """Whether there is a model to load: of some runs only the numbers are kept."""
        return (self.folder / WEIGHTS).is_file()

    def load(self) -> Model[Any]:
        """The trained model, in evaluation mode."""
        described = self.config["model"]
        model = model_from(described)
        path = self.folder / WEIGHTS
        if not self.has_weights:
            reason = (
                "only its numbers are kept. Train it again, in another folder"
                if self.finished
                else "its training has not finished"
            )
            raise InvalidInput(f"{self.folder} has no {WEIGHTS}: {reason}.")
        # A training that diverged leaves its best weights without a result.
        expected = self.result["weights_sha256"] if self.finished else None
        if expected is not None and expected != sha256(path):
            raise InvalidInput(
                f"{path} is not the file that this training wrote (its checksum differs): it was "
                "cut short, edited or replaced. Copy it again."
            )
        tensors, _ = read_tensors(path)
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InvalidInput(
                f"{path} must hold the weights of the {described['kind']} in {CONFIG}; {reason}"
            ) from None
        return model.eval()


def load(folder: str | Path) -> Model[Any]:
    """The trained model of a run folder."""
    return Run(Path(folder)).load()


def list_runs(root: Path) -> list[Run]:
    """All runs below a folder, by name."""
    return [Run(path.parent) for path in sorted(root.rglob(CONFIG)) if path.is_file()]


def describe_model(model: Model[Any]) -> dict[str, Any]:
    """A model's kind and configuration, for `config.json`."""
    kind = next(name for name, kind in MODELS.items() if type(model) is kind)
    return {"kind": kind, **asdict(model.config)}


def model_from(described: dict[str, Any]) -> Model[Any]:
    """A model with fresh weights from its description."""
    options = {name: value for name, value in described.items() if name != "kind"}
    if described.get("kind") not in MODELS:
        raise InvalidInput(
            f"a model must be one of {', '.join(MODELS)}; got {described.get('kind')!r}."
        )
    return MODELS[described["kind"]].from_config(options)


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    """Write tensors as safetensors, atomically, with notes in the file's header."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        # Through bytes, so that permissions and errors are those of any other file.
        beside.write_bytes(save(contiguous, metadata=notes))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file and its notes; nothing is unpickled."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InvalidInput(
            f"{path} must be a safetensors file; it is damaged or something else: {error}."
        ) from None


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    """The commit of the source tree this runs from, marked if it has changes; None if installed."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here))
        return git("rev-parse", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def start_folder(folder: Path, config: dict[str, Any]) -> Run:
    """A run folder for this configuration: new, or one that has the very same."""
    run = Run(folder)
    if (folder / CONFIG).is_file():
        before = run.config
        if before != config:
            differing = sorted(
                name for name in {*before, *config} if before.get(name) != config.get(name)
            )
            raise InvalidInput(
                f"{folder} holds a run with another {' and '.join(differing)}. Choose another "
                "folder, or remove that one."
            )
        return run
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty and not a run. Choose another folder.")
    write_json(folder / CONFIG, config)
    return run
