"""From runs to a folder with the paper's table, its figures, videos, and a page that shows all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from skipstone.console import Progress, silent
from skipstone.drawing.style import save_figure
from skipstone.errors import InvalidInput
from skipstone.files import write_text
from skipstone.paper.examples import Example, make_example, make_examples
from skipstone.paper.figures.collisions import updates_and_collisions
from skipstone.paper.figures.hero import hero
from skipstone.paper.figures.planning import draw_success
from skipstone.paper.figures.studies import capacity, cost_against_sampling_rate, error_by_horizon
from skipstone.paper.figures.summary import task_summary
from skipstone.paper.figures.videos import write_example
from skipstone.paper.groups import OURS, by_model, by_task, comparable, measure
from skipstone.paper.measured import Measured
from skipstone.paper.page import VIDEO_TYPES, FigureCard, TableCard, VideoCard, write_page
from skipstone.paper.pool.schemas import read_planning
from skipstone.paper.table import COLUMNS, table_csv, table_markdown, table_rows
from skipstone.paper.tasks.registry import TASKS
from skipstone.records import write_json
from skipstone.training.run import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")

PAGE, NUMBERS, MARKDOWN, CSV = "index.html", "evaluations.json", "table1.md", "table1.csv"
"""Files of a report, beside its folders `figures` and `videos`."""

HERO = "billiards2d"
"""The task of the first figure, and of the gif."""

FILMED = ("billiards1d", "billiards2d", "pixels1d", "pixels2d")
"""Tasks that have a video."""

COLLIDING = ("billiards1d", "billiards2d")
"""Tasks whose updates are shown beside their collisions."""

RASTER = 12
"""Trajectories of each whose updates are shown."""


@dataclass(frozen=True)
class ReportFiles:
    """What `write_report` wrote, and what it could not draw."""

    written: list[Path]
    """Files, the page first."""

    left_out: dict[str, str]
    """Figures for which something is missing, and what."""


@dataclass(frozen=True)
class Illustration:
    """A figure of the report; `draw` raises `InvalidInput` if there is nothing to show."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]


def write_report(
    measured: Sequence[Measured],
    out: Path,
    *,
    planning: Path | None = None,
    command: str = "skipstone reproduce",
    progress: Progress = silent,
) -> ReportFiles:
    """Write everything that these runs can show.

    `planning` is the file of results that `skipstone plan` wrote, if there is one.
    """
    numbers = write_numbers(measured, out)
    examples = _examples(measured, progress)
    possible = list(_illustrations(measured, examples, planning))
    figures, left_out = _draw(possible, out / "figures", progress)
    videos = _film(examples, out / "videos", progress)
    _remove_stale(out, {"hero", *TASKS, *(one.name for one in possible)}, [*figures, *videos])
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
    return ReportFiles([page, *numbers, *(card.path for card in [*figures, *videos])], left_out)


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


def _comparison(measured: Sequence[Measured]) -> list[TableCard]:
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
    return [TableCard("PC-ODE and RNN", _COMPARISON_CAPTION, columns, rows)] if rows else []


def _tables(measured: Sequence[Measured]) -> list[TableCard]:
    """The table in two, so that each fits on a screen: errors, and costs."""
    rows = table_rows(measured)
    split, names = COLUMNS.index("updates"), 2
    parts = {
        ("Table 1", _TABLE_CAPTION): [*range(split)],
        ("What it costs", _COST_CAPTION): [*range(names), *range(split, len(COLUMNS))],
    }
    return [
        TableCard(*words, [COLUMNS[i] for i in kept], [[row[i] for i in kept] for row in rows])
        for words, kept in parts.items()
        if rows
    ]


def write_numbers(measured: Sequence[Measured], out: Path) -> list[Path]:
    """The table in its two forms, and every evaluation."""
    evaluations = {str(run.run.folder): run.evaluation for run in measured}
    write_text(out / MARKDOWN, table_markdown(measured))
    write_text(out / CSV, table_csv(measured))
    write_json(out / NUMBERS, {"runs": evaluations, **provenance()})
    return [out / MARKDOWN, out / CSV, out / NUMBERS]


def _each(what: str, items: Sequence[Item], progress: Progress) -> Iterator[Item]:
    """The items, with progress shown while each is worked on."""
    for index, item in enumerate(items):
        progress(what, index / len(items))
        yield item
    progress(what, 1.0)


def _examples(measured: Sequence[Measured], progress: Progress) -> dict[str, Example]:
    """The first trajectory of each task, not a chosen one."""
    tasks = list(by_task(comparable(measured)).items())
    return {
        task: make_example(task, models)
        for task, runs in _each("rolling out examples", tasks, progress)
        if (models := _models(runs))
    }


def _models(runs: Sequence[Measured]) -> dict[str, Any]:
    """The model of the lowest seed of each kind, of those whose weights are kept."""
    kept = sorted((run for run in runs if run.run.has_weights), key=lambda run: run.seed)
    return {model: first.run.load() for model, (first, *_) in by_model(kept).items()}


def _illustrations(
    measured: Sequence[Measured], examples: dict[str, Example], planning: Path | None
) -> Iterator[Illustration]:
    if HERO in examples:
        yield Illustration(
            "hero",
            "Two balls, by each model",
            "Predicted paths over what truly happens. Dots are cell updates; the strip above each "
            "panel shows how long every step lasts.",
            lambda: hero(examples[HERO]),
        )
    for task, example in examples.items():
        yield Illustration(
            task,
            task,
            "Samples of a baseline and of the PC-ODE; the mean step during training; error against "
            "mean step, with training from light to dark (teacher-forced steps, validation "
            "errors), the end on test data marked, and in grey the PC-ODE at constant steps.",
            lambda example=example: task_summary(example, measured),
        )
    yield Illustration(
        "horizon",
        "Error against horizon",
        "How fast rollouts drift from the truth.",
        lambda: error_by_horizon(measured),
    )
    yield Illustration(
        "collisions",
        "Updates and collisions",
        "When the PC-ODE updates, beside when balls collide, on the first trajectories there are; "
        "and how many of one are within an observation of the other, against chance.",
        lambda: updates_and_collisions(_raster(measured), measured),
    )
    yield Illustration(
        "capacity",
        "Capacity",
        "The mean step of the PC-ODE against its number of units; the paper's grows.",
        lambda: capacity(measured),
    )
    yield Illustration(
        "sampling",
        "Cost against sampling rate",
        "The same balls observed more often. An RNN updates at every observation; beside its "
        "updates and the PC-ODE's, the number of collisions there are.",
        lambda: cost_against_sampling_rate(measured),
    )
    yield Illustration(
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
    content = read_planning(path)
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
    ours = [run for run in comparable(measured) if run.model == OURS and run.task in COLLIDING]
    for task, runs in by_task(ours).items():
        if models := _models(runs):
            examples += make_examples(task, models, RASTER)
    return examples


def _draw(
    illustrations: Sequence[Illustration], folder: Path, progress: Progress
) -> tuple[list[FigureCard], dict[str, str]]:
    """Draw the figures that have something to show; say what the others lack."""
    drawn, left_out = [], {}
    for one in _each("drawing figures", illustrations, progress):
        path = folder / f"{one.name}.png"
        try:
            save_figure(one.draw(), path)
            drawn.append(FigureCard(one.title, one.caption, path))
        except InvalidInput as missing:
            left_out[one.title] = str(missing)
    return drawn, left_out


def _film(examples: dict[str, Example], folder: Path, progress: Progress) -> list[VideoCard]:
    names = [f"{task}.mp4" for task in FILMED if task in examples]
    names += [f"{HERO}.gif"] if HERO in examples else []
    videos = []
    for name in _each("filming", names, progress):
        example = examples[name.partition(".")[0]]
        write_example(example, folder / name)
        caption = "What happens, and what each model predicts. " + (
            "A frame that lights up is a cell update."
            if example.scene.kind == "film"
            else "Rings are predicted balls; a flash is a cell update."
        )
        videos.append(VideoCard(example.task, caption, folder / name))
    return videos


def _remove_stale(out: Path, names: set[str], shown: Sequence[FigureCard | VideoCard]) -> None:
    """Remove the files of an earlier report that this one lacks: they are of other runs."""
    possible = {out / "figures" / f"{name}.png" for name in names}
    possible |= {out / "videos" / f"{task}{kind}" for task in FILMED for kind in VIDEO_TYPES}
    for path in possible - {card.path for card in shown}:
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
