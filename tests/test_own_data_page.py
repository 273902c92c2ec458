"""The page about own data: its examples run as written, on a log with a gap."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pages import ROOT, python_blocks

BLOCKS = [block.code for block in python_blocks(ROOT / "docs" / "own-data.md")]


def write_log(path: Path) -> None:
    """Ten rooms, an observation an hour or so, and none for a day."""
    rng = np.random.default_rng(0)
    frames = []
    for room in range(10):
        hours = np.cumsum(rng.uniform(0.5, 1.5, 300)) + 24 * (np.arange(300) > 200)
        stamps = [datetime(2026, 1, 1, room) + timedelta(seconds=round(3600 * h)) for h in hours]
        swing = np.sin(hours / 12 * np.pi)
        columns = {"room": f"room {room}", "time": stamps, "warmth": swing, "damp": -swing / 2}
        frames.append(pl.DataFrame(columns))
    pl.concat(frames).write_csv(path)


def test_examples_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "log.csv")
    assert len(BLOCKS) == 3
    names: dict[str, object] = {}
    exec(compile(BLOCKS[0], "own-data.md", "exec"), names)
    log, forecast = names["log"], names["forecast"]
    assert isinstance(log, pl.DataFrame)
    assert isinstance(forecast, pl.DataFrame)
    assert forecast.schema["time"] == log.schema["time"]
    bounds = [f"{name}_{side}" for name in ("warmth", "damp") for side in ("lower", "upper")]
    assert forecast.columns == [*log.columns, *bounds]
    assert (forecast["damp_lower"] < forecast["damp_upper"]).all()
    assert forecast["warmth_upper"].is_finite().all()
    assert forecast["room"].value_counts()["count"].to_list() == [24] * 10
    last = log.group_by("room").agg(pl.col("time").max().alias("end"))
    ahead = forecast.join(last, on="room").select(pl.col("time") - pl.col("end"))["time"]
    assert ahead.unique().sort().to_list() == [timedelta(hours=h) for h in range(1, 25)]
    assert (tmp_path / "forecast.png").stat().st_size > 1000
    for block in BLOCKS[1:]:
        exec(compile(block, "own-data.md", "exec"), names)


def test_the_first_example_is_about_fifteen_lines() -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line and "import " not in line]
    assert len(lines) <= 15
