"""Progress of long work: a bar for each part of it, on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is."""


def silent(what: str, share: float) -> None:
    """Show nothing."""


@contextmanager
def bars() -> Iterator[Progress]:
    """A bar for everything that is reported, as it comes up; a line where there is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines(console.print)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    shown = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=console,
    )
    with shown:
        rows = {}

        def progress(what: str, share: float) -> None:
            if what not in rows:
                rows[what] = shown.add_task(what, total=1.0)
            shown.update(rows[what], completed=share)

        yield progress


def lines(say: Callable[[str], None]) -> Progress:
    """Say when something begins, and when another quarter of it is done."""
    said: dict[str, int] = {}

    def progress(what: str, share: float) -> None:
        quarter = int(4 * share)
        if quarter > said.get(what, -1):
            said[what] = quarter
            say(f"{what}: {25 * quarter} %" if quarter else what)

    return progress
