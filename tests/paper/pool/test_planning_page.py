"""The page about planning: its examples run as written, and its numbers are the recorded ones."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from skipstone.paper.pool.results import results_markdown
from skipstone.training.run import sha256

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["planner", "search", "own", "table", "score"])
def test_examples_run_as_written(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "planning.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out


def test_numbers_on_the_page_are_the_recorded_ones() -> None:
    content = json.loads((ROOT / "results" / "planning.json").read_text(encoding="utf-8"))
    assert results_markdown(content) in PAGE
    for name, model in content["models"].items():
        weights = ROOT / "weights" / model["run"] / "weights.safetensors"
        assert sha256(weights) == model["weights_sha256"], name


def test_the_example_plans_a_shot_in_twenty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "examples" / "plan_a_shot.py"
    lines = [line for line in script.read_text().splitlines() if line.strip()]
    assert len(lines) <= 21  # the docstring, and twenty
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert "updates a rollout" in capsys.readouterr().out
    assert (tmp_path / "shot.png").stat().st_size > 10_000
