"""`fit`: train a model with Lightning, into a run folder, resumable at any moment.

A training step: `trainee.py` runs the loop, `objective.py` makes the batch and its draws, and the
model's `loss` does the rest.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import math
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from skipstone.console import Progress, show_progress
from skipstone.errors import InvalidInput, require_choice, require_number, require_seed
from skipstone.files import write_json
from skipstone.models.base import Model, require_sequences
from skipstone.models.storage import (
    FORMAT,
    RESULT,
    WEIGHTS,
    describe_model,
    sha256,
    write_tensors,
)
from skipstone.sequences import Sequences
from skipstone.training.objective import Objective
from skipstone.training.recipe import Recipe
from skipstone.training.run import CHECKPOINT, Run, provenance, start_folder

_PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


def fit(
    model: Model[Any],
    train: Sequences,
    validation: Sequences | None = None,
    *,
    folder: str | Path,
    recipe: Recipe | None = None,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    precision: str = "32-true",
    progress: bool | Progress = True,
    data: dict[str, Any] | None = None,
) -> Run:
    """Train a model, which ends with its best weights, and keep everything as a run folder.

    Calling it again with the same folder and arguments resumes an interrupted training, and
    returns a finished one at once, with that run's weights in `model`. Initial weights are the
    model's own: call `torch.manual_seed` before building it if they are to be the same each time.
    Without `validation`, a tenth of `train` is kept for it. Without a `recipe` it is `Recipe()`,
    what we recommend.

    `progress` is whether to show a progress bar, or a function to call instead. `data` describes
    where the sequences come from, for the record.
    """
    recipe = recipe or Recipe()
    check_hardware(device, devices, precision)
    require_seed(seed)
    require_sequences(train)
    train.require_length(model.config.num_context + 1)
    if validation is None:
        if len(train) < 10:
            raise InvalidInput(
                "a tenth of the sequences is kept for validation, so there must be at least 10; "
                f"got {len(train)}. Bring more, or pass your own: fit(model, train, validation)."
            )
        train, validation = train.split([0.9, 0.1], seed=seed)
    require_sequences(validation)
    validation.require_length(model.config.num_context + 1)
    for part in (train, validation):
        model.prepare(part[:1], model.config.num_context + 1)
    config = {
        "format": FORMAT,
        "model": describe_model(model),
        "recipe": asdict(recipe),
        "seed": seed,
        "data": data or {"fingerprint": fingerprint(train), "validation": fingerprint(validation)},
    }
    run = start_folder(Path(folder), json.loads(json.dumps(config)))
    if run.finished:
        model.load_state_dict(run.load().state_dict())
        return run
    options = {"accelerator": device, "devices": devices, "precision": precision}
    with show_progress(progress is True) as bar:
        show = bar if isinstance(progress, bool) else progress
        _train(model, Objective(train, recipe, seed), validation, run, options, show)
    return run


def fingerprint(sequences: Sequences) -> str:
    """A short hash of the data, so that a run is never resumed with other data."""
    digest = hashlib.sha256()
    for part in (sequences.times, sequences.values, sequences.controls, sequences.mask):
        if part is not None:
            digest.update(str(tuple(part.shape)).encode())
            digest.update(part.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _train(
    model: Model[Any],
    objective: Objective,
    validation: Sequences,
    run: Run,
    options: dict[str, Any],
    show: Progress,
) -> None:
    """Run the loop, and write weights and result when it is done."""
    require_lightning()
    import lightning

    from skipstone.training.trainee import Trainee, tensorboard

    source = provenance()
    trainee = Trainee(model, objective, validation, run.folder / CHECKPOINT, show)
    with _interruptible(trainee), _quiet_lightning():
        trainer = lightning.Trainer(
            **options,
            strategy="ddp" if options["devices"] > 1 else "auto",
            max_steps=objective.recipe.steps - trainee.state.step,
            gradient_clip_val=objective.recipe.gradient_clip or None,
            logger=tensorboard(run.folder),
            enable_progress_bar=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
        )
        trainer.fit(trainee)
    if not trainer.is_global_zero:
        raise SystemExit(0)
    if trainee.interrupted:
        raise KeyboardInterrupt(
            f"stopped after step {trainee.state.step}; everything is in {run.folder}. Start the "
            "same training again to resume it."
        )
    _finish(trainee, run, source)


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Lightning advises on data loaders, loggers and devices that are chosen here on purpose."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning\..*")
            yield
    finally:
        logger.setLevel(level)


def _finish(trainee: Any, run: Run, source: dict[str, Any]) -> None:
    """Write the best weights and the result, then drop the checkpoint."""
    state = trainee.state
    weights = run.folder / WEIGHTS
    write_tensors(weights, state.best_weights, {"kind": run.config["model"]["kind"]})
    trainee.model.load_state_dict(state.best_weights)
    result = {
        "steps": state.step,
        "best_step": state.best_step,
        "validation_error": state.best_error if math.isfinite(state.best_error) else None,
        "training_loss": state.recent_loss,
        "wall_seconds": round(state.wall_seconds, 1),
        "seed": run.config["seed"],
        "weights_sha256": sha256(weights),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **source,
    }
    write_json(run.folder / RESULT, result)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)


@contextmanager
def _interruptible(trainee: Any) -> Iterator[None]:
    """Ctrl-C ends the training after the step it is in, so that what is saved is consistent."""

    def stop(number: int, frame: Any) -> None:
        trainee.interrupted = True

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # Not in the main thread: whoever is decides about Ctrl-C.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def check_hardware(device: str, devices: int, precision: str) -> None:
    """Raise for what this machine does not have, before any work is done."""
    available = ["auto", "cpu"]
    available += ["cuda"] if torch.cuda.is_available() else []
    available += ["mps"] if torch.backends.mps.is_available() else []
    require_choice("device", device, available)
    require_number("devices", devices, 1, whole=True)
    require_choice("precision", precision, _PRECISIONS)


def require_lightning() -> None:
    """Raise if Lightning is not installed."""
    if importlib.util.find_spec("lightning") is None:
        raise InvalidInput(
            "training runs on Lightning, which is not installed. "
            "Run: pip install 'skipstone[train]'"
        )
