"""The `skipstone` command: parse, call, print.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from skipstone.errors import InvalidInput

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


@app.command()
def tasks() -> None:
    """List the tasks with their shapes."""
    from rich.console import Console

    from skipstone.tasks.listing import task_table

    Console().print(task_table())


@app.command()
def show(
    task: Annotated[str, typer.Argument(help="Name of a task; `skipstone tasks` lists them.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write the picture; default TASK.png.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="Also write a video here: .mp4 or .gif.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many trajectories to draw.")] = 12,
    seed: Annotated[int, typer.Option(help="Which trajectories to draw.")] = 0,
) -> None:
    """Draw some trajectories of a task, their collisions marked."""
    from skipstone.tasks.draw import show_task

    for path in show_task(task, out or Path(f"{task}.png"), video, count, seed):
        typer.echo(f"wrote {path}")


def main() -> None:
    """Entry point of the command: input that breaks a rule is an error of one line."""
    try:
        app()
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
