"""From runs to a folder with the paper's table, its figures, videos, and a page that shows all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from skipstone.console import Progress, silent
from skipstone.drawing.style import save_figure
from skipstone.errors import InvalidInput
from skipstone.files import write_text
from skipstone.paper.examples import Example, make_example, typical_row
from skipstone.paper.figures.videos import write_example
from skipstone.paper.findings import findings_of, findings_table, summary_of
from skipstone.paper.groups import by_task, comparable
from skipstone.paper.illustrations import (
    HERO,
    Illustration,
    first_models,
    illustrations,
    typical_text,
)
from skipstone.paper.measured import Measured
from skipstone.paper.page import VIDEO_TYPES, FigureCard, TableCard, VideoCard, write_page
from skipstone.paper.playground import PLAYGROUND, find_players, write_playground
from skipstone.paper.table import (
    BUDGET,
    COSTS,
    ERRORS,
    NAMES,
    VALIDITY,
    table_csv,
    table_markdown,
    table_rows,
)
from skipstone.paper.tasks.registry import TASKS
from skipstone.records import write_json
from skipstone.training.run import provenance

Item = TypeVar("Item")

PAGE, NUMBERS, MARKDOWN, CSV = "index.html", "evaluations.json", "table1.md", "table1.csv"
"""Files of a report, beside its folders `figures` and `videos`."""

FILMED = ("billiards1d", "billiards2d", "pixels1d", "pixels2d")
"""Tasks that have a video."""


@dataclass(frozen=True)
class ReportFiles:
    """What `write_report` wrote, and what it could not draw."""

    written: list[Path]
    """Files, the page first."""

    left_out: dict[str, str]
    """Figures for which something is missing, and what."""


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
    possible = list(illustrations(measured, examples, planning))
    figures, left_out = _draw(possible, out / "figures", progress)
    videos = _film(examples, out / "videos", progress)
    _remove_stale(out, {"hero", *TASKS, *(one.name for one in possible)}, [*figures, *videos])
    progress("writing the page", 0.0)
    findings = findings_of(measured)
    page, playground = out / PAGE, _playground(measured, out)
    write_page(
        page,
        summary=summary_of(findings),
        findings=findings_table(findings),
        tables=_tables(measured),
        figures=figures,
        videos=[video for video in videos if video.path.suffix == ".mp4"],
        examples=sorted(examples.values(), key=lambda example: example.task != HERO),
        playground=playground[0].name if playground else "",
        about=_about(command),
    )
    progress("writing the page", 1.0)
    return ReportFiles(
        [page, *playground, *numbers, *(card.path for card in [*figures, *videos])], left_out
    )


_ERRORS_CAPTION = (
    "Mean squared errors on test data: of predicting each observation from those before it (test), "
    "and of rollouts (sample). The mean step is the time between two updates, in observations. "
    "“paper” is the paper's number. Several seeds: their mean, and their range in brackets; a seed "
    "whose weights are not kept is quoted from the end of its training."
)
_VALIDITY_CAPTION = (
    "The median time, in observations, until a rollout is off by more than 5 % or 20 % of the "
    "data's spread. In brackets: the 95 % interval, or for several seeds their range. “>”: most "
    "rollouts are still that close when the data end."
)
_COSTS_CAPTION = (
    "What one rollout takes: cell updates, evaluations of an ODE's right-hand side, and "
    "milliseconds on the machine below. “Updates at the RNN's error” is how many a PC-ODE needs to "
    "be as exact as an RNN, both trained with the smaller budget of the figure “Error against mean "
    "step”; “–” is out of reach, “<” fewer than were tried. All models of a task have the same "
    "number of training steps. A PC-ODE, which updates less often, may have more units."
)


def _tables(measured: Sequence[Measured]) -> list[TableCard]:
    """The table in three, so that each fits on a screen."""
    rows = table_rows(measured)
    begin, cards = len(NAMES), []
    for title, caption, columns in (
        ("Table 1: errors and steps", _ERRORS_CAPTION, ERRORS),
        ("How long predictions can be trusted", _VALIDITY_CAPTION, VALIDITY),
        ("What it costs", _COSTS_CAPTION, [*COSTS, *BUDGET]),
    ):
        end = begin + len(columns)
        parts = [[*row[: len(NAMES)], *row[begin:end]] for row in rows]
        cards.append(TableCard(title, caption, [*NAMES, *columns], parts))
        begin = end
    return cards if rows else []


def write_numbers(measured: Sequence[Measured], out: Path) -> list[Path]:
    """The table in its two forms, and every evaluation."""
    evaluations = {str(run.run.folder): run.evaluation for run in measured}
    write_text(out / MARKDOWN, table_markdown(measured))
    write_text(out / CSV, table_csv(measured))
    write_json(out / NUMBERS, {"runs": evaluations, **provenance()})
    return [out / MARKDOWN, out / CSV, out / NUMBERS]


def _playground(measured: Sequence[Measured], out: Path) -> list[Path]:
    """The playground, if there are all the models that it needs."""
    path = out / PLAYGROUND
    try:
        players = find_players([run.run for run in comparable(measured)])
    except InvalidInput:
        path.unlink(missing_ok=True)
        return []
    write_playground(path, players)
    return [path]


def _each(what: str, items: Sequence[Item], progress: Progress) -> Iterator[Item]:
    """The items, with progress shown while each is worked on."""
    for index, item in enumerate(items):
        progress(what, index / len(items))
        yield item
    progress(what, 1.0)


def _examples(measured: Sequence[Measured], progress: Progress) -> dict[str, Example]:
    """A typical trajectory of each task, chosen by rule."""
    tasks = list(by_task(comparable(measured)).items())
    return {
        task: make_example(task, models, typical_row(task, models))
        for task, runs in _each("rolling out examples", tasks, progress)
        if (models := first_models(runs))
    }


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
        updates = (
            "A frame that lights up is a cell update."
            if example.scene.kind == "film"
            else "Rings are predicted balls; a flash is a cell update."
        )
        caption = f"What happens, and what each model predicts. {updates} {typical_text(example)}"
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
