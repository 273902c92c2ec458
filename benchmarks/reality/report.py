"""The page of results: tables and a verdict, made from the JSON files of the trials.

    python -m benchmarks.reality.report

It rewrites what lies between the marks of `docs/real-data.md`, and nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.reality.peers import IN_TORCH, NAIVE, OURS, PEERS, peers_of
from benchmarks.reality.problems import PROBLEMS
from benchmarks.report import read_json
from skipstone.console import short_number

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "real-data.md", ROOT / "results" / "reality"

BEGIN, END = "<!-- made by benchmarks.reality.report: {} -->", "<!-- end -->"
"""Marks around what is generated; the first with the name of a part."""

NOT_YET = "*No runs are recorded yet. `make reality` does them and fills this in.*"
"""In the place of what nobody has measured."""

VIDEO = "cube.gif"
"""The tossed cube, beside the figures."""

AS_GOOD, FEWER = 1.0, 4.0
"""The aim: an error of at most this many times the best peer's, with so many times fewer updates.
"""


@dataclass(frozen=True)
class Row:
    """A forecast, over all seeds."""

    name: str
    errors: tuple[float, ...]
    """The error that counts, one for each seed."""

    others: dict[str, float]
    """Further errors in units of their own."""

    updates: float
    steps: float
    milliseconds: float | None
    in_torch: float | None = None
    """The same without C++, where there is any."""

    @property
    def error(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.errors))

    @property
    def trained(self) -> bool:
        """Whether it learned anything."""
        return self.steps > 0


def read_trials(results: Path) -> list[dict[str, Any]]:
    """All that is recorded, by name."""
    return [read_json(path) for path in sorted((results / "trials").glob("*.json"))]


def read_times(results: Path) -> dict[str, dict[str, float]]:
    """Milliseconds of a single rollout, by data set and forecast."""
    found = {}
    for path in sorted((results / "times").glob("*.json")):
        content = read_json(path)
        alone = content["rows"]["1"]
        found[content["data"]] = {name: 1e3 * each["median"] for name, each in alone.items()}
    return found


def rows_of(
    trials: Iterable[Mapping[str, Any]], times: Mapping[str, Mapping[str, float]], budget: str
) -> dict[str, list[Row]]:
    """The rows of each data set, the lowest error first. Naive forecasts are in every table."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial["budget"] == budget or trial["steps"] == 0:
            for forecast in trial["forecasts"]:
                found[trial["data"]][forecast["name"]].append((trial, forecast))
    table = {}
    for data in PROBLEMS:
        rows = [_row(name, each, times.get(data, {})) for name, each in found[data].items()]
        if any(row.trained for row in rows):
            table[data] = sorted(rows, key=lambda row: row.error)
    return table


def _row(name: str, found: list[Any], times: Mapping[str, float]) -> Row:
    forecasts = [forecast for _, forecast in found]
    # What is not finite has no number.
    errors = [
        {
            key: math.inf if value is None else value
            for key, value in (each["own"] or {"scaled": each["error"]}).items()
        }
        for each in forecasts
    ]
    own = {key: float(np.mean([each[key] for each in errors])) for key in errors[0]}
    main = next(iter(own))
    return Row(
        name=name,
        errors=tuple(each[main] for each in errors),
        others={key: value for key, value in own.items() if key != main},
        updates=float(np.mean([each["updates"] for each in forecasts])),
        steps=float(np.mean([trial["steps"] for trial, _ in found])),
        milliseconds=times.get(name),
        in_torch=times.get(IN_TORCH) if name == OURS else None,
    )


def table_markdown(tables: Mapping[str, list[Row]]) -> str:
    """One table over all data sets."""
    if not tables:
        return NOT_YET
    heads = ["data", "forecast", "error", "updates", "ms", "training steps"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for data, rows in tables.items():
        unit = next(iter(PROBLEMS[data].distances), "scaled")
        for at, row in enumerate(rows):
            title = f"{PROBLEMS[data].title} ({unit})" if at == 0 else ""
            name = f"**{row.name}**" if row.name == OURS else row.name
            lines.append(f"| {title} | {name} | {' | '.join(_cells(row))} |")
    return "\n".join(lines)


def summary_markdown(tables: Mapping[str, list[Row]]) -> str:
    """One line per data set: everybody's error, updates and milliseconds, the best error in bold.

    A peer with several forecasts shows its best one, and so do the naive ones together.
    """
    if not tables:
        return NOT_YET
    present = {name for data in tables for name in peers_of(PROBLEMS[data])}
    heads = [peer.title for name, peer in PEERS.items() if name in present] + [NAIVE]
    lines = [f"| data | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for data, rows in tables.items():
        best: dict[str, str] = {}
        for row in rows:
            head = row.name.partition(", steps of")[0] if row.trained else NAIVE
            error = short_number(row.error)
            parts = [error if best else f"**{error}**"]
            parts += [f"{row.updates:.3g}", _milliseconds(row)] if row.trained else []
            best.setdefault(head, " / ".join(parts))
        unit = next(iter(PROBLEMS[data].distances), "scaled")
        cells = [f"{PROBLEMS[data].title} ({unit})", *(best.get(head, "") for head in heads)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _milliseconds(row: Row) -> str:
    return "–" if row.milliseconds is None else f"{row.milliseconds:.3g}"


def _cells(row: Row) -> list[str]:
    error = short_number(row.error)
    if len(row.errors) > 1:
        error += f" ({short_number(min(row.errors))} to {short_number(max(row.errors))})"
    for name, value in row.others.items():
        error += f"; {name} {short_number(value)}"
    if not row.trained:
        return [error, "", "", ""]
    time = _milliseconds(row)
    if row.in_torch is not None:
        time += f" ({row.in_torch:.3g} in PyTorch)"
    return [error, f"{row.updates:.3g}", time, f"{row.steps:,.0f}"]


@dataclass(frozen=True)
class Comparison:
    """The PC-ODE beside the best of its trained peers on one data set."""

    data: str
    best: str
    error: float
    """Its error over the best peer's."""

    fewer: float
    """The best peer's updates over its own."""

    faster: float | None
    """The best peer's time for a rollout over its own."""

    @property
    def reached(self) -> bool:
        """Whether the aim is reached."""
        quick = self.faster is not None and self.faster > 1
        return self.error <= AS_GOOD and self.fewer >= FEWER and quick


def compare(tables: Mapping[str, list[Row]]) -> list[Comparison]:
    """The PC-ODE against the best peer, where both are recorded."""
    found = []
    for data, rows in tables.items():
        own = [row for row in rows if row.name == OURS]
        others = [row for row in rows if row.trained and row.name != OURS]
        if not own or not others:
            continue
        mine, best = own[0], min(others, key=lambda row: row.error)
        times = (best.milliseconds, mine.milliseconds)
        faster = None if times[0] is None or times[1] is None else times[0] / times[1]
        found.append(
            Comparison(
                data, best.name, mine.error / best.error, best.updates / mine.updates, faster
            )
        )
    return found


def verdict_markdown(tables: Mapping[str, list[Row]]) -> str:
    """When to use it and when not, as far as the numbers say."""
    naive = [data for data, rows in tables.items() if not rows[0].trained]
    compared = [each for each in compare(tables) if each.data not in naive]
    if not compared and not naive:
        return NOT_YET
    use = [each for each in compared if each.reached]
    near = [each for each in compared if not each.reached and each.error <= 1.1]
    rest = [each for each in compared if each not in use and each not in near]
    parts = []
    if use:
        parts.append(
            f"**Use it** for data like {_listed(use)}: its error is no worse than the best peer's, "
            f"with at least {FEWER:g} times fewer updates and in less time."
        )
    if near:
        parts.append(
            f"**Consider it** for {_listed(near)}: within a tenth of the best peer's error, but "
            "not all of the three."
        )
    if rest:
        parts.append(f"**Take the peer** where only the error counts: {_listed(rest)}.")
    if naive:
        names = ", ".join(
            f"{PROBLEMS[data].title} ({next(iter(PROBLEMS[data].distances), 'scaled')}: "
            f"{tables[data][0].name})"
            for data in naive
        )
        parts.append(f"**Take a naive forecast** where it has the lowest error: {names}.")
    return " ".join(parts)


def _listed(compared: Iterable[Comparison]) -> str:
    return ", ".join(
        f"{PROBLEMS[each.data].title} ({each.error:.2g} times the error of {each.best} with "
        f"{each.fewer:.2g} times fewer updates)"
        for each in compared
    )


def generated(results: Path) -> dict[str, str]:
    """Every generated part of the page, by name."""
    trials, times = read_trials(results), read_times(results)
    steps, seconds = (rows_of(trials, times, budget) for budget in ("steps", "seconds"))
    return {
        "summary": summary_markdown(steps),
        "steps": table_markdown(steps),
        "verdict": verdict_markdown(steps),
        "seconds": table_markdown(seconds),
        "data": data_markdown(),
        "figures": figures_markdown(results),
        "recorded": recorded_markdown(steps),
    }


def recorded_markdown(tables: Mapping[str, list[Row]]) -> str:
    """Which data sets are recorded, with at most how many seeds; and what is not."""
    seeds: dict[int, list[str]] = defaultdict(list)
    for data, rows in tables.items():
        # A peer that takes long is trained once, whatever the others have.
        most = max(len(row.errors) for row in rows if row.trained)
        seeds[most].append(PROBLEMS[data].title)
    missing = [each.title for each in PROBLEMS.values() if each.name not in tables]
    for data, rows in tables.items():
        names = {row.name for row in rows}
        trained = [PEERS[peer].title for peer in peers_of(PROBLEMS[data]) if peer != NAIVE]
        if left := [title for title in trained if title not in names]:
            missing.append(f"of {PROBLEMS[data].title} {', '.join(left)}")
    parts = [
        f"Recorded with {count} seed{'s' * (count > 1)}: {'; '.join(titles)}."
        for count, titles in sorted(seeds.items(), reverse=True)
    ]
    parts += [f"Not yet recorded: {'; '.join(missing)}."] if missing else []
    return " ".join(parts)


def figures_markdown(results: Path) -> str:
    """A picture for each data set that has one."""
    lines = []
    for problem in PROBLEMS.values():
        path = results / "figures" / f"{problem.name}.png"
        if path.is_file():
            about = f"{problem.title}: error against updates, and against time ahead"
            lines.append(f"![{about}](../results/reality/figures/{path.name})")
    if (results / "figures" / VIDEO).is_file():
        about = "A tracked cube, and in colour its prediction; a flash is a cell update"
        lines.append(f"![{about}](../results/reality/figures/{VIDEO})")
    return "\n\n".join(lines) or NOT_YET


def data_markdown() -> str:
    """What each data set is, from the code that loads it."""
    lines = ["| data | what it is | units | step asked for |", "|---|---|---|---|"]
    for problem in PROBLEMS.values():
        about = [problem.title, problem.about, str(problem.hidden), f"{problem.target_step:g}"]
        lines.append(f"| {' | '.join(about)} |")
    return "\n".join(lines)


def filled_in(page: str, parts: Mapping[str, str]) -> str:
    """The page with new parts between its marks."""
    for name, text in parts.items():
        begin = BEGIN.format(name)
        before, mark, rest = page.partition(begin)
        _, close, after = rest.partition(END)
        if not mark or not close:
            raise ValueError(f"the page must have {begin} and then {END}; it has not.")
        page = f"{before}{begin}\n\n{text}\n\n{close}{after}"
    return page


def main(
    results: Annotated[Path, typer.Option(help="Folder of JSON.")] = RESULTS,
    page: Annotated[Path, typer.Option(help="The page to fill in.")] = PAGE,
) -> None:
    """Fill in the page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(filled_in(text, generated(results)), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    typer.run(main)
