"""What a benchmark found: times, ratios beside their bars, and the machine it ran on."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Spread, ratio
from skipstone.files import read_bytes
from skipstone.records import parse_json, write_json
from skipstone.training.run import provenance

Samples = dict[str, list[float]]
"""Seconds of each contender, one entry per round."""


@dataclass(frozen=True)
class Comparison:
    """A measured ratio, beside the bar that it should meet, if there is one."""

    name: str
    ratio: Spread
    at_most: float | None = None
    at_least: float | None = None

    @property
    def bar(self) -> str:
        """The bar as it is written."""
        if self.at_most is not None:
            return f"≤ {self.at_most:.3g}"
        return "" if self.at_least is None else f"≥ {self.at_least:.3g}"

    @property
    def met(self) -> bool | None:
        """Whether the median meets the bar; None without one."""
        if self.at_most is not None:
            return self.ratio.median <= self.at_most
        return None if self.at_least is None else self.ratio.median >= self.at_least

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "met": self.met}


@dataclass
class Part:
    """One part of the benchmark: rows of what was measured, and comparisons between them."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Contenders that could not take part, and why."""

    def add_times(self, samples: Samples, **facts: Any) -> None:
        """A row for each contender; a fact that is a dictionary holds one entry for each."""
        for name, seconds in samples.items():
            own = {
                key: fact.get(name) if isinstance(fact, dict) else fact
                for key, fact in facts.items()
            }
            known = {key: fact for key, fact in own.items() if fact is not None}
            self.rows.append({"name": name, **known, "seconds": asdict(Spread.of(seconds))})

    def compare(self, samples: Samples, over: str, under: str, note: str = "", **bar: Any) -> None:
        """The ratio of two contenders' times."""
        name = f"{over} over {under}" + (f", {note}" if note else "")
        self.comparisons.append(Comparison(name, ratio(samples[over], samples[under]), **bar))


def read_json(path: Path) -> Any:
    """What one of our files holds."""
    return parse_json(read_bytes(path), str(path))


def machine(threads: int) -> dict[str, Any]:
    """Where and on what the numbers were measured."""
    return {
        **provenance()["machine"],
        "threads": threads,
        "load_before": os.getloadavg()[0],
        "commit": provenance()["commit"],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def save(path: Path, about: dict[str, Any], parts: list[Part]) -> None:
    """Write everything that was found."""
    write_json(
        path,
        {
            **about,
            "comparisons": [
                {"part": part.name, **comparison.to_dict()}
                for part in parts
                for comparison in part.comparisons
            ],
            "parts": {part.name: {"rows": part.rows, "skipped": part.skipped} for part in parts},
        },
    )


def bars_markdown(content: dict[str, Any]) -> str:
    """Every ratio that has a bar, from the file that `save` wrote, for a page."""
    lines = ["| part | ratio | measured | quartiles | bar | met |", "|---|---|---|---|---|---|"]
    for saved in content["comparisons"]:
        comparison = Comparison(
            saved["name"], Spread(**saved["ratio"]), saved["at_most"], saved["at_least"]
        )
        if comparison.met is not None:
            cells = _cells(comparison)
            cells[-1] = "yes" if comparison.met else "**no**"
            lines.append(f"| {' | '.join([saved['part'], *cells])} |")
    return "\n".join(lines) + "\n"


def show(part: Part, console: Console) -> None:
    """Print a part: its rows, then its comparisons."""
    _show_rows(part, console)
    if part.comparisons:
        table = Table("ratio", "measured", "quartiles", "bar", "met", title=f"{part.name}: ratios")
        for comparison in part.comparisons:
            table.add_row(*_cells(comparison))
        console.print(table)
    for name, reason in part.skipped.items():
        console.print(f"{name} left out: {reason}")


def show_bars(parts: list[Part], console: Console) -> None:
    """Print every bar once more, together."""
    table = Table("part", "ratio", "measured", "quartiles", "bar", "met", title="bars")
    for part in parts:
        for comparison in part.comparisons:
            if comparison.met is not None:
                table.add_row(part.name, *_cells(comparison))
    if table.row_count:
        console.print(table)


def _cells(comparison: Comparison) -> list[str]:
    spread = comparison.ratio
    met = {True: "yes", False: "NO", None: ""}[comparison.met]
    quartiles = f"{spread.low:.3g} to {spread.high:.3g}"
    return [comparison.name, f"{spread.median:.3g}", quartiles, comparison.bar, met]


def _show_rows(part: Part, console: Console) -> None:
    columns = list(dict.fromkeys(key for row in part.rows for key in row))
    table = Table(*(_heading(column) for column in columns), title=part.name)
    for row in part.rows:
        table.add_row(*(_text(row.get(column)) for column in columns))
    console.print(table)


def _heading(column: str) -> str:
    return "milliseconds (quartiles)" if column == "seconds" else column.replace("_", " ")


def _text(fact: Any) -> str:
    if isinstance(fact, dict):
        low, median, high = (number(1000 * fact[key]) for key in ("low", "median", "high"))
        return f"{median} ({low} to {high})"
    if isinstance(fact, int | float):
        return number(fact)
    return "" if fact is None else str(fact)


def number(value: float) -> str:
    """Three digits, or all of a large number, never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
