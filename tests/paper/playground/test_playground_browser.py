"""The playground: what visitors can do with it, on a desktop and on a phone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from browsing import NEXT_FRAME
from playwright.sync_api import Page

from skipstone.paper.tasks.shots import POCKET_RADIUS, play, pocket_distance

IDLE = f"async () => {{ while (playground.arena.busy !== false) await {NEXT_FRAME}; }}"
QUICK = {"rollouts": 8, "rounds": 2, "elite": 2, "width": 0.1, "shrink": 0.5}

READABLE = """() => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const paint = (layers) => {
        for (const layer of layers) { pen.fillStyle = layer; pen.fillRect(0, 0, 1, 1); }
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const linear = (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.map((x) => linear(x / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const poor = [];
    let count = 0;
    while (words.nextNode()) {
        const holder = words.currentNode.parentElement;
        const text = words.currentNode.textContent.trim();
        if (!text || ["SCRIPT", "NOSCRIPT", "OPTION"].includes(holder.tagName)) continue;
        if (!holder.checkVisibility({ visibilityProperty: true })) continue;
        const under = [];
        for (let at = holder; at; at = at.parentElement)
            under.unshift(getComputedStyle(at).backgroundColor);
        const ground = light(paint(["white", ...under]));
        const ink = light(paint([getComputedStyle(holder).color]));
        const ratio = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        count += 1;
        if (ratio < 4.5) poor.push(`${text}: ${ratio.toFixed(2)}`);
    }
    return { count, poor };
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input, select, canvas, [role]")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => {
        const by = one.getAttribute("aria-labelledby");
        const named = by && document.getElementById(by)?.textContent;
        const label = one.labels?.[0]?.textContent;
        return !(one.getAttribute("aria-label") || named || label || one.textContent).trim();
    })
    .map((one) => one.outerHTML.slice(0, 80))"""


def balls(page: Page, game: str = "arena") -> list[dict[str, list[float]]]:
    return page.evaluate(f"playground.{game}.setup.balls")


def drag(page: Page, selector: str, by: tuple[float, float]) -> None:
    """Drag a handle by so many widths of the table: with a finger where there is touch."""
    handle = page.locator(selector)
    handle.evaluate("one => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = handle.bounding_box()
    table = page.locator("section:not([hidden]) .table").bounding_box()
    assert box is not None
    assert table is not None
    start = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    way = [
        (start[0] + share * by[0] * table["width"], start[1] - share * by[1] * table["height"])
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    if not page.evaluate("navigator.maxTouchPoints"):
        page.mouse.move(*way[0])
        page.mouse.down()
        for point in way:
            page.mouse.move(*point)
        page.mouse.up()
        return
    touch = page.context.new_cdp_session(page)
    for i, (x, y) in enumerate(way):
        kind = "touchMove" if i else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_balls_are_dragged_and_stay_on_the_table(page: Page) -> None:
    before = balls(page)
    drag(page, ".ball-handle >> nth=0", (-0.15, -0.2))
    place = balls(page)[0]["position"]
    wanted = [before[0]["position"][0] - 0.15, before[0]["position"][1] - 0.2]
    assert place == pytest.approx(wanted, abs=0.02)
    assert balls(page)[1] == before[1]
    # Into the wall, and into the other ball.
    drag(page, ".ball-handle >> nth=0", (-0.4, 0.0))
    assert balls(page)[0]["position"][0] == 0.1
    drag(page, ".ball-handle >> nth=1", (-0.66, -0.1))
    one, two = (np.array(ball["position"]) for ball in balls(page))
    assert np.linalg.norm(one - two) >= 0.2


def test_an_arrow_turns_and_keeps_the_speed_of_training(page: Page) -> None:
    drag(page, "#arena .arrow-handle >> nth=0", (0.3, 0.1))
    for ball in balls(page):
        assert math.hypot(*ball["velocity"]) == pytest.approx(1)
    assert balls(page)[0]["velocity"][0] > 0.3
    page.locator("#pool-tab").click()
    for by, speed in [((0.6, -0.5), 2.0), ((-0.75, 0.62), None)]:
        drag(page, "#pool .arrow-handle", by)
        assert 0.5 - 1e-9 <= math.hypot(*balls(page, "pool")[0]["velocity"]) <= 2 + 1e-9
        if speed:
            assert math.hypot(*balls(page, "pool")[0]["velocity"]) == pytest.approx(speed)
    assert balls(page, "pool")[1]["velocity"] == [0, 0]


def test_keys_move_balls_and_turn_arrows(page: Page) -> None:
    before = balls(page)[0]
    page.locator(".ball-handle >> nth=0").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    after = balls(page)[0]
    assert after["position"] == pytest.approx([x + 0.02 for x in before["position"]])
    label = page.locator(".ball-handle >> nth=0").get_attribute("aria-label")
    assert f"{after['position'][0]:.2f}, {after['position'][1]:.2f}" in str(label)
    page.locator("#arena .arrow-handle >> nth=0").focus()
    page.keyboard.press("ArrowLeft")
    turned = math.degrees(
        math.atan2(*reversed(balls(page)[0]["velocity"]))
        - math.atan2(*reversed(before["velocity"]))
    )
    assert turned == pytest.approx(3)
    assert page.evaluate("playground.arena.time") == 0


def test_it_predicts_plays_and_counts_updates(page: Page) -> None:
    page.evaluate(IDLE)
    tracks = page.evaluate("playground.arena.example.tracks.map(t => [t.model, t.updates.length])")
    assert [name for name, _ in tracks] == [None, "PC-ODE", "RNN"]
    assert tracks[2][1] == 41
    assert tracks[1][1] < 41
    page.locator("#arena .play").click()
    page.evaluate(f"async () => {{ while (playground.arena.time < 0.02) await {NEXT_FRAME}; }}")
    assert not page.locator(".ball-handle >> nth=0").is_visible()
    # What is said follows the time, but is not read aloud before it rests.
    assert page.locator(".sum").get_attribute("aria-live") == "off"
    page.evaluate("playground.arena.seek(1)")
    assert page.locator(".sum").inner_text().startswith("By time 1.0")
    page.evaluate("playground.arena.seek(2.17)")
    page.wait_for_selector("#arena:not(.playing)")
    assert "41 of 41 updates" in page.locator('#arena [data-model="RNN"]').inner_text()
    counted = page.locator('#arena [data-model="PC-ODE"] .tick.lit').count()
    assert counted == tracks[1][1]
    said = page.locator(".sum").inner_text()
    assert page.locator(".sum").get_attribute("aria-live") == "polite"
    assert said.startswith("By time 2.20, PC-ODE: ")
    assert f"{counted} updates, off by " in said
    page.locator("#arena .again").click()
    assert page.locator(".ball-handle >> nth=0").is_visible()


def test_the_chart_shows_the_errors(page: Page) -> None:
    page.evaluate(IDLE)
    errors = page.evaluate("playground.arena.example.tracks.slice(1).map(t => t.errors)")
    rows = page.evaluate("playground.arena.example.tracks.map(t => t.rows)")
    for found, predicted in zip(errors, rows[1:], strict=True):
        wanted = np.sqrt(np.square(np.array(predicted) - rows[0]).mean(1))
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert found[12] == 0  # The last observation that is given.
        assert found[-1] > 0
    chart = page.locator(".chart")
    before = chart.screenshot()
    page.evaluate("playground.arena.seek(2)")
    assert chart.screenshot() != before


def test_the_horizon_is_a_choice(page: Page) -> None:
    slider = page.locator(".horizon input")
    slider.fill("80")
    page.evaluate(IDLE)
    assert page.evaluate("playground.arena.example.end") == pytest.approx(0.05 * 83)
    assert page.evaluate("playground.arena.example.tracks[2].updates.length") == 80
    assert "longer than it was trained on" in page.locator(".horizon output").inner_text()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("playground.arena.ahead") == 79


def test_the_model_plans_and_the_simulator_plays(page: Page) -> None:
    page.locator("#pool-tab").click()
    page.evaluate(f"playground.pool.planner = {QUICK}")
    page.locator(".plan").click()
    page.evaluate(
        f"async () => {{ const pool = playground.pool; while (!pool.result) await {NEXT_FRAME}; }}"
    )
    assert page.evaluate("playground.pool.example.tracks[1].candidates.length") == 8
    page.evaluate("playground.pool.seek(1.73)")
    page.wait_for_selector("#pool:not(.playing)")
    made = balls(page, "pool")
    table = np.array([[ball["position"] for ball in made]])
    closest = float(pocket_distance(play(table, np.array([made[0]["velocity"]])))[0])
    said = page.locator(".status").inner_text()
    assert f"The target came within {closest:.3f} of the corner; 0.17 is in." in said
    assert said.startswith("Pocketed." if closest < POCKET_RADIUS else "Missed.")
    assert said.endswith(f"Pocketed so far: model {int(closest < POCKET_RADIUS)} of 1.")


def test_a_shot_of_ones_own(page: Page) -> None:
    page.locator("#pool-tab").click()
    # Straight into the corner, both balls on the diagonal.
    on_diagonal = """playground.pool.setup.set([
        { position: [0.3, 0.7], velocity: [1, -1] }, { position: [0.6, 0.4], velocity: [0, 0] }])"""
    page.evaluate(on_diagonal)
    page.locator(".shoot").click()
    page.evaluate("playground.pool.seek(1.73)")
    page.wait_for_selector("#pool:not(.playing)")
    said = page.locator(".status").inner_text()
    assert said.startswith("Pocketed. The target came within 0.141 of the corner")
    assert said.endswith("Pocketed so far: you 1 of 1.")


def test_a_shot_ends_the_planning(page: Page) -> None:
    page.locator("#pool-tab").click()
    aimed = balls(page, "pool")
    long = QUICK | {"rollouts": 4000}
    page.evaluate(f"playground.pool.planner = {long}")
    page.locator(".plan").click()
    wait = f"async () => {{{{ while (!({{}})) await {NEXT_FRAME}; }}}}"
    page.evaluate(wait.format("playground.pool.example.tracks[1].candidates?.length > 2"))
    page.locator(".shoot").click()
    page.evaluate(wait.format("playground.pool.example.tracks[1].updates.length > 0"))
    page.evaluate("playground.pool.seek(1.73)")
    page.wait_for_selector("#pool:not(.playing)")
    assert "so far: you" in page.locator(".status").inner_text()
    assert "model" not in page.locator(".status").inner_text()
    assert balls(page, "pool") == aimed


def test_play_stays_in_sight_on_a_phone(page: Page) -> None:
    if page.evaluate("innerWidth") > 640:
        pytest.skip("a phone's screen only")
    for tab in ("arena", "pool"):
        page.locator(f"#{tab}-tab").click()
        page.evaluate(f"document.querySelector('#{tab} .table').scrollIntoView()")
        box = page.locator(f"#{tab} .play").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= page.evaluate("innerHeight")


def test_the_key_explains_what_is_drawn(page: Page) -> None:
    # At pool the models are given nothing but the table, before the time that is shown.
    assert page.locator("#arena .hatch").count() == 1
    assert page.locator("#pool .hatch").count() == 0


def test_tabs_are_chosen_with_keys(page: Page) -> None:
    page.locator("#arena-tab").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "pool-tab"
    assert page.locator("#pool").is_visible()
    assert not page.locator("#arena").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#arena").is_visible()


@pytest.mark.parametrize("tab", ["arena", "pool"])
def test_everything_has_a_name_is_readable_and_fits(page: Page, tab: str) -> None:
    page.locator(f"#{tab}-tab").click()
    page.evaluate(IDLE)
    for time in (0, 1):
        page.evaluate(f"playground.{tab}.seek({time})")
        assert page.evaluate(NAMELESS) == []
        found: dict[str, Any] = page.evaluate(READABLE)
        assert found["count"] > 20
        assert found["poor"] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.bench
def test_frames_are_not_missed(page: Page) -> None:
    """Of the frames that an empty page gets in as much time, at most a few are missed."""
    count = f"""async (work) => {{
        if (work) work();
        let frames = 0;
        const start = performance.now();
        for (; performance.now() - start < 2000; frames++) await {NEXT_FRAME};
        return frames;
    }}"""
    page.evaluate(IDLE)
    idle = page.evaluate(f"({count})()")
    playing = page.evaluate(f"({count})(() => playground.arena.play())")
    page.locator("#pool-tab").click()
    planning = page.evaluate(f"({count})(() => playground.pool.plan())")
    print(f"{idle} frames idle, {playing} playing, {planning} planning, in 2 seconds")
    assert playing >= idle - 6
    assert planning >= idle - 12
