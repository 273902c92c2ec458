"""The first screen of the report: every number in it is that of a run or the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import measured

from skipstone.paper.findings import findings_of, findings_table, summary_of
from skipstone.paper.measured import Measured


def test_the_pcode_stands_beside_the_rnn_and_the_paper(tmp_path: Path) -> None:
    runs = [
        measured(tmp_path, step=5.0, mse=4e-5),
        measured(tmp_path, step=8.0, mse=6e-5, options={"target_step": 8.0}),
        measured(tmp_path, "RNN", step=1.0, mse=5e-5),
        measured(tmp_path, "PC-ODE", "shots", step=2.0, mse=3e-2),
        measured(tmp_path, "RNN", "shots", step=1.0, mse=1e-2),
        measured(tmp_path, "PC-ODE", "lines"),  # Without an RNN.
    ]
    table = findings_table(findings_of(runs))
    assert table is not None
    assert sum(width for _, width in table.groups) == len(table.columns)
    assert table.rows == [
        # The paper's step of 5.1, over the three observations of a scripted run.
        ["billiards1d", "4.00e-5", "5.00e-5", "4.37e-5", "8", "40", "1", "0.2", "1"],
        [
            *("billiards1d, target step 8", "6.00e-5", "5.00e-5", "4.37e-5"),
            *("5", "40", "1", "0.125", "1"),
        ],
        ["shots", "0.03", "0.01", "–", "20", "40", "–", "0.5", "1"],
    ]
    said = summary_of(findings_of(runs))[0]
    assert "2 to 8 times fewer updates" in said
    assert "0.8 to 3 times the RNN's, and below the paper's in 1 of 2 rows." in said


def test_a_wider_pcode_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(run: Measured) -> int:
        return 192 if run.model == "PC-ODE" and run.task != "shots" else 128

    monkeypatch.setattr(Measured, "hidden", property(hidden))
    runs = [
        measured(tmp_path, model, task)
        for task in ("billiards1d", "billiards2d", "shots")
        for model in ("PC-ODE", "RNN")
    ]
    table = findings_table(findings_of(runs))
    assert table is not None
    told = "On billiards1d and billiards2d the PC-ODE has 192 units, the RNN 128."
    assert table.caption.endswith(told)
    assert "than an RNN trained as long." in summary_of(findings_of(runs))[0]
    assert "same size" in summary_of(findings_of(runs[-2:]))[0]


def test_without_a_comparison_there_is_still_an_introduction(tmp_path: Path) -> None:
    alone = [measured(tmp_path)]
    assert findings_table(findings_of(alone)) is None
    assert "times fewer" not in " ".join(summary_of(findings_of(alone)))
    lost = [*alone, measured(tmp_path, "RNN")]
    lost[1].evaluation["sample_mse"] = {"value": None, "low": None, "high": None}
    assert findings_of(lost) == []
