"""The page about training: its examples run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["fit", "grid"])
def test_examples_run_as_written(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "training.md", "exec"), {})
    # Both print a name or an error, and end with a run below "runs".
    assert capsys.readouterr().out
    assert list(tmp_path.glob("runs/*/weights.safetensors"))
