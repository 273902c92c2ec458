"""Every script in `examples/` runs, and prints what its docstring says, up to rounding."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

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


def longer(script: Path) -> Any:
    """A script to be run as it is, in the slow tests if it takes a minute."""
    marks = pytest.mark.slow if script.stem == "learn_a_task" else ()
    return pytest.param(script, id=script.stem, marks=marks)


def test_learning_a_task_runs_briefly(tmp_path: Path) -> None:
    """With few steps and one episode, which is nothing learned but all that it does."""
    code = (ROOT / "examples" / "learn_a_task.py").read_text(encoding="utf-8")
    for usual, brief in (
        ("steps=600", "steps=4"),
        ("rollouts=300", "rollouts=12"),
        ("range(1000, 1004)", "range(1000, 1001)"),
    ):
        assert code.count(usual) == 1
        code = code.replace(usual, brief)
    script = tmp_path / "learn_a_task.py"
    script.write_text(code, encoding="utf-8")
    test_it_prints_what_it_says(script, tmp_path)


@pytest.mark.parametrize("script", [longer(script) for script in SCRIPTS])
def test_it_prints_what_it_says(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert shape_of(done.stdout) == shape_of(stated(script))
    pictures = {path.name: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert list(pictures) == (["shot.png"] if script.stem == "plan_a_shot" else [])
    assert all(size > 10_000 for size in pictures.values())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_short(script: Path) -> None:
    code = ast.parse(script.read_text(encoding="utf-8")).body[1:]
    longest = 20 if script.stem == "plan_a_shot" else 60
    assert sum(part.end_lineno - part.lineno + 1 for part in code if part.end_lineno) <= longest
