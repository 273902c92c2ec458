"""The benchmark: `make bench`, or any part of it.

    .venv/bin/python -m benchmarks.bench --only training --only rollout
    .venv/bin/python -m benchmarks.bench --quick

The whole of it writes `results/bench.json` and `results/bench/*.png`. Anything less writes to
`runs/bench`, so that it never takes the place of published numbers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import torch
import typer
from rich.console import Console

from benchmarks.efficiency import efficiency
from benchmarks.growth import growth, sampling
from benchmarks.parts import everyone, memory, planning, rollout, training
from benchmarks.plots import draw
from benchmarks.report import Part, machine, save, show, show_bars
from benchmarks.settings import QUICK, Settings
from skipstone.models.fast import build

ROOT = Path(__file__).parents[1]

PARTS: dict[str, Callable[[Settings], Part]] = {
    "training": training,
    "rollout": rollout,
    "peers": everyone,
    "efficiency": efficiency,
    "memory": memory,
    "planning": planning,
    "sampling": sampling,
    "growth": growth,
}

BUSY = 0.5
"""A load average above which other work is likely to disturb the numbers."""


def build_seconds() -> float | None:
    """How long the fast path takes to build on its first use; None if it cannot be built."""
    if build.library(torch.float32) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        build.compile_library("float", Path(folder) / "float.so")
        return perf_counter() - began


def use_threads(threads: int) -> None:
    """The same number of threads for everybody, torch and JAX alike."""
    torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):
        # JAX has no such setting: it takes as many threads as there are cores to run on.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes: shows that it runs, measures nothing.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help=f"A part to run, again for more: {', '.join(PARTS)}.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads for everybody.")] = (
        os.cpu_count() or 1
    ),
    rounds: Annotated[int | None, typer.Option(min=1, help="Turns of each contender.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to write instead.")] = None,
) -> None:
    """Measure speed beside peers: prints tables, writes bench.json and pictures."""
    unknown = sorted(set(only or ()) - set(PARTS))
    if unknown:
        raise typer.BadParameter(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}.")
    settings = QUICK if quick else Settings()
    if rounds is not None:
        settings = replace(settings, rounds=rounds, slow_rounds=rounds, growth_rounds=rounds)
    whole = not (quick or only or rounds or threads != os.cpu_count())
    folder = folder or (ROOT / "results" if whole else ROOT / "runs" / "bench")
    use_threads(threads)
    # In a file or a pipe, rich would assume a narrow terminal and break every line.
    console = Console(width=None if sys.stdout.isatty() else 140)
    about = {"quick": quick, "machine": machine(threads), "settings": asdict(settings)}
    about["fast_path_build_seconds"] = None if quick else build_seconds()
    if about["machine"]["load_before"] > BUSY:
        console.print(f"The machine is busy: load {about['machine']['load_before']:.2g}.")
    began = perf_counter()
    found = []
    for name in only or PARTS:
        console.print(f"{name} ...")
        found.append(PARTS[name](settings))
        show(found[-1], console)
    show_bars(found, console)
    file = folder / "bench.json"
    save(file, {**about, "seconds": perf_counter() - began}, found)
    pictures = draw(file, folder / "bench")
    console.print(*(str(path) for path in (file, *pictures)), sep="\n")


if __name__ == "__main__":
    typer.run(main)
