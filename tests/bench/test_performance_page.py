"""The page about performance: its numbers are the recorded ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.report import bars_markdown

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["bench.json", "one-thread/bench.json"])
def test_every_bar_is_on_the_page_as_measured(file: str) -> None:
    content = json.loads((ROOT / "results" / file).read_text(encoding="utf-8"))
    assert not content["quick"]
    table = bars_markdown(content)
    assert table.count("\n") > 2
    assert table in PAGE
