"""A browser for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; tests that ask for it are skipped where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    if binary is None:
        pytest.skip(f"no browser here: none of {', '.join(names)}")
    with sync_playwright() as driver:
        # Containers run as root, where Chromium has no sandbox; and their /dev/shm is small.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        yield driver.chromium.launch(executable_path=binary, args=flags)
