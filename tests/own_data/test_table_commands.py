"""The commands on tables: fit, forecast, compare and runs, for real, in seconds."""

from __future__ import annotations

import re
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from helpers import Said, edit_json, run_cli
from skipstone import PCODE, InvalidInput, Run, load
from skipstone.own_data.tablefiles import TableColumns
from skipstone.own_data.trainings import TableTraining

COLUMNS = ["--id", "room", "--time", "time", "--values", "warmth,damp"]
QUICK = ["--steps", "3", "--set", "hidden=8", "--horizon", "5", "--device", "cpu", "--quiet"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve rooms, hourly, each from another hour on."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    hours = np.arange(40)
    frames = [
        pl.DataFrame(
            {
                "room": f"room {room}",
                "time": [datetime(2026, 1, 1, room) + timedelta(hours=int(h)) for h in hours],
                "warmth": 20 + np.sin(hours / 3 + room),
                "damp": 0.01 * np.cos(hours / 3 + room),
            }
        )
        for room in range(12)
    ]
    pl.concat(frames).write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def fitted(*more: str) -> Said:
    return run_cli("fit", "log.csv", *COLUMNS, "--out", "runs/x", *QUICK, *more)


def test_from_a_table_to_a_forecast(log: Path) -> None:
    said = fitted("--intervals")
    assert said.code == 0, said.err
    for word in ("persistence", "constant velocity", "warmth", "damp", "validation error"):
        assert word in said.out
    run = Run("runs/x")
    assert run.config["model"]["kind"] == "pcode"
    assert run.config["model"]["hidden"] == 8
    assert run.config["horizon"] == 5
    assert run.config["recipe"]["steps"] == 3
    columns = TableColumns("time", ("warmth", "damp"), id="room")
    assert TableColumns.from_dict(run.config["data"]["columns"]) == columns
    # No flags: the run knows its columns.
    end = datetime(2026, 1, 3, 6)
    for out, until, every in [
        ("f.csv", "+4h", "1h"),
        ("f.parquet", end.isoformat(), "90min"),
    ]:
        said = run_cli(
            "forecast", "runs/x", "log.csv", "--until", until, "--every", every, "--out", out
        )
        assert said.code == 0, said.err
        assert f"wrote {out}" in said.out
    table = pl.read_csv("f.csv", try_parse_dates=True)
    assert table.columns == ["room", "time", "warmth", "damp"]
    assert len(table) == 12 * 4
    first = table.filter(pl.col("room") == "room 3")["time"]
    assert first.to_list() == [datetime(2026, 1, 2, 19 + h) for h in range(4)]
    last = pl.read_parquet("f.parquet").group_by("room").agg(pl.col("time").max())["time"]
    assert all(end - timedelta(minutes=90) < each <= end for each in last)
    # The numbers are the model's.
    context = columns.read(log)
    path = load("runs/x").rollout(context.tail(4), until=context.ends + 4 * 3600)
    expected = path.to_table(every="1h")
    np.testing.assert_allclose(table["warmth"], expected["warmth"], rtol=1e-6)
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "+4h", "--every", "2h", "--interval", "0.5",
        "--out", "i.csv",
    )  # fmt: skip
    assert said.code == 0, said.err
    bounds = pl.read_csv("i.csv")
    assert (bounds["damp_lower"] < bounds["damp"]).all()
    assert (bounds["warmth_upper"] > bounds["warmth"]).all()


def test_fit_again_returns_the_run_and_other_data_are_refused(log: Path) -> None:
    assert fitted().code == 0
    finished = Run("runs/x").result["finished"]
    assert fitted().code == 0
    assert Run("runs/x").result["finished"] == finished
    pl.read_csv(log).with_columns(damp=pl.col("damp") + 1).write_csv(log)
    said = fitted()
    assert said.code == 2
    assert "holds a run with another data" in said.err
    assert fitted("--overwrite").code == 0
    listed = run_cli("runs", "runs").out
    assert re.search(r"x +warmth, damp +3 ", listed)
    assert "validation" in listed
    assert "test MSE" not in listed, "own data have no test set: no empty columns"


def test_compare_prints_one_table(log: Path) -> None:
    said = run_cli("compare", "log.csv", *COLUMNS, "--out", "runs/c", *QUICK)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    heads = next(line for line in lines if "forecast s" in line).split()
    assert " ".join(heads) == "forecast warmth damp relative updates training s forecast s"
    rows = [
        line.split() for line in lines if re.match(r" *(PC-ODE|RNN|persistence|constant)", line)
    ]
    assert [row[0] for row in rows[:4]] == ["PC-ODE", "RNN", "persistence", "constant"]
    assert rows[1][4] == "5"  # An RNN updates at each observation of the horizon.
    assert rows[2][3] == "1.00"
    assert "sequences that no model has seen" in said.out
    assert Run("runs/c/rnn").finished
    # An untrained model loses to something, and that is said.
    assert "RNN does not beat" in said.out


def test_a_plan_is_checked_without_building_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one would take time and memory, before the table is even looked at."""
    monkeypatch.setattr(PCODE, "__init__", lambda *_: pytest.fail("built"))
    TableTraining(options={"hidden": 512, "layers": 900}).check()
    with pytest.raises(InvalidInput, match="layers must be at least 2 and at most 1000; got 1001"):
        TableTraining(options={"layers": 1001}).check()


def test_a_single_long_log_needs_a_horizon(log: Path) -> None:
    one = pl.read_csv(log).filter(pl.col("room") == "room 0").drop("room")
    one.write_csv("one.csv")
    command = ["fit", "one.csv", "--time", "time", "--values", "damp", "--out", "runs/one"]
    said = run_cli(*command, "--steps", "2", "--quiet")
    assert said.code == 2
    assert "give a horizon" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit log.txt {columns} --out r", "a table must be a .csv or a .parquet file"),
        ("fit none.csv {columns} --out r", "there is no file none.csv"),
        ("fit log.csv {columns} --out r --model rrn", "Did you mean rnn"),
        ("fit log.csv {columns} --out r --set hiden=3", "got 'hiden'. Did you mean hidden?"),
        ("fit log.csv {columns} --out r --set hidden=-3", "hidden must be"),
        ("fit log.csv {columns} --out r --steps 0", "steps must be"),
        ("fit log.csv {columns} --out r --horizon 0 --quiet", "horizon, the observations to"),
        ("fit log.csv {columns} --out r --horizon 500 --quiet", "must fit into the data"),
        ("fit header.csv {columns} --out r", "must have at least one row below its header"),
        ("fit log.csv --time time --values heat --out r", "has no column 'heat'"),
        ("fit log.csv --time room --values damp --out r", "must be ISO 8601"),
        ("compare log.csv {columns} --out r --model lstm", "there is no model 'lstm'"),
        ("forecast none log.csv --until +1h --every 1h --out f.csv", "a run is a folder"),
        ("forecast none log.csv --until +1h --every 1h --out f.txt", "must be a .csv or"),
    ],
)
def test_bad_input_is_one_line(arguments: str, message: str, log: Path) -> None:
    Path("header.csv").write_text(log.read_text(encoding="utf-8").splitlines()[0] + "\n")
    said = run_cli(*arguments.format(columns=" ".join(COLUMNS)).split())
    assert said.code == 2, said.out
    assert message in said.err
    (line,) = [line for line in said.err.splitlines() if not line.startswith("read ")]
    assert line.startswith("error: ")
    assert not Path("r").exists()


def test_bad_forecasts_are_one_line(log: Path) -> None:
    assert fitted().code == 0
    pl.read_csv(log).with_columns(time=pl.int_range(pl.len())).write_csv("numbers.csv")
    for table, until, every, message in [
        ("log.csv", "2020-01-01", "1h", "must be a finite time after the context"),
        ("log.csv", "24h", "1h", "must be ISO 8601"),
        ("log.csv", "+1day", "1h", "a unit of time must be"),
        ("log.csv", "+2h", "3h", "every must fit into each trajectory"),
        ("numbers.csv", "+2", "1", "times must be datetimes, as in the table of the run; they are"),
    ]:
        said = run_cli(
            "forecast", "runs/x", table, "--until", until, "--every", every, "--out", "f.csv"
        )
        assert said.code == 2
        (line,) = said.err.strip().splitlines()
        assert message in line
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "+2h", "--every", "1h", "--out", "f.csv",
        "--interval", "0.9",
    )  # fmt: skip
    assert "skipstone.calibrate" in said.err
    edit_json(Path("runs/x/config.json"), lambda config: config["data"].pop("columns"))
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "+2h", "--every", "1h", "--out", "f.csv"
    )
    assert "must have been trained on a table" in said.err


def test_numbers_as_times(log: Path) -> None:
    pl.read_csv(log).with_columns(time=pl.int_range(pl.len()).over("room")).write_csv("log.csv")
    assert fitted().code == 0
    for until in ("45", "+6"):
        said = run_cli(
            "forecast", "runs/x", "log.csv", "--until", until, "--every", "3", "--out", "f.csv"
        )
        assert said.code == 0, said.err
        found = pl.read_csv("f.csv").filter(pl.col("room") == "room 0")["time"].to_list()
        assert found == [42, 45]
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "noon", "--every", "1", "--out", "f.csv"
    )
    assert "--until must be a time such as 120" in said.err


def test_controls_are_read_and_hold(log: Path) -> None:
    pl.read_csv(log).with_columns(heater=(pl.int_range(pl.len()) // 7 % 2)).write_csv("log.csv")
    assert fitted("--controls", "heater", "--model", "rnn").code == 0
    config = Run("runs/x").config
    assert config["data"]["columns"]["controls"] == ["heater"]
    assert config["model"]["control"] == 1
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "+3h", "--every", "1h", "--out", "f.csv"
    )
    assert said.code == 0, said.err
    assert pl.read_csv("f.csv").columns == ["room", "time", "warmth", "damp"]


def test_missing_values_are_gaps_in_a_feature(log: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pl.read_csv(log)
    holes = pl.Series(rng.random(len(frame)) < 0.2)
    frame = frame.with_columns(damp=pl.when(holes).then(None).otherwise(pl.col("damp")))
    frame.write_csv("log.csv")
    said = fitted("--intervals")
    assert said.code == 0, said.err
    assert Run("runs/x").config["model"]["missing"] is True
    said = run_cli(
        "forecast", "runs/x", "log.csv", "--until", "+3h", "--every", "1h", "--interval", "0.5",
        "--out", "f.csv",
    )  # fmt: skip
    assert said.code == 0, said.err
    table = pl.read_csv("f.csv")
    assert table.select(pl.all().is_null().sum()).row(0) == (0,) * 8
    said = run_cli("compare", "log.csv", *COLUMNS, "--out", "runs/c", *QUICK)
    assert said.code == 0, said.err


def test_known_controls_reach_the_forecast(log: Path) -> None:
    frame = pl.read_csv(log, try_parse_dates=True)
    frame = frame.with_columns(heater=(pl.int_range(pl.len()) // 7 % 2).cast(pl.Float64))
    frame.write_csv("log.csv")
    assert fitted("--controls", "heater", "--model", "rnn").code == 0
    # From before the end of the log, in another order, and for some rooms longer than for others.
    later = [
        {"room": f"room {room}", "time": datetime(2026, 1, 2, 14) + timedelta(hours=h + room),
         "heater": float(h % 3)}
        for room in reversed(range(12)) for h in range(5 + room % 2)
    ]  # fmt: skip
    pl.DataFrame(later).write_csv("plan.csv")
    command = ["forecast", "runs/x", "log.csv", "--until", "+4h", "--every", "1h", "--out", "f.csv"]
    said = run_cli(*command, "--known", "plan.csv")
    assert said.code == 0, said.err
    context = TableColumns("time", ("warmth", "damp"), "room", ("heater",)).read(log)
    hours = torch.arange(1.0, 4.0, dtype=torch.float64)
    # Room r ends at 15 + r o'clock, when the plan has its second entry.
    levels = torch.tensor([2.0, 0.0, 1.0])[None, :, None].repeat(12, 1, 1)
    levels[1::2, 2] = 1.0
    longer = torch.cat([levels, levels[:, -1:]], dim=1)
    longer[1::2, 3] = 2.0
    times = context.ends[:, None] + 3600 * torch.cat([hours, torch.tensor([4.0])])
    path = load("runs/x").rollout(context.tail(4), context.ends + 4 * 3600, (times, longer))
    found, expected = pl.read_csv("f.csv"), path.to_table(every="1h")
    np.testing.assert_allclose(found["warmth"], expected["warmth"], rtol=1e-5)
    pl.DataFrame(later[:-3]).filter(pl.col("room") != "room 4").write_csv("plan.csv")
    said = run_cli(*command, "--known", "plan.csv")
    assert said.code == 2
    assert "each id must have controls; id 'room 4' has none" in said.err
    pl.DataFrame(later).filter(pl.col("time") < datetime(2026, 1, 2, 16)).write_csv("plan.csv")
    said = run_cli(*command, "--known", "plan.csv")
    assert "each id must have" in said.err


def test_a_forecast_that_does_not_reach_its_end_is_not_written(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fitted().code == 0
    monkeypatch.setattr("skipstone.models.limits.MOST_UPDATES", 2)
    words = ["forecast", "runs/x", "log.csv", "--until", "+9000h", "--every", "1h"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = run_cli(*words, "--out", "f.csv")
    assert said.code == 2
    warning, error = said.err.splitlines()
    assert warning.startswith("warning: 12 of 12 trajectories stopped after 2 updates, before")
    assert "The model's unit of time is 3600 s" in warning
    assert error.startswith("error: a prediction must reach its end; id 'room 0' ended at 2026-")
    assert not Path("f.csv").exists()


def test_places_are_tried_before_the_table_is_read(log: Path) -> None:
    Path("taken").write_text("")
    log.unlink()
    said = run_cli("fit", "log.csv", *COLUMNS, "--out", "taken/run", *QUICK)
    assert (said.code, said.out) == (2, "")
    assert "taken/run must be a place that can be written to" in said.err
    said = run_cli(
        "forecast", "x", "log.csv", "--until", "1", "--every", "1", "--out", "taken/f.csv"
    )
    assert "taken must be a place that can be written to" in said.err
