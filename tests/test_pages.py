"""The documentation: every example runs and prints what the page says, and every link leads on."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any, cast

import platformdirs
import pytest
import typer

from pages import ROOT, python_blocks, run_markdown_blocks, shape_of
from skipstone.cli import app
from skipstone.models.registry import MODELS
from skipstone.paper.tasks import TASKS

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
# Its examples read a file, which a test of its own writes first.
NEEDS_A_FILE = ROOT / "docs" / "own-data.md"
# What pages need that is in an extra of its own.
EXTRAS = {
    "integrations.md": ("sktime",),
    "deployment.md": ("onnxscript", "onnxruntime", "fastapi", "httpx"),
}
# Its example is the README's, as a test of the site says.
AS_README = ROOT / "docs" / "start.md"
RUN = [page for page in PAGES if python_blocks(page) and page not in (NEEDS_A_FILE, AS_README)]


@pytest.mark.parametrize("page", RUN, ids=str)
def test_examples_run_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for extra in EXTRAS.get(page.name, ()):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    for registry in (MODELS, TASKS):  # What a page registers is forgotten.
        monkeypatch.setattr(registry, "_things", dict(registry))
    run_markdown_blocks(page)


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https:)([^)#:]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def commands(page: Path) -> list[list[str]]:
    """The commands of a page's indented blocks, without comments and settings of the shell."""
    lines = re.findall(r"^    (\S.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = [shlex.split(re.sub(r"^([A-Z_]+=\S+ )+", "", line), comments=True) for line in lines]
    return [each for each in words if each and "…" not in each]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=str)
def test_commands_exist_with_their_options(page: Path) -> None:
    # They are parsed, not run: some take hours.
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    group = typer.main.get_command(app)
    for program, *words in commands(page):
        if program == "skipstone":
            words = words[2:] if words[0] == "--import" else words
            context = group.make_context(program, [], resilient_parsing=True)
            found = cast(Any, group).get_command(context, words[0])
            assert found is not None, words
            found.make_context(words[0], words[1:], parent=context).close()
        elif program == "make":
            assert words[0] in targets, words
        elif program.endswith("python") and words[0] == "-m":
            assert importlib.util.find_spec(words[1]) is not None, words
        elif program.endswith("python"):
            assert (ROOT / words[0]).exists(), words


def test_commands_of_pages_are_found() -> None:
    found = [words[0] for page in PAGES for words in commands(page)]
    assert found.count("skipstone") > 20
    assert found.count("make") > 5


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "index.md" or f"({page.name})" in index


@pytest.mark.parametrize(
    ("page", "example", "longest"), [("own-model", "own_model", 40), ("own-task", "own_task", 30)]
)
def test_an_own_model_and_an_own_task_are_short(page: str, example: str, longest: int) -> None:
    block = python_blocks(ROOT / "docs" / f"{page}.md")[0]
    assert len(block.code.splitlines()) <= longest
    # The page shows a part of the example, which has a docstring and a main part besides.
    script = (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")
    for line in block.code.splitlines():
        assert line in script, line


def test_output_is_compared_by_its_shape() -> None:
    assert shape_of("error 1.5e-05,  [ 0.1 -2.]") == shape_of("error 2e-4, [0.23 1.0]\n")
    assert shape_of("error 1") != shape_of("errors 1")
    assert shape_of("1 2") != shape_of("1 2 3")
