"""One progress display for all jobs of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from skipstone.paper.worker import Report

PLAIN_EVERY = 60.0
"""Seconds between two lines about what is running, where lines cannot be redrawn."""


@runtime_checkable
class Display(Protocol):
    """Someone who is shown what happens."""

    def running(self, name: str, report: Report) -> None:
        """A job has got somewhere."""
        ...

    def ended(self, name: str, outcome: str) -> None:
        """A job has ended, and how."""
        ...

    def say(self, text: str) -> None:
        """Something about the grid as a whole."""
        ...


@contextmanager
def show_grid(total: int, finished: int, progress: bool) -> Iterator[Display]:
    """A display of so many jobs: live on a terminal, lines now and then elsewhere."""
    console = Console(stderr=True, quiet=not progress)
    if progress and console.is_interactive:
        bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            console=console,
        )
        with bars:
            yield Bars(bars, total, finished)
    else:
        yield Lines(console, total, finished)


class Bars:
    """A bar for each running job, and one for the whole."""

    def __init__(self, bars: Progress, total: int, finished: int):
        self._bars = bars
        self._ended, self._total = finished, total
        self._rows: dict[str, TaskID] = {}
        self._shares: dict[str, float] = {}
        self._whole = bars.add_task("[bold]all runs", total=total, numbers="")
        self._show_whole()

    def running(self, name: str, report: Report) -> None:
        """Move a job's bar, which appears with its first report."""
        if name not in self._rows:
            self._rows[name] = self._bars.add_task(name, total=None, numbers="")
        if report.steps:
            self._shares[name] = report.step / report.steps
            row = self._rows[name]
            self._bars.update(row, total=report.steps, completed=report.step)
        self._bars.update(self._rows[name], numbers=numbers(report))
        self._show_whole()

    def ended(self, name: str, outcome: str) -> None:
        """Put a line about the job above the bars."""
        if name in self._rows:
            self._bars.remove_task(self._rows.pop(name))
        self._shares.pop(name, None)
        self._ended += 1
        self._bars.console.print(f"{name}: {outcome}", markup=False, highlight=False)
        self._show_whole()

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)

    def _show_whole(self) -> None:
        count = f"{self._ended} of {self._total}"
        done = self._ended + sum(self._shares.values())
        self._bars.update(self._whole, completed=done, numbers=count)


class Lines:
    """A line when a job ends, and now and then one about those that are running."""

    def __init__(self, console: Console, total: int, finished: int):
        self._console = console
        self._ended, self._total = finished, total
        self._reports: dict[str, Report] = {}
        self._last = monotonic()
        if finished:
            self.say(f"{finished} of {total} were finished before")

    def running(self, name: str, report: Report) -> None:
        """Remember where a job stands, and say it when it is time."""
        self._reports[name] = report
        if monotonic() - self._last >= PLAIN_EVERY:
            self._last = monotonic()
            for running, latest in self._reports.items():
                self.say(f"{running}: {numbers(latest)}")

    def ended(self, name: str, outcome: str) -> None:
        """Say how a job ended."""
        self._reports.pop(name, None)
        self._ended += 1
        self.say(f"{name}: {outcome} ({self._ended} of {self._total})")

    def say(self, text: str) -> None:
        """A line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def numbers(report: Report) -> str:
    """A report in a few words."""
    if report.steps == 0:
        return "starting"
    parts = [f"step {report.step}/{report.steps}", f"loss {report.loss:.2e}"]
    parts += [f"mean step {report.mean_step:.1f}"] if math.isfinite(report.mean_step) else []
    parts += ["evaluating"] if report.step == report.steps else []
    return ", ".join(parts)
