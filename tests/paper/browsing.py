"""Pages in a real browser: the screens they are looked at on, and what they must never do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

SCREENS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
        "color_scheme": "dark",
        "reduced_motion": "reduce",
    },
}

NEXT_FRAME = "new Promise(requestAnimationFrame)"


@contextmanager
def open_page(browser: Browser, file: Path, screen: str) -> Iterator[Page]:
    """A page from a file. Whatever happens to it, it must not complain, nor ask for another."""
    context = browser.new_context(**SCREENS[screen])
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url))
    page.goto(file.as_uri())
    yield page
    context.close()
    inside = (file.as_uri(), "data:", "blob:")
    assert [text for text in complaints if not text.startswith(inside)] == []
