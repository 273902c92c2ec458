"""The commands about tables of one's own: parse, call, print.

What a command needs is imported inside it, so that `--help` and lists appear at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skipstone.console import parse_options, say, stoppable
from skipstone.extras import require_installed
from skipstone.outputs import require_writable, require_writable_file

if TYPE_CHECKING:
    from skipstone.own_data.tablefiles import TableColumns

table_commands = typer.Typer()

TableArgument = Annotated[Path, typer.Argument(help="A table, .csv or .parquet: a row each time.")]
TimeOption = Annotated[str, typer.Option("--time", help="Column of times.")]
ValuesOption = Annotated[
    list[str], typer.Option("--values", help="Columns to predict: a,b or repeated.")
]
IdOption = Annotated[
    str | None, typer.Option("--id", help="Column that says which sequence a row belongs to.")
]
ControlsOption = Annotated[
    list[str] | None, typer.Option("--controls", help="Columns that are known in advance.")
]
DuplicatesOption = Annotated[
    str, typer.Option("--duplicates", help="Rows of one id and time: error, first, last or mean.")
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Gradient steps; default: what we recommend.")
]
HorizonOption = Annotated[
    int | None,
    typer.Option("--horizon", help="Observations to predict; default: whole sequences."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="An option of the model, name=value; repeatable.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of weights, splits and data order.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Start over if the folder holds a run.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


def _columns(
    time: str,
    values: list[str],
    id: str | None,
    controls: list[str] | None,
    duplicates: str,
) -> "TableColumns":
    from skipstone.own_data.tablefiles import TableColumns

    return TableColumns(time, tuple(values), id, tuple(controls or ()), duplicates)


@table_commands.command()
def fit(
    table: TableArgument,
    time: TimeOption,
    values: ValuesOption,
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    id: IdOption = None,
    controls: ControlsOption = None,
    model: Annotated[
        str | None, typer.Option(help="A model; default: the first of `skipstone models`.")
    ] = None,
    steps: StepsOption = None,
    horizon: HorizonOption = None,
    option: SetOption = None,
    duplicates: DuplicatesOption = "error",
    seed: SeedOption = 0,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Keep a fifth of the data apart to calibrate with.")
    ] = False,
    overwrite: OverwriteOption = False,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Train a model on a table; run again to resume."""
    from rich.console import Console

    from skipstone.console import text_table
    from skipstone.own_data.tablefiles import require_table_library
    from skipstone.own_data.trainings import TableTraining, train_and_measure
    from skipstone.training.listing import summary

    options = {name: given[-1] for name, given in parse_options(option).items()}
    plan = TableTraining(model=model, steps=steps, horizon=horizon, seed=seed, options=options)
    plan.check()
    require_installed("lightning")
    require_table_library(table)
    require_writable(out)
    columns = _columns(time, values, id, controls, duplicates)
    settings = {"device": device, "progress": not quiet, "overwrite": overwrite}
    with stoppable():
        data = columns.read(table)
        say(f"read {table}: {data}", err=True)
        run, errors = train_and_measure(plan, data, columns, out, intervals, **settings)
    Console().print(text_table(errors.columns(), errors.rows()))
    for line in (
        *errors.notes(),
        "These errors are on the data that chose the weights.",
        summary(run),
    ):
        say(line)


@table_commands.command()
def compare(
    table: TableArgument,
    time: TimeOption,
    values: ValuesOption,
    out: Annotated[Path, typer.Option(help="Folder for the runs, one each.")],
    id: IdOption = None,
    controls: ControlsOption = None,
    model: Annotated[
        list[str] | None, typer.Option(help="A model; repeatable. Default: pcode and rnn.")
    ] = None,
    steps: StepsOption = None,
    horizon: HorizonOption = None,
    option: SetOption = None,
    duplicates: DuplicatesOption = "error",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Train several models on a table, and compare them with naive forecasts."""
    from rich.console import Console

    from skipstone.console import text_table
    from skipstone.own_data.comparing import compare_models, plans_of
    from skipstone.own_data.tablefiles import require_table_library
    from skipstone.own_data.trainings import TableTraining

    options = {name: given[-1] for name, given in parse_options(option).items()}
    plan = TableTraining(steps=steps, horizon=horizon, seed=seed, options=options)
    plans_of(model or (), plan)  # Their checks, before the table is read.
    require_table_library(table)
    require_writable(out)
    columns = _columns(time, values, id, controls, duplicates)
    settings = {"device": device, "progress": not quiet, "overwrite": overwrite}
    with stoppable():
        data = columns.read(table)
        say(f"read {table}: {data}", err=True)
        found = compare_models(data, columns, model or (), plan, out, **settings)
    Console().print(text_table(found.columns, found.rows))
    for line in found.notes:
        say(line)


@table_commands.command()
def forecast(
    run: Annotated[Path, typer.Argument(help="Folder of a run that `skipstone fit` made.")],
    table: TableArgument,
    until: Annotated[
        str,
        typer.Option(help="End: a moment such as 2026-06-01T12:00, or +24h after the last row."),
    ],
    every: Annotated[str, typer.Option(help="Time between rows: 1h, 90min; or a plain number.")],
    out: Annotated[Path, typer.Option(help="Where to write the forecast: .csv or .parquet.")],
    interval: Annotated[
        float | None, typer.Option(help="Add bounds of this coverage, such as 0.9.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="A table of ids, times and controls to come.")
    ] = None,
) -> None:
    """Forecast from the last rows of each id in a table."""
    import torch

    from skipstone.own_data.known import known_controls
    from skipstone.own_data.tablefiles import require_table_library, write_frame
    from skipstone.own_data.trainings import columns_of, end_of_forecast, forecast_context
    from skipstone.training.run import Run

    for path in (table, out):
        require_table_library(path)
    require_writable_file(out)
    trained = Run(run)
    context = forecast_context(trained, table)
    model = trained.load()
    end = end_of_forecast(context, until)
    controls = None if known is None else known_controls(context, columns_of(trained), known)
    with torch.inference_mode():
        path = model.rollout(context.tail(model.config.num_context), end, controls)
    path.require_end()
    write_frame(path.to_table(every=every, interval=interval), out)
    say(f"{path}\nwrote {out}")
