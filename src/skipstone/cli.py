"""The `skipstone` command: parse, call, print.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from skipstone.errors import InvalidInput
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
        except ImportError as error:
            raise InvalidInput(f"--import takes a module that can be imported; {error}.") from None
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
    """Entry point of the command: input that breaks a rule is an error of one line."""
    try:
        app()
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
