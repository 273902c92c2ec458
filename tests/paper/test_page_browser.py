"""The report page: what a browser makes of it, on a desktop and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest
from page_stubs import EXAMPLES, write_stub_page
from playwright.sync_api import Browser, Page, sync_playwright

from skipstone.drawing.style import PALETTE

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


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stub_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    if binary is None:
        pytest.skip(f"no browser here: none of {', '.join(names)}")
    with sync_playwright() as driver:
        # Containers run as root, where Chromium has no sandbox; and their /dev/shm is small.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        yield driver.chromium.launch(executable_path=binary, args=flags)


@pytest.fixture(params=list(SCREENS))
def page(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Page]:
    """The open page. Whatever happens to it, it must not complain, nor ask for another file."""
    context = browser.new_context(**SCREENS[request.param])
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url))
    page.goto(page_file.as_uri())
    yield page
    context.close()
    inside = (page_file.as_uri(), "data:", "blob:")
    assert [text for text in complaints if not text.startswith(inside)] == []


def lit(page: Page, model: str) -> list[bool]:
    """Of all updates of a model, which are lit."""
    ticks = page.locator(f'[data-model="{model}"] .tick')
    return ticks.evaluate_all("ticks => ticks.map(tick => tick.classList.contains('lit'))")


def image_of(page: Page, selector: str) -> np.ndarray:
    return iio.imread(page.locator(selector).screenshot(), extension=".png")[..., :3].astype(int)


def test_what_was_found_is_on_the_first_screen(page: Page) -> None:
    card = page.locator(".top .card")
    height = page.evaluate("innerHeight")
    box = card.bounding_box()
    assert box is not None
    if page.evaluate("innerWidth") > 1000:
        assert box["y"] + box["height"] < height
    else:
        assert box["y"] < height  # On a phone it begins there.


def test_it_plays_and_scrubs(page: Page) -> None:
    page.evaluate("viewer.seek(0)")
    assert lit(page, "RNN") == [False] * 5
    page.locator(".play").click()
    page.evaluate(f"async () => {{ while (viewer.time() < 0.02) await {NEXT_FRAME}; }}")
    page.locator(".play").click()
    stopped = page.evaluate("viewer.time()")
    page.wait_for_timeout(100)
    assert page.evaluate("viewer.time()") == stopped
    page.evaluate("viewer.seek(1.29)")
    assert lit(page, "PC-ODE") == [True, False]
    assert lit(page, "RNN") == [True] * 3 + [False] * 2
    page.locator(".scrubber").fill("2")
    assert lit(page, "PC-ODE") == [True] * 2
    assert lit(page, "RNN") == [True] * 5
    assert "5 of 5 updates" in page.locator('[data-model="RNN"]').inner_text()


def test_playing_ends_at_the_end_and_starts_again(page: Page) -> None:
    page.evaluate("viewer.seek(1.97)")
    page.locator(".speed select").select_option("2")
    page.evaluate("viewer.play()")
    page.wait_for_selector("#viewer:not(.playing)")
    assert page.evaluate("viewer.time()") == 2
    page.evaluate("viewer.play()")
    assert page.evaluate("viewer.time()") < 1


def test_keys_play_and_step(page: Page) -> None:
    page.evaluate("viewer.seek(1.1)")
    page.locator(".scrubber").focus()
    for key, time in [("ArrowLeft", 1.0), ("ArrowLeft", 0.75), ("ArrowRight", 1.0)]:
        page.keyboard.press(key)
        assert page.evaluate("viewer.time()") == time
    page.keyboard.press(" ")
    assert page.locator(".play").get_attribute("aria-label") == "Pause"
    page.keyboard.press(" ")
    assert page.locator(".play").get_attribute("aria-label") == "Play"


def test_the_space_bar_plays_after_a_task_was_clicked(page: Page) -> None:
    page.locator(".tasks button").last.click()
    page.keyboard.press(" ")
    assert page.locator(".play").get_attribute("aria-label") == "Pause"


def test_every_task_fits_on_the_screen_and_is_drawn(page: Page) -> None:
    for example in EXAMPLES:
        page.locator(".tasks button", has_text=example.task).click()
        assert page.locator(".panel").count() == 1 + len(example.predictions)
        for time in (0.1, 1.3, 2):
            page.evaluate(f"viewer.seek({time})")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for index in range(1 + len(example.predictions)):
            picture = image_of(page, f".panels canvas >> nth={index}")
            # Without its frame, which the style sheet draws.
            edge = len(picture) // 10
            assert np.ptp(picture[edge:-edge, edge:-edge]) > 60


def test_what_has_no_size_yet_is_painted_once_it_has(page: Page) -> None:
    grid = "document.querySelector('.panels')"
    page.evaluate(f"{grid}.style.display = 'none'")
    page.evaluate("viewer.select(0)")
    page.evaluate(f"{grid}.style.display = ''")
    page.evaluate(f"async () => {{ await {NEXT_FRAME}; await {NEXT_FRAME}; }}")
    assert len(np.unique(image_of(page, ".panels canvas >> nth=0") @ [1, 256, 65536])) > 50


def test_models_have_their_colours_and_films_their_top_on_top(page: Page) -> None:
    if page.evaluate("matchMedia('(prefers-color-scheme: light)').matches"):
        wanted = [int(PALETTE[0][i : i + 2], 16) for i in (1, 3, 5)]
        picture = image_of(page, '[data-model="PC-ODE"] .picture')
        assert (abs(picture - wanted).max(axis=-1) <= 3).sum() > 20
    page.evaluate("viewer.select('pixels2d')")
    picture = image_of(page, '[data-model="RNN"] .picture')
    high, low = picture[len(picture) // 4], picture[-len(picture) // 4]
    # At the end truth is half as bright as white, and this model sees 80 % of it.
    assert np.median(high) == pytest.approx(0.4 * 255, abs=2)
    assert np.median(low) == 0
