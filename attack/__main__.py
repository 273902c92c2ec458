"""The attack: `make attack`, or a part of it.

    .venv/bin/python -m attack --only calls --share 0.1

The whole of it writes `results/attack.json`; anything less writes to `runs/attack.json`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer

from attack.calls import attack_with_calls
from attack.commands import attack_with_commands
from attack.damage import attack_with_damage
from attack.disks import attack_with_disks
from attack.kills import attack_with_kills
from attack.sharing import attack_with_sharing, attack_with_threads
from attack.trial import Tally, scratch

ROOT = Path(__file__).parents[1]

KINDS: dict[str, tuple[Callable[[int, int], Tally], int]] = {
    "calls": (attack_with_calls, 10_000),
    "commands": (attack_with_commands, 1_000),
    "damage": (attack_with_damage, 1_000),
    "kills": (attack_with_kills, 200),
    "disks": (attack_with_disks, 60),
    "threads": (attack_with_threads, 20),
    "sharing": (attack_with_sharing, 20),
}
"""Kinds of attack, and how many trials each has."""


def main(
    only: Annotated[list[str] | None, typer.Option(help="A kind; repeatable.")] = None,
    share: Annotated[float, typer.Option(help="Share of the trials to make.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Which trials.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Where to write the outcome.")] = None,
) -> None:
    """Attack the package, and count what survives."""
    whole = not only and share == 1.0
    out = (out or ROOT / ("results" if whole else "runs") / "attack.json").absolute()
    torch.set_num_threads(1)
    os.environ["COLUMNS"] = "200"
    _warm_up()
    found, began = {}, time.monotonic()
    for kind in only or KINDS:
        attack, trials = KINDS[kind]
        with scratch():
            tally = attack(max(1, round(share * trials)), seed)
        found[kind] = tally.to_dict()
        typer.echo(f"{kind}: {tally.survived} of {tally.attempted} survived")
        for failure in tally.failures:
            typer.echo(f"  {failure!a}")
    out.parent.mkdir(parents=True, exist_ok=True)
    about = {"seed": seed, "share": share, "minutes": round((time.monotonic() - began) / 60, 1)}
    out.write_text(json.dumps({**about, **_source(), "kinds": found}, indent=2) + "\n")
    if any(each["failed"] for each in found.values()):
        raise typer.Exit(1)


def _warm_up() -> None:
    """Import what children need, once: a fork begins where this process is."""
    import lightning  # noqa: F401
    import polars  # noqa: F401
    import torchdiffeq  # noqa: F401

    import skipstone.cli
    import skipstone.own_data.trainings
    import skipstone.training.trainee  # noqa: F401


def _source() -> dict[str, object]:
    from skipstone.training.run import provenance

    return provenance()


if __name__ == "__main__":
    typer.run(main)
