"""The house rules that a machine can check: sizes, names, and who knows whom."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "skipstone"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_FUNCTION, LONGEST_FILE = 60, 350


def definitions(path: Path) -> list[ast.FunctionDef | ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_fit_in_the_head(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    for node in definitions(path):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize(
    "path", sorted([*SOURCE.rglob("*.h"), *SOURCE.rglob("*.cpp")]), ids=lambda path: path.name
)
def test_files_of_cpp_are_no_longer(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST_FILE
    assert max(len(line) for line in lines) <= 100


def test_a_class_name_means_one_thing() -> None:
    names = Counter(
        node.name
        for path in MODULES
        for node in definitions(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_public_function_name_means_one_thing() -> None:
    names = Counter()
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        names.update(name for name in top if not name.startswith("_"))
    # A command is named like what it does.
    commands = {"evaluate", "fit", "main"}
    assert [name for name, count in names.items() if count > 1 and name not in commands] == []


def test_only_models_and_the_paper_know_a_model_by_name() -> None:
    for path in MODULES:
        room = path.relative_to(SOURCE).parts[0]
        if room not in ("models", "paper"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\bPCODE\b|[\"']pcode[\"']", text), path


def test_a_path_is_one_kind_of_path_in_a_module() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        both = "from pathlib import Path" in text and re.search(
            r"from skipstone\.path import .*\bPath\b", text
        )
        assert not both, path
