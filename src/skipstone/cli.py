"""The `skipstone` command: parse, call, print.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

import io
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from skipstone.console import say
from skipstone.errors import InvalidInput, printable
from skipstone.own_data.commands import table_commands
from skipstone.paper.commands import RUNS, paper_commands

app = typer.Typer(
    help="Continuous-time sequence models that skip what is predictable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(table_commands)
app.add_typer(paper_commands)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"skipstone {version('skipstone')}")
        raise typer.Exit
    return wanted


def _import_modules(names: list[str]) -> list[str]:
    from importlib import import_module

    sys.path.insert(0, "")  # A module beside the user's data is found, as with python -m.
    for name in names:
        try:
            import_module(name)
        except Exception as error:  # Whatever the user's own module raises.
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise InvalidInput(
                f"--import takes a module that can be imported; {type(error).__name__}: {error} "
                f"({where.filename}, line {where.lineno})."
            ) from None
    return names


@app.callback()
def _common(
    modules: Annotated[
        list[str],
        typer.Option(
            "--import",
            callback=_import_modules,
            help="Import a module first, one that registers models or tasks; repeatable.",
        ),
    ] = [],  # noqa: B006
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def models() -> None:
    """List the models with what they are."""
    from rich.console import Console

    from skipstone.console import text_table
    from skipstone.models.registry import MODELS, title_of

    lines = {name: (model.__doc__ or "").partition("\n")[0] for name, model in MODELS.items()}
    rows = [[name, title_of(MODELS[name]), line] for name, line in lines.items()]
    Console().print(text_table(["model", "title", "what"], rows, words=3))


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="Folder that holds the runs.")] = RUNS,
) -> None:
    """List the runs with their results."""
    from rich.console import Console

    from skipstone.training.listing import runs_table

    Console().print(runs_table(folder))


def main() -> None:
    """Entry point of the command: what is not the program's fault is an error of one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a letter shows another.
            stream.reconfigure(errors="replace")
    warnings.showwarning = _show_warning
    try:
        app()
    except Exception as error:
        told = _explained(error)
        if told is None:
            raise
        print(f"error: {printable(told).replace(chr(10), ' ')}", file=sys.stderr)
        raise SystemExit(2) from None


def _explained(error: Exception) -> str | None:
    """What to tell about bad input, files that cannot be used and a full machine; None for a
    defect, whose traceback is what one needs."""
    if isinstance(error, InvalidInput):
        return str(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}. Check the path, its permissions and the disk."
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "there is not enough memory for this. Use a smaller model, batch or table."
    return None


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """A line without the source of the warning, which is of no use on a command line."""
    if issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning):
        say(f"warning: {message}", err=True)
