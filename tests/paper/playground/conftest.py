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


@pytest.fixture(params=list(SCREENS))
def page(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Page]:
    """The open page, on a desktop and on a phone."""
    with open_page(browser, page_file, request.param) as page:
        yield page


@pytest.fixture(scope="module")
def calculator(browser: Browser, page_file: Path) -> Iterator[Page]:
    """One open page for tests that only compute with its scripts."""
    with open_page(browser, page_file, "desktop") as page:
        yield page
