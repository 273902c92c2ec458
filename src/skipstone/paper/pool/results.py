"""The planning experiment from run folders to files: results, a table, a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Column, Table

from skipstone.console import show_progress
from skipstone.drawing.labels import label_ends
from skipstone.drawing.style import (
    GREY,
    faded,
    look,
    new_figure,
    save_figure,
    series_styles,
    write_video,
)
from skipstone.errors import InvalidInput
from skipstone.files import read_json, write_json
from skipstone.models.base import Model
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.figures.shot import FRAMES_PER_SECOND, animate_shot, draw_shot, planned_shot
from skipstone.paper.pool.experiment import (
    SIMULATOR,
    Kept,
    Settings,
    plan_mirrored,
    run_experiment,
)
from skipstone.paper.pool.game import ImaginedScore, MirroredScore, TrueScore, closest_approach
from skipstone.paper.tasks.shots import POCKET_RADIUS, SHOTS, random_tables
from skipstone.training.fit import check_seed
from skipstone.training.run import TITLES, WEIGHTS, Run, list_runs, provenance, sha256

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS, FIGURE = "planning.json", "planning.png"
"""Files the experiment writes."""

UNFINISHED = "planning-unfinished-{tables}-{rollouts}-{seed}.json"
"""Where it keeps the results of those who have played, until all have."""

COLUMNS = ["model", "planner", "measured", "success %", "updates", "evals", "s/shot"]
"""Of the table of results."""

SHOT_PICTURE, SHOT_ANIMATION = "shot.png", "shot.gif"
"""Files about one planned shot."""


def find_runs(folders: Sequence[Path], places: Sequence[Path]) -> dict[str, Run]:
    """The runs in these folders, or, if there are none, those of the first place that has any
    finished ones on shots; by the names of their models."""
    if folders:
        runs = [Run(folder) for folder in folders]
    else:
        found = ([run for run in list_runs(place) if _can_play(run)] for place in places)
        runs = next((runs for runs in found if runs), [])
    if not runs:
        raise InvalidInput(
            f"there must be a finished run on {SHOTS.name} to plan with; found none in "
            f"{' or '.join(str(place) for place in places)}. Train one: skipstone train "
            f"{SHOTS.name} pcode"
        )
    for run in runs:
        task = run.config.get("data", {}).get("task")
        if task != SHOTS.name:
            raise InvalidInput(
                f"a planner's model must have been trained on {SHOTS.name}; {run.folder} was "
                f"trained on {task or 'data of its own'}. Train one: skipstone train "
                f"{SHOTS.name} {run.config['model'].get('kind', 'pcode')}"
            )
    kinds = [run.config["model"]["kind"] for run in runs]
    order = sorted(range(len(runs)), key=lambda i: (list(TITLES).index(kinds[i]), i))
    return {_name(runs[i], kinds, runs): runs[i] for i in order}


def _name(run: Run, kinds: Sequence[str], runs: Sequence[Run]) -> str:
    """The title of a run's model, where that or else the folder's name tells it apart; or else
    the whole path."""
    kind, folder = run.config["model"]["kind"], run.folder
    if kinds.count(kind) == 1:
        return TITLES[kind]
    same = {other.folder for other in runs if other.folder.name == folder.name}
    return folder.name if len(same) == 1 else str(folder)


def _can_play(run: Run) -> bool:
    return run.finished and run.config.get("data", {}).get("task") == SHOTS.name


def report_experiment(
    runs: dict[str, Run],
    settings: Settings,
    out: Path,
    only_new: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Table:
    """Run the experiment, keep its results and its figure in a folder, and return its table.

    What an interrupted one has found is kept there, too, and taken over. With `only_new` so are
    finished results of the same weights, tables and rollouts. `tell` hears of it.
    """
    models: dict[str, Model[Any]] = {name: run.load() for name, run in runs.items()}
    about = {
        name: {
            "run": run.folder.name,
            "weights_sha256": sha256(run.folder / WEIGHTS),
            "commit": provenance()["commit"],
        }
        for name, run in runs.items()
    }
    unfinished = out / UNFINISHED.format(**asdict(settings))
    known: Kept = {}
    for file in [unfinished, *([out / RESULTS] if only_new else [])]:
        for name, (results, commit) in _recorded(file, settings, about).items():
            if name not in known:
                known[name], about[name]["commit"] = results, commit
                tell(f"{name}: taken over from {file}, played with commit {commit}")

    done = {name: about[name] for name in known}

    def keep(results: Kept) -> None:
        done.update({name: one for name, one in about.items() if name in results})
        found = [result for name in done for result in results[name]]
        write_json(unfinished, {"settings": asdict(settings), "models": done, "results": found})

    try:
        with show_progress() as progress:
            content = run_experiment(models, settings, progress, known, keep)
    except KeyboardInterrupt:
        kept = ", ".join(done) if done else "no model"
        raise KeyboardInterrupt(
            f"stopped; {kept} had finished and need not play again when you run this again."
        ) from None
    content["models"] = about
    content.update(provenance())
    write_json(out / RESULTS, content)
    unfinished.unlink(missing_ok=True)
    save_figure(draw_success(content), out / FIGURE)
    return results_table(content)


def _recorded(
    file: Path, settings: Settings, about: dict[str, dict[str, Any]]
) -> dict[str, tuple[list[dict[str, Any]], str]]:
    """Results in a file of contestants with the same weights, and the commit that they played
    with, by the names that they have now."""
    content = read_json(file) if file.is_file() else {}
    if content.get("settings") != asdict(settings):
        return {}
    found = {}
    for name, one in about.items():
        for then, other in content["models"].items():
            if other["weights_sha256"] == one["weights_sha256"]:
                results = [r for r in content["results"] if r["contestant"] == then]
                results = [{**result, "contestant": name} for result in results]
                found[name] = results, other.get("commit", content.get("commit"))
    return found


def show_shot(name: str, run: Run, rollouts: int, seed: int, out: Path) -> tuple[str, list[Path]]:
    """Plan one shot at a random table, then draw and animate it; say how it went, and what was
    written."""
    check_seed(seed)
    model, tables = run.load(), random_tables(np.random.default_rng(seed), 1)
    score, closer = ImaginedScore(model, tables, closest_approach), MirroredScore(model, tables)
    plan = plan_mirrored(score, closer, rollouts, lambda: np.random.default_rng([seed, 1]))
    truth = float(TrueScore(tables)(plan.actions[:, None]))
    said = (
        f"{name} imagined that the target comes within {float(plan.scores[0]):.3f} of the pocket "
        f"({POCKET_RADIUS:g} wins); it came within {truth:.3f}: "
        f"{'a hit' if truth < POCKET_RADIUS else 'a miss'}."
    )
    shot = planned_shot(model, tables[0], plan.actions[0].double().numpy())
    picture, animation = out / SHOT_PICTURE, out / SHOT_ANIMATION
    save_figure(draw_shot(shot), picture)
    write_video(animation, animate_shot(shot), FRAMES_PER_SECOND)
    return said, [picture, animation]


def results_table(content: dict[str, Any]) -> Table:
    """Success with all rollouts, and what it costs, a line for each way to plan."""
    size = content["settings"]
    table = Table(
        # Names of runs can be long; they are what may be broken.
        Column(COLUMNS[0], overflow="fold"),
        *(Column(title, no_wrap=True) for title in COLUMNS[1:3]),
        *(Column(title, justify="right", no_wrap=True) for title in COLUMNS[3:]),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption=f"{size['rollouts']:,} rollouts a shot, {size['tables']} tables; updates and evals "
        "(of an ODE's right-hand side) are of one rollout.",
    )
    for row in _rows(content):
        table.add_row(*row)
    return table


def results_markdown(content: dict[str, Any]) -> str:
    """The same table for a page."""
    rows = [COLUMNS, ["---"] * len(COLUMNS), *_rows(content)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rows(content: dict[str, Any]) -> Iterator[list[str]]:
    for result in content["results"]:
        name, success = result["contestant"], result["success"][-1]
        timed = result["planner"] == "random" and _as_in_the_paper(result)
        seconds = content["seconds_per_shot"][name]["value"] if timed else None
        low, value, high = (100 * success[key] for key in ("low", "value", "high"))
        yield [
            name,
            result["planner"],
            result["times"],
            f"{value:.1f} ({low:.0f}–{high:.0f})",
            f"{result['updates']:.1f}" if result["updates"] else "",
            f"{result['evaluations']:.0f}" if result["evaluations"] else "",
            f"{seconds:.3f}" if seconds is not None else "",
        ]


def _as_in_the_paper(result: dict[str, Any]) -> bool:
    """Measured at observations; the simulator knows no others."""
    return result["times"] == "observed" or result["contestant"] == SIMULATOR


def draw_success(content: dict[str, Any]) -> Figure:
    """Success rate against the number of rollouts: the paper's planning figure."""
    curves = [
        result
        for result in content["results"]
        if result["planner"] == "random" and _as_in_the_paper(result)
    ]
    with look():
        figure = new_figure(5.2, 3.4)
        axes = figure.subplots()
        styles = series_styles([curve["contestant"] for curve in curves], MODEL_STYLES)
        ends = []
        for curve in curves:
            style = styles[curve["contestant"]]
            low, value, high = (
                [100 * point[key] for point in curve["success"]] for key in ("low", "value", "high")
            )
            axes.fill_between(curve["rollouts"], low, high, color=faded(style.colour, 0.15), lw=0)
            axes.plot(
                *(curve["rollouts"], value),
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markersize=4,
            )
            label = curve["contestant"]
            if label != SIMULATOR:
                label += f"\n{curve['updates']:.1f} updates"
            ends.append((value[-1], label, style.colour))
        lowest = 100 * curves[0]["success"][0]["value"]
        axes.axhline(lowest, color=GREY, lw=0.8, linestyle=":")
        axes.text(curves[0]["rollouts"][-1], lowest + 1.5, "a random shot", color=GREY, ha="right")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, 102)
        axes.set_xlabel("rollouts to plan a shot")
        axes.set_ylabel("shots that succeed, %")
        label_ends(axes, ends)
        figure.canvas.draw()
    return figure
