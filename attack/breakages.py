"""Ways to break the package on purpose: the attack has to notice each of them, and for that reason.

    .venv/bin/python -m attack.breakages checkpoints lock

Each is broken in a process of its own. Exit code 1 if one goes unnoticed; `tests/test_attack.py`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from attack.__main__ import KINDS, warm_up
from attack.trial import Tally, run_work, scratch


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
    """The old file goes before the new one is there."""
    from skipstone import files

    usual = files.replacing

    @contextlib.contextmanager
    def replacing(path: Path) -> Iterator[Path]:
        path.unlink(missing_ok=True)
        with usual(path) as beside:
            yield beside

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


@dataclass(frozen=True)
class Breakage:
    """Something broken, the kind of attack that has to notice, and what it has to say."""

    act: Callable[[], None]
    kind: str
    word: str
    """An expression that the right failure matches."""
    trials: int
    """At most; the first failure of the right kind is enough."""


BREAKAGES: dict[str, Breakage] = {
    "checkpoints": Breakage(_checkpoints, "kills", "loses work", 10),
    "resuming": Breakage(_resuming, "kills", "resumes at step 0", 10),
    "sigterm": Breakage(_sigterm, "kills", "after SIGTERM in step", 30),
    "atomic": Breakage(_atomic, "kills", "loses work", 30),
    "full": Breakage(_atomic, "disks", "loses work", 20),
    "lock": Breakage(_lock, "sharing", "not told who is there", 4),
    "seals": Breakage(_seals, "damage", "loads another model", 150),
    "schemas": Breakage(_schemas, "damage", r"(json|safetensors), .* a traceback", 150),
    "forecast": Breakage(_forecast, "commands", "which is not there", 3),
    "updates": Breakage(_updates, "calls", "accepts max_updates", 400),
    "layouts": Breakage(_layouts, "calls", "other numbers", 400),
}
"""By name."""


class _Noticed(Exception):
    """The end of an attack that has seen enough."""


class _Impatient(Tally):
    """A tally that ends the attack with the first failure of the right kind."""

    word = ""

    def count(self, trial: str, failure: str | None, outcome: str = "") -> None:
        super().count(trial, failure, outcome)
        if failure is not None and re.search(self.word, told := f"{trial}: {failure}"):
            raise _Noticed(told)


def attack_broken(broken: Breakage) -> None:
    """Break, attack, and print how that was noticed."""
    broken.act()
    tally = _Impatient(broken.kind)
    tally.word = broken.word
    try:
        with scratch():
            KINDS[broken.kind][0](tally, broken.trials, 0)
    except _Noticed as noticed:
        print(f"noticed in trial {tally.attempted}, {str(noticed)[:200]!a}")
        return
    print(f"NOT NOTICED in {tally.attempted} trials, {tally.failures[:3]}")
    raise SystemExit(1)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="What to break; default: all.")] = None,
) -> None:
    """Break the package in several ways, and attack it each time."""
    torch.set_num_threads(1)
    warm_up()
    unnoticed = False
    for name in names or BREAKAGES:
        ended = run_work(lambda name=name: attack_broken(BREAKAGES[name]), 600.0)
        typer.echo(f"{name}: {ended.said.strip()[-2000:]}")
        unnoticed = unnoticed or ended.code != 0
    if unnoticed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
