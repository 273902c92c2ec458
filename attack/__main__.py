"""The attack: `make attack`, or a part of it.

    .venv/bin/python -m attack --only calls --share 0.1

The whole of it writes `results/attack.json`; anything less writes to `runs/attack.json`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from attack.calls import attack_with_calls
from attack.commands import attack_with_commands
from attack.damage import attack_with_damage
from attack.disks import attack_with_disks
from attack.kills import attack_with_kills
from attack.sharing import attack_with_sharing, attack_with_threads
from attack.trial import Tally, scratch
from skipstone.errors import InvalidInput, require_choice
from skipstone.records import write_json

ROOT = Path(__file__).parents[1]

KINDS: dict[str, tuple[Callable[[Tally, int, int], None], int]] = {
    "calls": (attack_with_calls, 10_000),
    "commands": (attack_with_commands, 1_000),
    "damage": (attack_with_damage, 1_000),
    "kills": (attack_with_kills, 200),
    "disks": (attack_with_disks, 60),
    "threads": (attack_with_threads, 20),
    "sharing": (attack_with_sharing, 40),
}
"""Kinds of attack, and how many trials each has."""


def main(
    only: Annotated[list[str] | None, typer.Option(help="A kind; repeatable.")] = None,
    share: Annotated[float, typer.Option(help="Share of the trials to make.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Which trials.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Where to write the outcome.")] = None,
) -> None:
    """Attack the package, and count what survives."""
    try:
        for kind in only or ():
            require_choice("--only", kind, KINDS)
    except InvalidInput as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    whole = not only and share == 1.0
    out = (out or ROOT / ("results" if whole else "runs") / "attack.json").absolute()
    torch.set_num_threads(1)
    os.environ["COLUMNS"] = "200"
    warm_up()
    about = {"seed": seed, "share": share, **_source()}
    tallies = _attack(list(only or KINDS), share, seed, about, out)
    if any(tally.failed for tally in tallies):
        raise typer.Exit(1)


def _attack(
    kinds: list[str], share: float, seed: int, about: dict[str, Any], out: Path
) -> list[Tally]:
    """All kinds, one after the other, whatever becomes of each; what is known is written at once.

    A file that says less than "finished" is of an attack that was stopped.
    """
    began = time.monotonic()
    tallies: list[Tally] = []
    for kind in kinds:
        attack, usual = KINDS[kind]
        trials = max(1, round(share * usual))
        tallies.append(tally := Tally(kind, trials))
        try:
            with scratch():
                attack(tally, trials, seed)
        except Exception:
            tally.crash()
        typer.echo(f"{kind}: {tally.survived} of {tally.attempted} survived")
        for failure in tally.failures:
            typer.echo(f"  {failure!a}")
        found = {
            **about,
            "minutes": round((time.monotonic() - began) / 60, 1),
            "finished": len(tallies) == len(kinds),
            "kinds": {each.kind: each.to_dict() for each in tallies},
        }
        write_json(out, found)
    return tallies


def warm_up() -> None:
    """Import what children need, once: a fork begins where this process is. Compiled code, too,
    which would be built again for every cache of their own."""
    import lightning  # noqa: F401
    import polars  # noqa: F401
    import torchdiffeq  # noqa: F401

    import skipstone.cli
    import skipstone.own_data.trainings
    import skipstone.training.trainee  # noqa: F401
    from skipstone.models.fast import build

    for precision in build.PRECISIONS:
        build.library(precision)


def _source() -> dict[str, object]:
    from skipstone.training.run import provenance

    return provenance()


if __name__ == "__main__":
    typer.run(main)
