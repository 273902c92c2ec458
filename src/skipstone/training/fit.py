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
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from os import cpu_count
from pathlib import Path
from typing import Any

import torch

from skipstone.console import Progress, show_progress
from skipstone.errors import (
    InvalidInput,
    as_plain,
    printable,
    require_choice,
    require_flag,
    require_function,
    require_kind,
    require_number,
    require_seed,
)
from skipstone.extras import require_installed
from skipstone.files import as_path, remove_file
from skipstone.locks import locked
from skipstone.models.base import Model, require_model, require_sequences
from skipstone.models.storage import FORMAT, RESULT, TRAINING, WEIGHTS, describe_model
from skipstone.models.tensors import write_tensors
from skipstone.records import json_text, write_sealed
from skipstone.sequences import Sequences
from skipstone.signals import stop_saying
from skipstone.training.cuts import fixed_windows, keep_apart
from skipstone.training.objective import Objective
from skipstone.training.recipe import Recipe
from skipstone.training.run import (
    CHECKPOINT,
    Run,
    is_first_process,
    provenance,
    require_free,
    start_folder,
)

VALIDATION_SEQUENCES = 512
"""Sequences that a validation rolls out at most: enough to rank weights, cheap enough to repeat."""

_PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


def fit(
    model: Model[Any],
    train: Sequences,
    validation: Sequences | None = None,
    *,
    folder: str | Path | None = None,
    horizon: int | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    overwrite: bool = False,
    device: str = "auto",
    devices: int = 1,
    precision: str = "32-true",
    progress: bool | Progress = True,
    data: dict[str, Any] | None = None,
) -> Run:
    """Train a model, which ends with its best weights, and keep everything as a run folder.

    Calling it again with the same folder and arguments resumes an interrupted training, and
    returns a finished one at once, with that run's weights in `model`; `overwrite=True` starts
    over. Without a `folder` it is a temporary one, which is told. Initial weights are the
    model's own: call `torch.manual_seed` before building it if they are to be the same each time.
    One process at a time trains in a folder. Ctrl-C and SIGTERM end a training after the step it is
    in, with everything saved.

    With a `horizon`, training is on windows of `num_context + horizon` observations, drawn anew
    each epoch, and validation rolls out fixed windows of that length: for long logs. Sequences
    that are shorter are used whole. Without `validation`, a tenth of `train` is kept for it: of
    the sequences, or with a horizon and fewer than 10 sequences the end of each. Without a
    `recipe` it is `Recipe()`, what we recommend.

    `progress` is whether to show a progress bar, or a function to call instead. `data` describes
    where the sequences come from, for the record.
    """
    recipe = _checked(model, recipe, overwrite, progress)
    check_hardware(device, devices, precision)
    require_seed(seed)
    window = _window(model, train, horizon)
    train, validation = _parts(model, train, validation, window, seed)
    if data is not None and not isinstance(data, Mapping):
        raise InvalidInput(f"data must describe the sequences by name, a dict; got {data!r}.")
    source = {**(data or {}), **_fingerprints(train, validation)}
    config = _config(model, recipe, horizon=as_plain(horizon), seed=int(seed), data=source)
    run = Run(_place(folder, devices))
    if overwrite or not run.holds_finished(config):
        if window is not None:
            validation = fixed_windows(validation, window, VALIDATION_SEQUENCES)
        options = {"accelerator": device, "devices": devices, "precision": precision}
        objective = Objective(train, recipe, seed, window)
        _require_possible(model, run.folder)
        first = is_first_process(devices)
        with locked(run.folder, "train in") if first else nullcontext():
            start_folder(run.folder, config, overwrite and first)
            if not run.finished:  # Another process may have finished it in the meantime.
                _train_shown(model, objective, validation, run, options, progress)
                return run
    kept = run.load()
    model.load_state_dict(kept.state_dict())
    model.calibration = kept.calibration
    return run


def _checked(model: Any, recipe: Any, overwrite: Any, progress: Any) -> Recipe:
    """The recipe. Whatever is of another kind is said before the work begins."""
    recipe = Recipe() if recipe is None else recipe
    require_model(model)
    require_kind("recipe must be a Recipe", recipe, Recipe, "Make one: Recipe(steps=...).")
    require_flag("overwrite", overwrite)
    if not isinstance(progress, bool):
        rule = "progress must be True, False or what shows it"
        require_function(rule, progress, "what", "share", "details")
    return recipe


def _require_possible(model: Model[Any], folder: Path) -> None:
    """Raise for what would end a training that begins here, before a former one is removed."""
    require_lightning()
    require_installed(*model.needs)
    require_free(folder)


def _config(model: Model[Any], recipe: Recipe, **more: Any) -> dict[str, Any]:
    """What `config.json` says of a training, as JSON has it: with lists for tuples."""
    described = {"format": FORMAT, "model": describe_model(model), "recipe": asdict(recipe)}
    return json.loads(json_text({**described, **more}, "the record of a training"))


def _window(model: Model[Any], train: Sequences, horizon: int | None) -> int | None:
    """Observations of a window. A sequence may be shorter, but not every one of them."""
    if horizon is None:
        return None
    require_number("horizon, the observations to predict,", horizon, 1, whole=True)
    require_sequences(train)
    longest, count = int(train.lengths.max()), model.config.num_context
    if count + horizon > longest:
        raise InvalidInput(
            f"horizon, the observations to predict, must fit into the data: the longest sequence "
            f"has {longest}, {count} of them to predict from; got {horizon}. Leave it out to train "
            "on whole sequences."
        )
    return count + int(horizon)


def _place(folder: str | Path | None, devices: int) -> Path:
    """The folder to train in; a new temporary one, which is told, if none is given."""
    if folder is not None:
        return as_path("folder", folder)
    if devices > 1:
        raise InvalidInput(
            f"{devices} processes must agree on a folder; got none. Give one: folder=..."
        )
    place = Path(tempfile.mkdtemp(prefix="skipstone-"))
    told = f"training in a temporary folder, {place}; give folder=... to keep the run."
    print(printable(told), file=sys.stderr)
    return place


def _parts(
    model: Model[Any], train: Sequences, validation: Sequences | None, window: int | None, seed: int
) -> tuple[Sequences, Sequences]:
    """Data to train on and to validate with, checked to fit the model."""
    least = model.config.num_context + 1
    require_sequences(train)
    train.require_length(least)
    if validation is None:
        train, validation = keep_apart(train, window, seed)
    require_sequences(validation)
    validation.require_length(least)
    for part in (train, validation):
        model.prepare(part[:1], least)
    return train, validation


def _fingerprints(train: Sequences, validation: Sequences) -> dict[str, str]:
    return {"fingerprint": fingerprint(train), "validation": fingerprint(validation)}


def fingerprint(sequences: Sequences) -> str:
    """A short hash of the data, so that a run is never resumed with other data."""
    digest = hashlib.sha256()
    for part in (sequences.times, sequences.values, sequences.controls, sequences.mask):
        if part is not None:
            digest.update(str(tuple(part.shape)).encode())
            digest.update(part.contiguous().cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def _train_shown(
    model: Model[Any],
    objective: Objective,
    validation: Sequences,
    run: Run,
    options: dict[str, Any],
    progress: bool | Progress,
) -> None:
    """Train with a progress bar, or with a function that is told."""
    model.calibration = None  # Of other weights.
    if progress is True and (run.folder / CHECKPOINT).is_file():
        print(printable(f"resuming the training in {run.folder}"), file=sys.stderr)
    with show_progress(progress is True) as bar:
        show = bar if isinstance(progress, bool) else progress
        _train(model, objective, validation, run, options, show)


def _train(
    model: Model[Any],
    objective: Objective,
    validation: Sequences,
    run: Run,
    options: dict[str, Any],
    show: Progress,
) -> None:
    """Run the loop, and write weights and result when it is done."""
    import lightning

    from skipstone.training.trainee import Trainee, tensorboard

    source = provenance()
    trainee = Trainee(model, objective, validation[:VALIDATION_SEQUENCES], run, show)
    if not trainee.done:
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
            try:
                trainer.fit(trainee)
            except SystemExit:  # Lightning's answer to a SIGTERM that came before the first step.
                if not trainee.interrupted:
                    raise
    if not is_first_process(options["devices"]):
        raise SystemExit(0)
    if trainee.interrupted:
        stop_saying(
            f"stopped after step {trainee.state.step}; everything is in {run.folder}. Start the "
            "same training again to resume it.",
            trainee.interrupted,
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
    notes = {TRAINING: trainee.identity}
    checksum = write_tensors(run.folder / WEIGHTS, state.best_weights, notes)
    trainee.model.load_state_dict(state.best_weights)
    result = {
        "format": FORMAT,
        "steps": state.step,
        "best_step": state.best_step,
        "validation_error": state.best_error if math.isfinite(state.best_error) else None,
        "training_loss": state.recent_loss,
        "wall_seconds": round(state.wall_seconds, 1),
        "seed": run.config["seed"],
        "config_sha256": run.identity,
        "weights_sha256": checksum,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **source,
    }
    write_sealed(run.folder / RESULT, result)
    remove_file(run.folder / CHECKPOINT)


@contextmanager
def _interruptible(trainee: Any) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the training after the step it is in."""
    before: dict[int, Any] = {}
    # Not in the main thread, whoever is decides about signals.
    if threading.current_thread() is threading.main_thread():
        stopping = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, trainee.stop) for number in stopping}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def check_hardware(device: str, devices: int, precision: str) -> None:
    """Raise for what this machine does not have, before any work is done."""
    available = ["auto", "cpu"]
    available += ["cuda"] if torch.cuda.is_available() else []
    available += ["mps"] if torch.backends.mps.is_available() else []
    require_choice("device", device, available)
    on_gpus = torch.cuda.is_available() and device != "cpu"
    present = torch.cuda.device_count() if on_gpus else cpu_count()
    require_number("devices", devices, 1, most=present or 1, whole=True)
    require_choice("precision", precision, _PRECISIONS)


def require_lightning() -> None:
    """Raise if Lightning is not installed."""
    if importlib.util.find_spec("lightning") is None:
        raise InvalidInput(
            "training runs on Lightning, which is not installed. "
            "Run: pip install 'skipstone[train]'"
        )
