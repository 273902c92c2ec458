"""The page about planning: its numbers are the recorded ones."""

from __future__ import annotations

import json

from pages import ROOT
from skipstone.models.tensors import open_tensors
from skipstone.paper.pool.results import results_markdown

PAGE = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")


def test_numbers_on_the_page_are_the_recorded_ones() -> None:
    content = json.loads((ROOT / "results" / "planning.json").read_text(encoding="utf-8"))
    assert results_markdown(content) in PAGE
    for name, model in content["models"].items():
        for run, checksum in zip(model["runs"], model["weights_sha256"], strict=True):
            weights = ROOT / "weights" / run / "weights.safetensors"
            assert open_tensors(weights).sha256 == checksum, name
