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
from tosses import simulated_tosses

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


def briefly(name: str, folder: Path, shorter: dict[str, str]) -> Path:
    """A script that does all that it does, with less of it, which is nothing learned."""
    code = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    for usual, brief in shorter.items():
        assert code.count(usual) == 1
        code = code.replace(usual, brief)
    script = folder / f"{name}.py"
    script.write_text(code, encoding="utf-8")
    return script


def test_learning_a_task_runs_briefly(tmp_path: Path) -> None:
    shorter = {
        "steps=600": "steps=4",
        "rollouts=300": "rollouts=12",
        "range(1000, 1004)": "range(1000, 1001)",
    }
    test_it_prints_what_it_says(briefly("learn_a_task", tmp_path, shorter), tmp_path)


def test_a_cube_is_tossed_with_simulated_tosses(tmp_path: Path) -> None:
    """The real ones are not shipped."""
    simulated_tosses(10, 45).to_parquet(tmp_path / "cube_tosses.parquet")
    brief = briefly("toss_a_cube", tmp_path, {"steps=600": "steps=4"})
    test_it_prints_what_it_says(brief, tmp_path)


def test_without_its_table_the_cube_says_where_to_get_it(tmp_path: Path) -> None:
    script = ROOT / "examples" / "toss_a_cube.py"
    done = run([str(script)], tmp_path)
    assert done.returncode == 1
    assert "contact-nets" in done.stderr


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("script", [longer(each) for each in SCRIPTS if each.stem != "toss_a_cube"])
def test_it_prints_what_it_says(script: Path, tmp_path: Path) -> None:
    done = run([str(script)], tmp_path)
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
