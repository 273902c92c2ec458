"""Every script in `examples/` runs, and prints what its docstring says, up to rounding."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pages import ROOT, shape_of

SCRIPTS = sorted(ROOT.glob("examples/*.py"))


def stated(script: Path) -> str:
    """The indented part of a script's docstring: what it prints."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    lines = [line for line in docstring.splitlines() if line.startswith("    ")]
    return textwrap.dedent("\n".join(lines))


def test_there_are_enough_to_learn_from() -> None:
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_prints_what_it_says(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert shape_of(done.stdout) == shape_of(stated(script))


def test_a_planned_shot_takes_twenty_lines_and_leaves_a_picture(tmp_path: Path) -> None:
    script = ROOT / "examples" / "plan_a_shot.py"
    code = ast.parse(script.read_text(encoding="utf-8")).body[1:]
    assert sum(part.end_lineno - part.lineno + 1 for part in code if part.end_lineno) <= 20
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "shot.png").stat().st_size > 10_000
