"""`fit`: train a model with Lightning, into a run folder, resumable at any moment."""

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
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from skipstone.errors import InvalidInput
from skipstone.files import write_json
from skipstone.models.base import Model, ModelConfig, require_sequences
from skipstone.models.pcode import PCODE
from skipstone.models.rnn import RNN
from skipstone.sequences import Sequences
from skipstone.training.objective import Objective
from skipstone.training.recipe import Recipe, preset_for
from skipstone.training.run import (
    CHECKPOINT,
    RESULT,
    WEIGHTS,
    Run,
    describe_model,
    provenance,
    sha256,
    start_folder,
    write_tensors,
)
from skipstone.training.state import ProgressReport

LEAST_SPREAD, MOST_SPREAD = 0.01, 30.0
"""Standard deviations of values between which the presets are known to train."""

_PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


def fit(
    model: Model[Any],
    train: Sequences,
    validation: Sequences | None = None,
    *,
    folder: str | Path,
    recipe: Recipe | str = "cpu",
    tolerance: float | str = "auto",
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    precision: str = "32-true",
    progress: bool | ProgressReport = True,
    data: dict[str, Any] | None = None,
) -> Run:
    """Train a model, which ends with its best weights, and keep everything as a run folder.

    Calling it again with the same folder and arguments resumes an interrupted training, and
    returns a finished one at once, with that run's weights in `model`. Initial weights are the
    model's own: call `torch.manual_seed` before building it if they are to be the same each time.
    Without `validation`, a tenth of `train` is kept for it.

    `tolerance` matters to a `PCODE` only: the squared error, averaged over features, that a
    segment may reach. `"auto"` first trains an `RNN` of the same size with the same recipe, in a
    folder beside this one that ends in "-rnn", and takes its final training loss, as the paper
    does. Choose a number yourself if that takes too long: a larger one for longer steps, a smaller
    one for closer fits.

    `progress` is whether to show a progress bar, or a function to tell instead, after every step:
    the steps taken, all steps, the recent loss and the mean step.

    `data` describes where the sequences come from, for the record.
    """
    recipe = preset_for(recipe, task="").recipe if isinstance(recipe, str) else recipe
    check_hardware(device, devices, precision)
    check_seed(seed)
    require_sequences(train)
    train.require_length(model.config.num_context + 1)
    if validation is None:
        if len(train) < 10:
            raise InvalidInput(
                "a tenth of the sequences is kept for validation, so there must be at least 10; "
                f"got {len(train)}. Bring more, or pass your own: fit(model, train, validation)."
            )
        train, validation = train.split([0.9, 0.1], seed=seed)
    _warn_of_scale(train)
    folder = Path(folder)
    options = {"device": device, "devices": devices, "precision": precision, "progress": progress}
    final = _final_tolerance(model, train, validation, folder, recipe, tolerance, seed, options)
    config = {
        "model": describe_model(model),
        "recipe": asdict(recipe),
        "tolerance": final,
        "seed": seed,
        "data": data or {"fingerprint": fingerprint(train)},
    }
    run = start_folder(folder, json.loads(json.dumps(config)))
    if run.finished:
        model.load_state_dict(run.load().state_dict())
    else:
        _train(model, Objective(train, recipe, final, seed), validation, run, options)
    return run


def _warn_of_scale(train: Sequences) -> None:
    """Tolerances, learning rates and a bounded latent velocity are made for values of order 1."""
    spread = Objective(train, Recipe(), None, 0).variance ** 0.5
    if not LEAST_SPREAD <= spread <= MOST_SPREAD:
        warnings.warn(
            f"values should be of size about 1 to train well; their standard deviation is "
            f"{spread:.3g}. Divide them by it, and multiply predictions.",
            stacklevel=3,
        )


def _final_tolerance(
    model: Model[Any],
    train: Sequences,
    validation: Sequences,
    folder: Path,
    recipe: Recipe,
    tolerance: float | str,
    seed: int,
    options: dict[str, Any],
) -> float | None:
    """The tolerance to end with; None for models that have none."""
    if not isinstance(model, PCODE):
        return None
    if tolerance == "auto":
        shared = {field.name for field in fields(ModelConfig)}
        config = {k: v for k, v in asdict(model.config).items() if k in shared}
        torch.manual_seed(seed)
        baseline = RNN.from_config(config)
        run = fit(
            baseline,
            train,
            validation,
            folder=folder.with_name(f"{folder.name}-rnn"),
            recipe=recipe,
            seed=seed,
            **{**options, "devices": 1},
        )
        return auto_tolerance(run)
    return check_tolerance(tolerance)


def check_tolerance(tolerance: float | str) -> float:
    """A tolerance that is not automatic, if it is one."""
    if isinstance(tolerance, str) or not (tolerance >= 0):
        raise InvalidInput(
            f'tolerance must be "auto" or a number, zero or more; got {tolerance!r}.'
        )
    return float(tolerance)


def check_seed(seed: int) -> None:
    """Raise unless a seed is a whole number, zero or more."""
    if seed < 0:
        raise InvalidInput(f"seed must be a whole number, zero or more; got {seed}.")


def auto_tolerance(baseline: Run) -> float:
    """The tolerance that the paper uses: the final training loss of the baseline RNN."""
    return float(baseline.result["training_loss"])


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
) -> None:
    """Run the loop, and write weights and result when it is done."""
    require_lightning()
    import lightning

    from skipstone.training.loop import Trainee, loop_callbacks, loop_logger

    source = provenance()
    progress: bool | ProgressReport = options["progress"]
    report = None if isinstance(progress, bool) else progress
    trainee = Trainee(model, objective, validation, run.folder / CHECKPOINT, report)
    began = trainee.progress.step
    quiet = logging.getLogger("lightning.pytorch")
    level = quiet.level
    quiet.setLevel(logging.WARNING)
    with _interruptible(trainee), warnings.catch_warnings():
        # Lightning advises on data loaders, loggers and devices that are chosen here on purpose.
        warnings.filterwarnings("ignore", module=r"lightning\..*")
        trainer = lightning.Trainer(
            accelerator=options["device"],
            devices=options["devices"],
            strategy="ddp" if options["devices"] > 1 else "auto",
            precision=options["precision"],
            max_steps=objective.recipe.steps - began,
            gradient_clip_val=objective.recipe.gradient_clip or None,
            callbacks=loop_callbacks(progress is True),
            logger=loop_logger(run.folder),
            enable_progress_bar=progress is True,
            enable_checkpointing=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
        )
        try:
            trainer.fit(trainee)
        finally:
            quiet.setLevel(level)
    if not trainer.is_global_zero:
        raise SystemExit(0)
    if trainee.interrupted:
        raise KeyboardInterrupt(
            f"stopped after step {trainee.progress.step}; everything is in {run.folder}. Start "
            "the same training again to resume it."
        )
    _finish(trainee, run, source)


def _finish(trainee: Any, run: Run, source: dict[str, Any]) -> None:
    """Write the best weights and the result, then drop the checkpoint."""
    progress = trainee.progress
    weights = run.folder / WEIGHTS
    write_tensors(weights, progress.best_weights, {"kind": run.config["model"]["kind"]})
    trainee.model.load_state_dict(progress.best_weights)
    result = {
        "steps": progress.step,
        "best_step": progress.best_step,
        "validation_error": _finite(progress.best_error),
        "training_loss": progress.recent_loss,
        "wall_seconds": round(progress.wall_seconds, 1),
        "seed": run.config["seed"],
        "weights_sha256": sha256(weights),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **source,
    }
    write_json(run.folder / RESULT, result)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


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
    if device not in available:
        raise InvalidInput(
            f"device must be one that this machine has, {', '.join(available)}; got {device!r}."
        )
    if devices < 1:
        raise InvalidInput(f"devices must be at least 1; got {devices}.")
    if precision not in _PRECISIONS:
        raise InvalidInput(f"precision must be one of {', '.join(_PRECISIONS)}; got {precision!r}.")


def require_lightning() -> None:
    """Raise if Lightning is not installed."""
    if importlib.util.find_spec("lightning") is None:
        raise InvalidInput(
            "training runs on Lightning, which is not installed. "
            "Run: pip install 'skipstone[train]'"
        )
