"""The table says what its runs measured, and puts the paper's number beside it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from scripted import run_config, run_result

from skipstone.paper.jobs import Job
from skipstone.paper.measured import Measured
from skipstone.paper.table import COLUMNS, table_csv, table_markdown, table_rows
from skipstone.records import write_sealed
from skipstone.training.run import Run


def _estimate(value: float) -> dict[str, float]:
    return {"value": value, "low": 0.9 * value, "high": 1.1 * value}


def _measured(
    root: Path, task: str, kind: str, sample_mse: float, *, seed: int = 0, hidden: int = 128
) -> Measured:
    folder = root / f"{task}-{kind}-{hidden}-{seed}"
    options = {"hidden": hidden} if hidden != 128 else {}
    config = run_config(Job(task=task, model=kind, seed=seed, options=options))
    seal = write_sealed(folder / "config.json", json.loads(json.dumps(config)))
    write_sealed(folder / "result.json", run_result(seal))
    evaluation: dict[str, Any] = {
        "test_mse": _estimate(2e-5),
        "sample_mse": _estimate(sample_mse),
        "mean_step": _estimate(5.0),
        "updates": _estimate(8.2),
        "function_evaluations": _estimate(0.0),
        "wall_times": [{"batch": 1, "seconds": _estimate(0.004)}],
    }
    return Measured(Run(folder), evaluation)


def test_a_row_holds_ours_and_the_papers(tmp_path: Path) -> None:
    (row,) = table_rows([_measured(tmp_path, "billiards1d", "pcode", 4.4e-5)])
    cells = dict(zip(COLUMNS[:4], row[:4], strict=True))
    assert cells == {
        "task": "billiards1d",
        "model": "PC-ODE",
        "seeds": "1",
        "test MSE": "2.00e-5",
    }
    assert row[4:9] == ["2.93e-5", "4.40e-5", "4.37e-5", "5", "5.1"]
    assert row[9:] == ["8.2", "", "4", "", "128", "1.5"]


def test_seeds_are_averaged_with_their_range(tmp_path: Path) -> None:
    runs = [
        _measured(tmp_path, "circles", "rnn", error, seed=seed)
        for seed, error in enumerate([1e-4, 3e-4])
    ]
    (row,) = table_rows(runs)
    assert row[2] == "2"
    assert row[5] == "2.00e-4 (1.00e-4–3.00e-4)"


def test_order_is_the_papers_and_studies_stay_out(tmp_path: Path) -> None:
    runs = [
        _measured(tmp_path, "circles", "pcode", 1e-4),
        _measured(tmp_path, "circles", "pcode", 1e-4, hidden=16),
        _measured(tmp_path, "lines", "pcode", 1e-4),
        _measured(tmp_path, "lines", "odernn", 1e-4),
        _measured(tmp_path, "shots", "pcode", 1e-4),
    ]
    rows = table_rows(runs)
    assert [row[:2] for row in rows] == [
        ["lines", "ODE-RNN"],
        ["lines", "PC-ODE"],
        ["circles", "PC-ODE"],
    ]
    lines = table_markdown(runs).splitlines()
    assert len(lines) == 2 + len(rows)
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}


def test_the_file_has_every_run_in_full(tmp_path: Path) -> None:
    runs = [
        _measured(tmp_path, "lines", "rnn", error, seed=seed)
        for seed, error in enumerate([1.23456789e-8, 2e-8])
    ]
    first, second = csv.DictReader(io.StringIO(table_csv(runs)))
    assert float(first["sample_mse"]) == 1.23456789e-8
    assert float(first["sample_mse_paper"]) == 1.39e-7
    assert (second["seed"], second["weights_sha256"], second["commit"]) == ("1", "00ff", "c0ffee")


def test_a_table_of_nothing_is_empty(tmp_path: Path) -> None:
    shots = [_measured(tmp_path, "shots", "pcode", 1e-4)]
    assert table_rows(shots) == []
    assert table_markdown(shots).count("\n") == 2
    assert table_csv(shots) == "task\n"


def test_a_model_that_diverged_has_no_error(tmp_path: Path) -> None:
    run = _measured(tmp_path, "lines", "rnn", 1e-4)
    run.evaluation["sample_mse"] = {"value": None, "low": None, "high": None}
    (row,) = table_rows([run])
    assert row[5] == "–"


def test_seeds_that_diverged_are_not_hidden(tmp_path: Path) -> None:
    runs = [_measured(tmp_path, "lines", "rnn", 1e-3, seed=seed) for seed in (0, 1, 2)]
    runs[1].evaluation["sample_mse"] = {"value": None, "low": None, "high": None}
    (row,) = table_rows(runs)
    assert row[COLUMNS.index("seeds")] == "2 of 3"
