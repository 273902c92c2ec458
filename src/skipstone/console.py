"""What people see and type: progress of long work, tables, and options of commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from skipstone.errors import InvalidInput, printable, shortened
from skipstone.signals import terminable

if TYPE_CHECKING:
    from rich.table import Table


def say(text: Any, err: bool = False) -> None:
    """Print a line for the user."""
    import typer

    typer.echo(printable(str(text)), err=err)


@runtime_checkable
class Progress(Protocol):
    """Called with what is being done, the share of it that is done, and a few words of detail."""

    def __call__(self, what: str, share: float, details: str = "") -> None:
        """Show it."""
        ...


def silent(what: str, share: float, details: str = "") -> None:
    """Show nothing."""


@contextmanager
def show_progress(shown: bool = True) -> Iterator[Progress]:
    """One bar per piece of work on a terminal; elsewhere a line for every quarter of it."""
    if not shown:
        yield silent
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield quarter_lines(
            lambda text: console.print(printable(text), markup=False, highlight=False)
        )
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24))
    details = TextColumn("{task.fields[details]}", markup=False)
    with Bars(*columns, details, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as on:
        rows = {}

        def progress(what: str, share: float, details: str = "") -> None:
            if what not in rows:
                rows[what] = on.add_task(printable(what), total=1.0, details="")
            on.update(rows[what], completed=share, details=printable(details))

        yield progress


def quarter_lines(say: Callable[[str], None]) -> Progress:
    """Say when work begins, and when another quarter of it is done."""
    said: dict[str, int] = {}

    def progress(what: str, share: float, details: str = "") -> None:
        quarter = int(4 * share)
        if quarter > said.get(what, -1):
            said[what] = quarter
            text = f"{what}: {25 * quarter} %" if quarter else what
            say(f"{text}, {details}" if details and quarter else text)

    return progress


def text_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str | None = None,
    words: int = 1,
) -> Table:
    """A table for a terminal. The first `words` columns are text; the rest are numbers.

    Only the first column may wrap: names can be long, and numbers must stay whole.
    """
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    def plain(text: str) -> Text:
        """A name with brackets is not markup, and one with an escape sequence is no command."""
        return Text(printable(text).replace("\n", " "))

    heads = [
        Column(plain(name), overflow="fold")
        if index == 0
        else Column(
            plain(name), justify="left" if index < words else "right", no_wrap=index >= words
        )
        for index, name in enumerate(columns)
    ]
    note = None if caption is None else Text(printable(caption))
    table = Table(*heads, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, caption=note)
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The same table for a page."""
    lines = [columns, ["---"] * len(columns), *rows]

    def escaped(cell: str) -> str:
        return printable(cell).replace("\n", " ").replace("|", "\\|")

    return "".join(f"| {' | '.join(map(escaped, line))} |\n" for line in lines)


def short_number(value: float | None) -> str:
    """Three digits; small numbers as a power of ten, without the zeros that pad it."""
    if value is None:
        return ""
    if value == 0 or abs(value) >= 0.01:
        return f"{value:.3g}"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


@contextmanager
def stoppable() -> Iterator[None]:
    """Print how to resume after Ctrl-C or SIGTERM: typer would end the command without a word."""
    import typer

    try:
        with terminable():
            yield
    except KeyboardInterrupt as stop:
        say(stop if str(stop) else "interrupted", err=True)
        raise typer.Exit(130) from None


def parse_options(given: list[str] | None) -> dict[str, list[Any]]:
    """Values by option, from `name=value` texts; numbers and booleans as such."""
    options: dict[str, list[Any]] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"--set takes name=value, such as hidden=64; got {shortened(text)}.")
        # What is no JSON is text.
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
        options.setdefault(name, []).append(value)
    return options
