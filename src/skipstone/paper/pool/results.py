"""The planning experiment from run folders to files: it resumes, and writes results as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.console import markdown_table, show_progress, text_table
from skipstone.drawing.style import save_figure, write_video
from skipstone.errors import InvalidInput, require_seed
from skipstone.files import remove_file
from skipstone.models.base import Model
from skipstone.models.ensemble import Ensemble
from skipstone.models.registry import MODELS, find_kind, title_of
from skipstone.models.storage import load_hashed
from skipstone.paper.figures.planning import draw_success
from skipstone.paper.figures.shot import FRAMES_PER_SECOND, animate_shot, draw_shot, planned_shot
from skipstone.paper.jobs import varied
from skipstone.paper.pool.experiment import (
    Kept,
    Settings,
    in_the_paper,
    plan_mirrored,
    run_experiment,
)
from skipstone.paper.pool.game import TrueScore
from skipstone.paper.pool.schemas import PLANNING_FORMAT, read_planning
from skipstone.paper.tasks.shots import POCKET_RADIUS, SHOTS, random_tables
from skipstone.records import json_text, write_json
from skipstone.training.run import Run, list_runs, provenance

if TYPE_CHECKING:
    from rich.table import Table

RESULTS, FIGURE = "planning.json", "planning.png"
"""Files that the experiment writes."""

UNFINISHED = "planning-unfinished-{tables}-{rollouts}-{seed}.json"
"""File with the results of those who have played, until all have."""

COLUMNS = ["model", "planner", "measured", "success %", "updates", "evals", "s/shot"]
"""Columns of the table of results."""

SHOT_PICTURE, SHOT_ANIMATION = "shot.png", "shot.gif"
"""Files about one planned shot."""


def _plays(run: Run) -> bool:
    """Whether a run is a finished one on shots. One that cannot be read was not asked for."""
    try:
        return run.finished and _task_of(run) == SHOTS.name
    except InvalidInput:
        return False


def _varied(run: Run) -> bool:
    """Whether a run has more than its preset."""
    job = run.config["data"].get("job")
    return job is not None and bool(varied(job))


def find_runs(folders: Sequence[Path], places: Sequence[Path]) -> dict[str, list[Run]]:
    """The runs in these folders, by the names they play under: those that differ only by their
    seeds play under one.

    Without folders, those of the first place that has finished runs on shots.
    """
    if folders:
        runs = [Run(folder) for folder in folders]
    else:
        found = ([run for run in list_runs(place) if _plays(run)] for place in places)
        runs = next(filter(None, found), [])
        # Studies vary something on purpose, and stay out of comparisons.
        runs = [run for run in runs if not _varied(run)] or runs
    if not runs:
        raise InvalidInput(
            f"there must be a finished run on {SHOTS.name} to plan with; found none in "
            f"{' or '.join(str(place) for place in places)}. Train one: skipstone train "
            f"{SHOTS.name} pcode"
        )
    for run in runs:
        if _task_of(run) != SHOTS.name:
            raise InvalidInput(
                f"a planner's model must have been trained on {SHOTS.name}; {run.folder} was "
                f"trained on {_task_of(run) or 'data of its own'}. Train one: skipstone train "
                f"{SHOTS.name} {run.config['model'].get('kind', 'pcode')}"
            )
    groups = _by_seed(runs)
    kinds = [group[0].config["model"]["kind"] for group in groups]
    # Registered ones first, in their order; sorting keeps the order of the rest.
    known = [*MODELS, *kinds]
    groups.sort(key=lambda group: known.index(group[0].config["model"]["kind"]))
    return {_name(group[0], kinds, groups): group for group in groups}


def _by_seed(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that differ only by their seeds, together; the same seed twice stays apart."""
    groups: dict[str, dict[int, Run]] = {}
    for number, run in enumerate({run.folder: run for run in runs}.values()):
        config = run.config
        training = json_text(
            [config["model"], config["recipe"], config["data"].get("fingerprint")], "a training"
        )
        if run.config["seed"] in groups.get(training, {}):
            training += str(number)
        groups.setdefault(training, {})[run.config["seed"]] = run
    return [[group[seed] for seed in sorted(group)] for group in groups.values()]


def _name(run: Run, kinds: Sequence[str], groups: Sequence[Sequence[Run]]) -> str:
    """The shortest unique name of a run: its model's title, its folder's name, or its path."""
    kind, folder = run.config["model"]["kind"], run.folder
    if kinds.count(kind) == 1:
        return title_of(find_kind(kind))
    same = [group for group in groups if group[0].folder.name == folder.name]
    return folder.name if len(same) == 1 else str(folder)


@dataclass(frozen=True)
class _Contestant:
    """Who plays under a name, and the record of it."""

    models: Sequence[Model[Any]]
    about: dict[str, Any]


def _contestants(runs: Mapping[str, Sequence[Run]]) -> dict[str, _Contestant]:
    """The models of these runs; several seeds also play as one, an ensemble."""
    found = {}
    for name, group in runs.items():
        loaded = [load_hashed(run.folder) for run in group]
        models = [model for model, _ in loaded]
        about = {
            "runs": [run.folder.name for run in group],
            "weights_sha256": [checksum for _, checksum in loaded],
            "together": False,
            "commit": provenance()["commit"],
        }
        found[name] = _Contestant(models, about)
        if len(models) > 1:
            together = [Ensemble(models).eval()]
            found[f"{len(models)} {name}s"] = _Contestant(together, {**about, "together": True})
    return found


def _task_of(run: Run) -> str | None:
    return run.config.get("data", {}).get("task")


def report_experiment(
    runs: Mapping[str, Sequence[Run]],
    settings: Settings,
    out: Path,
    only_new: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Table:
    """Run the experiment, write its results and figure into a folder, and return its table.

    It takes over what an interrupted one has found. With `only_new` it also takes over finished
    results of the same weights, tables and rollouts. `tell` is called with a line about each.
    """
    playing = _contestants(runs)
    models = {name: contestant.models for name, contestant in playing.items()}
    about = {name: contestant.about for name, contestant in playing.items()}
    json_text(about, RESULTS)  # Fails now, not when the shots are played.
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
        about_all = {"settings": asdict(settings), "models": done, "results": found}
        write_json(unfinished, {"format": PLANNING_FORMAT, **about_all})

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
    write_json(out / RESULTS, {"format": PLANNING_FORMAT, **content})
    remove_file(unfinished)
    save_figure(draw_success(content), out / FIGURE)
    return results_table(content)


def _recorded(
    file: Path, settings: Settings, about: dict[str, dict[str, Any]]
) -> dict[str, tuple[list[dict[str, Any]], str]]:
    """Results in a file of contestants with the same weights, and the commit they played with, by
    the names that they have now."""
    content = read_planning(file) if file.is_file() else {}
    if content.get("settings") != asdict(settings):
        return {}
    found = {}
    for name, one in about.items():
        for then, other in content["models"].items():
            if all(other[key] == one[key] for key in ("weights_sha256", "together")):
                results = [r for r in content["results"] if r["contestant"] == then]
                results = [{**result, "contestant": name} for result in results]
                found[name] = results, other.get("commit", content.get("commit"))
    return found


def show_shot(name: str, run: Run, rollouts: int, seed: int, out: Path) -> tuple[str, list[Path]]:
    """Plan one shot at a random table, then draw and animate it: how it went, and files written."""
    require_seed(seed)
    model, tables = run.load(), random_tables(np.random.default_rng(seed), 1)
    plan = plan_mirrored(model, tables, rollouts, lambda: np.random.default_rng([seed, 1]))
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
    """Success with all rollouts, and its cost: one line for each way to plan."""
    size = content["settings"]
    caption = (
        f"{size['rollouts']:,} rollouts a shot, {size['tables']} tables; updates and evals (of an "
        "ODE's right-hand side) are of one rollout."
    )
    return text_table(COLUMNS, _rows(content), caption, words=3)


def results_markdown(content: dict[str, Any]) -> str:
    """The same table for a page."""
    return markdown_table(COLUMNS, _rows(content))


def _rows(content: dict[str, Any]) -> Iterator[list[str]]:
    for result in content["results"]:
        name, success = result["contestant"], result["success"][-1]
        seconds = content["seconds_per_shot"][name]["value"] if in_the_paper(result) else None
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
