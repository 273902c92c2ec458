"""Ways to break the package on purpose, for as long as a process lasts: the attack has to notice
each of them (`--broken`, `tests/test_attack.py`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def _nothing(*_: Any, **__: Any) -> None:
    """In the place of work."""


def _checkpoints() -> None:
    """No checkpoint is written."""
    from skipstone.training import trainee

    trainee.save_checkpoint = _nothing


def _resuming() -> None:
    """A checkpoint is not looked at."""
    from skipstone.training import trainee

    trainee.load_checkpoint = lambda *_: trainee.TrainingState()


def _sigterm() -> None:
    """A training does not heed SIGTERM."""
    from skipstone.training import trainee

    trainee.Trainee.stop = _nothing


def _atomic() -> None:
    """Files are written in their place."""
    from skipstone import files

    @contextlib.contextmanager
    def replacing(path: Path) -> Iterator[Path]:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        except OSError as error:
            raise files._unwritable(path, error) from error

    files.replacing = replacing


def _lock() -> None:
    """Nobody waits for anybody."""
    from skipstone.training import fit

    @contextlib.contextmanager
    def locked(folder: Path, doing: str) -> Iterator[None]:
        yield

    fit.locked = locked


def _seals() -> None:
    """Checksums are not compared."""
    from skipstone import records
    from skipstone.models import storage, tensors

    tensors._require_seal = _nothing

    def read_sealed(path: Path, schema: Any, format: int, help: str) -> dict[str, Any]:
        content = records.read_record(path, schema)
        content.pop(records.SEAL, None)
        return content

    storage.read_sealed = read_sealed


def _schemas() -> None:
    """What a JSON file holds is taken as it is."""
    from skipstone import records
    from skipstone.models import storage
    from skipstone.training import run

    records.require_schema = run.require_schema = storage.require_fields = _nothing


def _forecast() -> None:
    """A forecast is not written."""
    from skipstone.own_data import tablefiles

    tablefiles.write_frame = _nothing


def _updates() -> None:
    """Whole numbers need not be whole."""
    from skipstone.models import latent_ode, rollout

    latent_ode.require_number = rollout.require_number = _nothing


def _layouts() -> None:
    """The order of an array's bytes is not looked at."""
    from skipstone import checking

    usual = checking.to_tensor
    checking.to_tensor = lambda array: usual(array.view(array.dtype.newbyteorder("=")))


BREAKAGES: dict[str, Callable[[], None]] = {
    each.__name__.strip("_"): each
    for each in (
        *(_checkpoints, _resuming, _sigterm, _atomic, _lock, _seals, _schemas),
        *(_forecast, _updates, _layouts),
    )
}
"""By name."""
