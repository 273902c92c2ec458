"""From runs to a folder with the paper's table, its figures, videos, and a page that shows all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone.console import Progress, silent
from skipstone.drawing.style import save_figure
from skipstone.errors import InvalidInput
from skipstone.files import read_json, write_json, write_text
from skipstone.paper.examples import Example, make_example, make_examples
from skipstone.paper.figures.collisions import updates_and_collisions
from skipstone.paper.figures.hero import hero
from skipstone.paper.figures.planning import draw_success
from skipstone.paper.figures.studies import capacity, cost_against_sampling_rate, error_by_horizon
from skipstone.paper.figures.summary import task_summary
from skipstone.paper.figures.videos import write_example
from skipstone.paper.groups import OURS, by_model, by_task, comparable, measure
from skipstone.paper.measured import Measured
from skipstone.paper.page import VIDEO_TYPES, Figure, Table, Video, write_page
from skipstone.paper.table import COLUMNS, table_csv, table_markdown, table_rows
from skipstone.paper.tasks.registry import TASKS
from skipstone.training.run import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

PAGE, NUMBERS, MARKDOWN, CSV = "index.html", "evaluations.json", "table1.md", "table1.csv"
"""Files of a report, beside its folders `figures` and `videos`."""

HERO = "billiards2d"
"""The task of the first figure, and of the gif."""

FILMED = ("billiards1d", "billiards2d", "pixels1d", "pixels2d")
"""Tasks that have a video."""

RASTER = 12
"""Trajectories whose updates are shown beside their collisions."""


@dataclass(frozen=True)
class Report:
    """What came of it."""

    written: list[Path]
    """Files, the page first."""

    left_out: dict[str, str]
    """Figures for which something is missing, and what."""


@dataclass(frozen=True)
class Planned:
    """A figure that may be drawn, if there is what it shows."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Drawing]


def write_report(
    measured: Sequence[Measured],
    out: Path,
    *,
    planning: Path | None = None,
    command: str = "skipstone reproduce",
    progress: Progress = silent,
) -> Report:
    """Write everything that these runs can show.

    `planning` is the file of results that `skipstone plan` wrote, if there is one.
    """
    numbers = write_numbers(measured, out)
    examples = _examples(measured, progress)
    planned = list(_figures(measured, examples, planning))
    figures, left_out = _draw(planned, out / "figures", progress)
    strangers = [run.run.folder.name for run in measured if "recipe" in run.varied]
    if strangers:
        left_out["comparisons"] = f"{', '.join(strangers)} had a recipe that is no preset's."
    videos = _film(examples, out / "videos", progress)
    _remove_stale(out, {"hero", *TASKS, *(one.name for one in planned)}, [*figures, *videos])
    progress("writing the page", 0.0)
    page = out / PAGE
    write_page(
        page,
        summary=_LEAD,
        tables=[*_comparison(measured), *_tables(measured)],
        figures=figures,
        videos=[video for video in videos if video.path.suffix == ".mp4"],
        examples=sorted(examples.values(), key=lambda example: example.task != HERO),
        about=_about(command),
    )
    progress("writing the page", 1.0)
    return Report([page, *numbers, *(shown.path for shown in [*figures, *videos])], left_out)


_LEAD = (
    "A piecewise-constant neural ODE (PC-ODE) is a recurrent model that updates only where "
    "something happens. Here it stands beside an RNN and an ODE-RNN, an RNN with a neural ODE "
    "between its updates, which update at every observation.",
    "The paper is Piecewise-constant Neural ODEs by Sam Greydanus, Stefan Lee and Alan Fern (2021, "
    "arXiv:2106.06621).",
)
_COMPARISON_CAPTION = (
    "Cell updates of a rollout, and its error. The PC-ODE trades one for the other; what it is "
    "allowed to trade is its tolerance."
)
_TABLE_CAPTION = (
    "Errors are mean squared errors on test data, smaller is better; the mean step is the time "
    "between two cell updates, in observations, larger is cheaper. Beside each the paper's figure. "
    "Several seeds: their mean, and their range in brackets; those whose weights are not kept are "
    "quoted from the end of their training."
)
_COST_CAPTION = (
    "Updates and evaluations (of an ODE's right-hand side) are per rollout, wall times medians on "
    "the machine below."
)


def _comparison(measured: Sequence[Measured]) -> list[Table]:
    """The PC-ODE beside the RNN, in two ratios for each task."""
    rows = []
    for task, runs in by_task(comparable(measured)).items():
        models = by_model(runs)
        if not {OURS, "RNN"} <= set(models):
            continue
        ours, theirs = (
            [measure(models[title], name).value for name in ("updates", "sample_mse")]
            for title in (OURS, "RNN")
        )
        if all(map(math.isfinite, [*ours, *theirs])):
            fewer, error = theirs[0] / ours[0], ours[1] / theirs[1]
            rows.append([task, f"{fewer:.2g} times fewer", f"{error:.2g} times the RNN's"])
    columns = ["task", "PC-ODE's updates", "PC-ODE's error"]
    return [Table("PC-ODE and RNN", _COMPARISON_CAPTION, columns, rows)] if rows else []


def _tables(measured: Sequence[Measured]) -> list[Table]:
    """The table in two, so that each fits on a screen: errors, and costs."""
    rows = table_rows(measured)
    if not rows:
        return []
    split, named = COLUMNS.index("updates"), 2
    return [
        Table("Table 1", _TABLE_CAPTION, COLUMNS[:split], [row[:split] for row in rows]),
        Table(
            "What it costs",
            _COST_CAPTION,
            COLUMNS[:named] + COLUMNS[split:],
            [row[:named] + row[split:] for row in rows],
        ),
    ]


def write_numbers(measured: Sequence[Measured], out: Path) -> list[Path]:
    """The table in its two forms, and every evaluation."""
    paths = [out / MARKDOWN, out / CSV, out / NUMBERS]
    write_text(paths[0], table_markdown(measured))
    write_text(paths[1], table_csv(measured))
    write_json(
        paths[2],
        {"runs": {str(run.run.folder): run.evaluation for run in measured}, **provenance()},
    )
    return paths


def _examples(measured: Sequence[Measured], progress: Progress) -> dict[str, Example]:
    """One trajectory of each task, the first there is: nobody chose it."""
    examples = {}
    tasks = by_task(comparable(measured))
    for index, (task, runs) in enumerate(tasks.items()):
        progress("rolling out examples", index / len(tasks))
        if models := _models(runs):
            examples[task] = make_example(task, models)
    progress("rolling out examples", 1.0)
    return examples


def _models(runs: Sequence[Measured]) -> dict[str, Any]:
    """The model of the lowest seed of each kind, of those whose weights are kept."""
    kept = sorted((run for run in runs if run.run.has_weights), key=lambda run: run.seed)
    return {model: first.run.load() for model, (first, *_) in by_model(kept).items()}


def _figures(
    measured: Sequence[Measured], examples: dict[str, Example], planning: Path | None
) -> Iterator[Planned]:
    if HERO in examples:
        yield Planned(
            "hero",
            "Two balls, by each model",
            "Predicted paths over what truly happens. Dots are cell updates; the strip above each "
            "panel shows how long every step lasts.",
            lambda: hero(examples[HERO]),
        )
    for task, example in examples.items():
        yield Planned(
            task,
            task,
            "Samples of a baseline and of the PC-ODE; the mean step during training; error against "
            "mean step, with training from light to dark (teacher-forced steps, validation "
            "errors), the end on test data marked, and in grey the PC-ODE at constant steps.",
            lambda example=example: task_summary(example, measured),
        )
    yield Planned(
        "horizon",
        "Error against horizon",
        "How fast rollouts drift from the truth.",
        lambda: error_by_horizon(measured),
    )
    yield Planned(
        "collisions",
        "Updates and collisions",
        "When the PC-ODE updates, beside when balls collide, on the first trajectories there are; "
        "and how many of one are within an observation of the other, against chance.",
        lambda: updates_and_collisions(_raster(measured), measured),
    )
    yield Planned(
        "capacity",
        "Capacity",
        "The mean step of the PC-ODE against its number of units; the paper's grows.",
        lambda: capacity(measured),
    )
    yield Planned(
        "sampling",
        "Cost against sampling rate",
        "The same balls observed more often. An RNN updates at every observation; beside its "
        "updates and the PC-ODE's, the number of collisions there are.",
        lambda: cost_against_sampling_rate(measured),
    )
    yield Planned(
        "planning",
        "Planning",
        "Shots that truly succeed, against the number of rollouts that chose them.",
        lambda: draw_success(_planning_results(planning, measured)),
    )


def _planning_results(path: Path | None, measured: Sequence[Measured]) -> dict[str, Any]:
    """The results of planning, if they are those of the models at hand."""
    if path is None or not path.is_file():
        raise InvalidInput(
            "there must be results of planning to draw, by models of shots. Get some: skipstone "
            "plan; with --from-scratch, train shots."
        )
    content = read_json(path)
    known = {run.run.result["weights_sha256"] for run in measured}
    strange = [m["run"] for m in content["models"].values() if m["weights_sha256"] not in known]
    if strange:
        raise InvalidInput(
            f"results of planning must be about the models at hand; {path} has others, "
            f"{', '.join(strange)}. Plan again: skipstone plan"
        )
    return content


def _raster(measured: Sequence[Measured]) -> list[Example]:
    examples = []
    for task, runs in by_task(comparable(measured)).items():
        ours = {title: model for title, model in _models(runs).items() if title == OURS}
        if task in ("billiards1d", "billiards2d") and ours:
            examples += make_examples(task, ours, RASTER)
    return examples


def _draw(
    planned: Sequence[Planned], folder: Path, progress: Progress
) -> tuple[list[Figure], dict[str, str]]:
    """Draw the figures there is something to show in; say of the others what they lack."""
    drawn, left_out = [], {}
    for index, figure in enumerate(planned):
        progress("drawing figures", index / len(planned))
        path = folder / f"{figure.name}.png"
        try:
            save_figure(figure.draw(), path)
        except InvalidInput as missing:
            left_out[figure.title] = str(missing)
        else:
            drawn.append(Figure(figure.title, figure.caption, path))
    progress("drawing figures", 1.0)
    return drawn, left_out


_BALLS, _PIXELS = (
    "Rings are predicted balls; a flash is a cell update.",
    "A frame that lights up is a cell update.",
)
_MARKS = {task: _PIXELS if task.startswith("pixels") else _BALLS for task in FILMED}


def _film(examples: dict[str, Example], folder: Path, progress: Progress) -> list[Video]:
    names = [f"{task}.mp4" for task in FILMED if task in examples]
    names += [f"{HERO}.gif"] if HERO in examples else []
    videos = []
    for index, name in enumerate(names):
        progress("filming", index / len(names))
        task = name.partition(".")[0]
        write_example(examples[task], folder / name)
        caption = f"What happens, and what each model predicts. {_MARKS[task]}"
        videos.append(Video(task, caption, folder / name))
    progress("filming", 1.0)
    return videos


def _remove_stale(out: Path, names: set[str], shown: Sequence[Figure | Video]) -> None:
    """Remove what a report before this one had and this one has not: it is of other runs."""
    possible = [out / "figures" / f"{name}.png" for name in sorted(names)]
    possible += [out / "videos" / f"{task}{kind}" for task in FILMED for kind in VIDEO_TYPES]
    for path in possible:
        if path not in {one.path for one in shown}:
            path.unlink(missing_ok=True)


def _about(command: str) -> dict[str, str]:
    source = provenance()
    machine = source["machine"]
    return {
        "version": source["version"],
        "commit": source["commit"] or "none",
        "machine": f"{machine['processor']}, {machine['cores']} cores",
        "torch": f"{machine['torch']}, threads: {machine['threads']}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": command,
    }
