"""The table of latencies: on the guide as it was recorded, and nothing before that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.latency import CONTENDERS, GUIDE, RECORD, ROOT, filled_guide, latency_markdown

ROW = {
    "model": "RNN",
    "batch": 7,
    "milliseconds": {kind: [1.0, 2.0, 3.5] for kind in CONTENDERS},
}


def test_the_guide_shows_what_was_recorded() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert filled_guide(text, RECORD) == text


def test_a_record_fills_the_slot_and_nothing_else(tmp_path: Path) -> None:
    text = "before\n<!-- latency -->\nold\n<!-- end of latency -->\nafter\n"
    record = tmp_path / "latency.json"
    empty = filled_guide(text, record)
    assert "old" not in empty
    assert "Not recorded yet" in empty
    record.write_text(json.dumps({"rows": [ROW]}))
    filled = filled_guide(empty, record)
    table = latency_markdown({"rows": [ROW]})
    assert "| RNN | 7 | 2 (1 to 3.5) |" in table
    assert filled == f"before\n<!-- latency -->\n\n{table}\n<!-- end of latency -->\nafter\n"
    assert filled_guide(filled, record) == filled


@pytest.mark.slow
def test_it_runs() -> None:
    before = RECORD.exists(), GUIDE.read_text(encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.latency", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| PC-ODE", "| RNN"))]
    assert len(rows) == 8
    assert (RECORD.exists(), GUIDE.read_text(encoding="utf-8")) == before
