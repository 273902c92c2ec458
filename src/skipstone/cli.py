"""The `skipstone` command: parse, call, print."""

import typer

app = typer.Typer(
    help="Continuous-time sequence models that skip what is predictable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Keep the commands as subcommands while there is only one."""


@app.command()
def reproduce() -> None:
    """Run the experiments of the paper that are implemented so far."""
    typer.echo("nothing yet")


def main() -> None:
    """Entry point of the command."""
    app()
