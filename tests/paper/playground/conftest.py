"""The playground with the shipped weights, in a file and in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import SCREENS, open_page
from playwright.sync_api import Browser, Page

from pages import ROOT
from skipstone.paper.playground import find_players, write_playground
from skipstone.training.run import list_runs


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("playground") / "playground.html"
    write_playground(file, find_players(list_runs(ROOT / "weights")))
    return file


@pytest.fixture(scope="module", params=list(SCREENS))
def screen(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Page]:
    with open_page(browser, page_file, request.param) as page:
        yield page


RESET = """() => {
    document.getElementById("arena-tab").click();
    const { arena, pool } = playground;
    arena.ahead = arena.slider.value = arena.scene.ahead;
    for (const game of [arena, pool]) game.setup.set(game.scene.start);
    pool.score = { you: [0, 0], model: [0, 0] };
}"""


@pytest.fixture
def page(screen: Page) -> Page:
    """The page as it opens, on a desktop and on a phone. Opening it takes longer than a test."""
    screen.evaluate(RESET)
    return screen


@pytest.fixture(scope="module")
def calculator(browser: Browser, page_file: Path) -> Iterator[Page]:
    """One open page for tests that only compute with its scripts."""
    with open_page(browser, page_file, "desktop") as page:
        yield page
