"""The documentation as a site: it builds without a warning, carries all it needs, can be searched.

Building takes seconds. Where zensical is not installed (extra `site`) these tests are skipped.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

import skipstone
from pages import ROOT, python_blocks
from website.__main__ import build
from website.stage import stage

PLANNED = {"deployment.md", "integrations.md", "promises.md"}
"""Pages with a place in the navigation before they are written."""


class Addresses(HTMLParser):
    """What a page links to, what it loads, and the places in it that links can point to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        loads = "src" in found or (tag == "link" and found.get("rel") in ("stylesheet", "icon"))
        for name in ("src", "href"):
            if name in found:
                (self.loads if loads else self.links).append(found[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A warning of the builder is an error."""
    _require("site", "zensical", "mkdocstrings_handlers.python")
    return build(tmp_path_factory.mktemp("site") / "build").parent


def _require(extra: str, *modules: str) -> None:
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            pytest.skip(f"{module} is not installed; it comes with the extra `{extra}`")


@functools.cache
def addresses(page: Path) -> Addresses:
    return Addresses(page)


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    checked = 0
    for page in pages:
        if "files" in page.relative_to(site).parts or page.name == "404.html":
            continue
        for link in addresses(page).links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.relative_to(site)} links to {link}"
            if parts.fragment and target.suffix == ".html":
                anchors = addresses(target).anchors
                assert unquote(parts.fragment) in anchors, f"{page.name} links to {link}"
            checked += 1
    assert checked > 1000


def test_mkdocs_material_makes_the_same_pages_of_the_same_file(site: Path) -> None:
    _require("dev", "material", "mkdocstrings_handlers.python")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "material"]
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    built = subprocess.run(
        command, cwd=site.parent, env=os.environ | quiet, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    other = site.parent / "material"
    names = [{page.relative_to(one) for page in one.rglob("*.html")} for one in (site, other)]
    assert names[0] == names[1]
    for page in ("index.html", "api.html"):
        assert addresses(other / page).anchors >= {"__search", "__palette_1"}
    headings = [addresses(one / "api.html").anchors for one in (site, other)]
    assert {name for name in headings[0] if name.startswith("skipstone.")} <= headings[1]
    loads_nothing_from_outside(other)


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    loads_nothing_from_outside(site)


def loads_nothing_from_outside(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = addresses(page)
        assert [one for one in found.loads if urlsplit(one).scheme not in ("", "data")] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?https?:", sheet.read_text(encoding="utf-8"))


def test_the_reference_has_every_public_name(site: Path) -> None:
    headings = addresses(site / "api.html").anchors
    names = {anchor.rpartition(".")[2] for anchor in headings}
    modules = {"planning", "testing"}
    assert set(dir(skipstone)) - modules <= names
    assert any(anchor.endswith("PCODEConfig.tolerance") for anchor in headings)


def test_links_out_of_the_folder_have_a_place(site: Path) -> None:
    assert (site / "files" / "results" / "paper" / "playground.html").is_file()
    assert (site / "files" / "results" / "ideas" / "line-search.svg").is_file()
    source = (site / "source" / "src" / "skipstone" / "models" / "loop.py.html").read_text()
    assert "TeacherForcing" in source


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Silent, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_site_is_searched_and_turns_dark_without_the_outside(served: str) -> None:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if binary is None:
        pytest.skip("no browser here")
    with sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=binary, args=flags)
        page = browser.new_page(color_scheme="dark")
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url))
        page.goto(f"{served}/index.html")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", dark)[:3])) < 80
        page.keyboard.press("Control+k")
        page.keyboard.type("tolerance")
        page.get_by_role("link", name=re.compile("tolerance", re.I)).first.wait_for()
        assert [
            text for text in complaints if not text.startswith((served, "data:", "blob:"))
        ] == []
        browser.close()


def test_the_navigation_names_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"^ *- [^:\n]+: (\S+\.md)$", text, re.MULTILINE))
    pages = {page.name for page in ROOT.glob("docs/*.md")}
    assert pages <= named
    assert {page for page in named if "/" not in page} - pages <= PLANNED


def test_pictures_come_from_results() -> None:
    for page in ROOT.glob("docs/*.md"):
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert picture.startswith("../results/"), f"{page.name} shows {picture}"


def test_pages_that_are_not_written_yet_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "docs", root / "docs")
    (root / "docs" / "planning.md").unlink()
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml"):
        shutil.copyfile(ROOT / name, root / name)
    text = stage(tmp_path / "build", root).read_text(encoding="utf-8")
    assert "planning.md" not in text
    assert "own-data.md" in text


def test_code_is_staged_as_it_is_and_links_are_moved(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    for folder in ("docs", "src", "results"):
        (root / folder).mkdir(parents=True)
    (root / "results" / "c.png").write_bytes(b"a picture")
    (root / "src" / "a.py").write_text("x = [1](2)\n")
    links = "[code](../src/a.py#x) [folder](../src) [page](b.md)\n"
    code = "\n```python\n[kept](../src/a.py)\n```\n"
    (root / "docs" / "index.md").write_text(f"{links}{code}\n<!-- api: a.b c.d -->\n")
    (root / "docs" / "b.md").write_text("[up](../README.md) ![shot](../results/c.png)\n")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml"):
        (root / name).write_text("[docs](docs/index.md)\n")
    stage(tmp_path / "build", root)
    staged = tmp_path / "build" / "docs"
    text = (staged / "index.md").read_text()
    assert "[code](source/src/a.py.md#x) folder [page](b.md)" in text
    assert "[kept](../src/a.py)" in text
    assert "::: a.b\n\n::: c.d\n" in text
    assert "x = [1](2)" in (staged / "source" / "src" / "a.py.md").read_text()
    moved = "[up](project/readme.md) ![shot](files/results/c.png)\n"
    assert (staged / "b.md").read_text() == moved
    assert (staged / "files" / "results" / "c.png").read_bytes() == b"a picture"
    assert (staged / "project" / "readme.md").read_text() == "[docs](../index.md)\n"


def test_the_first_page_has_the_ten_lines_of_the_readme() -> None:
    first, readme = (python_blocks(ROOT / name)[0] for name in ("docs/start.md", "README.md"))
    assert (first.code, first.printed) == (readme.code, readme.printed)
    assert len(first.code.splitlines()) <= 14
