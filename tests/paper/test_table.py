"""The table says what its runs measured, and puts the paper's number beside it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from scripted import about, measured

from skipstone.paper.table import COLUMNS, table_csv, table_markdown, table_rows

UNKNOWN = {"value": None, "low": None, "high": None}


def cell(row: list[str], column: str) -> str:
    return row[COLUMNS.index(column)]


def test_a_row_holds_ours_and_the_papers(tmp_path: Path) -> None:
    (row,) = table_rows([measured(tmp_path, mse=4.4e-5, step=5.0)])
    assert row[:3] == ["billiards1d", "PC-ODE", "1"]
    assert row[3:9] == ["4.40e-6", "2.93e-5", "4.40e-5", "4.37e-5", "5", "5.1"]
    assert row[9:11] == ["5 (4.5–5.5)", "20 (18–22)"]
    assert row[11:16] == ["8", "", "", "4", "51.2"]
    assert row[16:] == ["128", str(measured(tmp_path / "again").budget[1]), "1.5"]


def test_seeds_are_averaged_with_their_range(tmp_path: Path) -> None:
    runs = [
        measured(tmp_path, "RNN", "circles", mse=error, seed=seed)
        for seed, error in enumerate([1e-4, 3e-4])
    ]
    runs[1].evaluation["valid_times"][0]["time"] = about(7.0)
    (row,) = table_rows(runs)
    assert cell(row, "seeds") == "2"
    assert cell(row, "sample MSE") == "2.00e-4 (1.00e-4–3.00e-4)"
    assert cell(row, "valid time, 5 %") == "6 (5–7)"


def test_a_rollout_that_stays_close_is_valid_for_longer_than_was_measured(tmp_path: Path) -> None:
    run = measured(tmp_path)
    run.evaluation["valid_times"][1]["lasting"] = about(0.6)
    (row,) = table_rows([run])
    assert (cell(row, "valid time, 5 %"), cell(row, "valid time, 20 %")) == ("5 (4.5–5.5)", ">20")
    # Evaluations from before valid times were measured.
    del run.evaluation["valid_times"]
    (row,) = table_rows([run])
    assert cell(row, "valid time, 5 %") == ""
    assert "valid_time_5,valid_time_5_low" in table_csv([run])


def test_order_is_the_papers_and_studies_stay_out(tmp_path: Path) -> None:
    runs = [
        measured(tmp_path, "PC-ODE", "shots"),
        measured(tmp_path, "PC-ODE", "circles"),
        measured(tmp_path, "PC-ODE", "circles", hidden=16),
        measured(tmp_path, "PC-ODE", "lines"),
        measured(tmp_path, "ODE-RNN", "lines"),
        measured(tmp_path, "latent ODE", "lines"),
        measured(tmp_path, "PC-ODE", "lines", options={"target_step": None}),
        measured(tmp_path, "PC-ODE", "lines", options={"target_step": 2.5}),
    ]
    rows = table_rows(runs)
    assert [row[:2] for row in rows] == [
        ["lines", "latent ODE"],
        ["lines", "ODE-RNN"],
        ["lines", "PC-ODE"],
        ["lines", "PC-ODE, target step 2.5"],
        ["circles", "PC-ODE"],
        ["shots", "PC-ODE"],
    ]
    # What the paper does not have is left empty.
    assert [row[6] for row in rows] == ["", "1.79e-7", "2.19e-7", "2.19e-7", "5.25e-4", ""]
    lines = table_markdown(runs).splitlines()
    assert len(lines) == 2 + len(rows)
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}


def test_the_frontier_says_how_many_updates_the_rnns_error_takes(tmp_path: Path) -> None:
    small: dict[str, Any] = {"hidden": 64, "steps": 1500}
    runs = [measured(tmp_path), measured(tmp_path, "RNN")]
    runs += [measured(tmp_path, "RNN", mse=1e-4, **small)]
    for step, mse in ((2.0, 1e-5), (8.0, 1e-3)):
        options = {"target_step": step}
        runs.append(measured(tmp_path, mse=mse, step=step, options=options, **small))
    rnn, pcode = table_rows(runs)
    # Half-way between 20 and 5 updates, and between 1e-5 and 1e-3, both on logarithmic scales.
    assert cell(pcode, "updates at the RNN's error") == "10"
    assert cell(rnn, "updates at the RNN's error") == ""


def test_the_file_has_every_run_in_full(tmp_path: Path) -> None:
    runs = [
        measured(tmp_path, "RNN", "lines", mse=error, seed=seed)
        for seed, error in enumerate([1.23456789e-8, 2e-8])
    ]
    first, second = csv.DictReader(io.StringIO(table_csv(runs)))
    assert float(first["sample_mse"]) == 1.23456789e-8
    assert float(first["sample_mse_paper"]) == 1.39e-7
    assert (second["seed"], second["weights_sha256"], second["commit"]) == ("1", "00ff", "c0ffee")
    assert [float(first[f"valid_time_20{end}"]) for end in ("_low", "", "_high")] == pytest.approx(
        [18, 20, 22]
    )
    assert float(first["never_missed_5"]) == 0.05


def test_a_table_of_nothing_is_empty() -> None:
    assert table_rows([]) == []
    assert table_markdown([]).count("\n") == 2
    assert table_csv([]) == "task\n"


def test_a_model_that_diverged_has_no_error(tmp_path: Path) -> None:
    run = measured(tmp_path, "RNN", "lines")
    run.evaluation["sample_mse"] = UNKNOWN
    (row,) = table_rows([run])
    assert cell(row, "sample MSE") == "–"


def test_seeds_that_diverged_are_not_hidden(tmp_path: Path) -> None:
    runs = [measured(tmp_path, "RNN", "lines", seed=seed) for seed in (0, 1, 2)]
    runs[1].evaluation["sample_mse"] = UNKNOWN
    (row,) = table_rows(runs)
    assert cell(row, "seeds") == "2 of 3"
