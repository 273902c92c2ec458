"""The report page: what is in the file."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_stubs import ABOUT, EXAMPLES, TRICK, make_stub, write_stub_page

from skipstone import InvalidInput
from skipstone.paper.examples import Example
from skipstone.paper.page import FigureCard, TableCard, VideoCard, write_page
from skipstone.paper.page.replay import FILM_STRIDE, replay


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stub_page(tmp_path_factory.mktemp("page"))


def embedded(text: str) -> list[dict[str, Any]]:
    """The data of the viewer."""
    found = re.findall(r'<script type="application/json" id="examples">(.*?)</script>', text, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def test_no_text_breaks_out_of_its_place(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert "<b>" not in text
    assert "alert(" in text
    assert '<script>alert("1")' not in text
    assert text.count("<script") == text.count("</script>") == 2
    assert embedded(text)[0]["labels"] == [TRICK]


def test_nothing_is_loaded_from_outside(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\s<]*", text) == [ABOUT["source"]]
    addresses = re.findall(r'(?:src|href|srcset|action|poster)="([^"]*)"', text)
    assert len(addresses) > 5
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"@import|url\(", text)
    assert [file.name for file in page_file.parent.glob(".*")] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.task)
def test_embedded_data_are_the_examples(page_file: Path, example: Example) -> None:
    found = {data["task"]: data for data in embedded(page_file.read_text(encoding="utf-8"))}
    data = found[example.task]
    film = example.scene.kind == "film"

    def same(packed: Any, values: np.ndarray) -> None:
        if film:
            raw = np.frombuffer(base64.b64decode(packed), dtype=np.uint8)
            packed, values = raw.reshape(-1, 784) / 255, values[::FILM_STRIDE]
        np.testing.assert_allclose(packed, values, atol=1 / 500 if film else 6e-5)

    same(data["truth"], example.track)
    np.testing.assert_allclose(data["observed"], example.times, atol=6e-5)
    assert [hit["time"] for hit in data["collisions"]] == example.events.times.tolist()
    assert [hit["balls"] for hit in data["collisions"]] in ([], [[0], [0, 1]])
    assert [model["title"] for model in data["models"]] == sorted(example.predictions)[::-1]
    for model in data["models"]:
        prediction = example.predictions[model["title"]]
        same(model["values"], prediction.values)
        np.testing.assert_allclose(model["updates"], prediction.knots, atol=6e-5)
        assert data["moments"][model["first"]] == prediction.times[0] == data["context"]


def test_a_prediction_that_is_not_finite_has_gaps() -> None:
    stub = make_stub("time")
    lost = replace(stub.predictions["RNN"], values=stub.predictions["RNN"].values * np.nan)
    data = replay(replace(stub, predictions={"RNN": lost}))
    assert data["models"][0]["values"][0] == [None, None]
    json.dumps(data, allow_nan=False)


def test_a_prediction_for_other_times_is_an_error() -> None:
    stub = make_stub("time")
    late = replace(stub.predictions["RNN"], times=stub.predictions["RNN"].times + 0.1)
    with pytest.raises(InvalidInput, match="RNN's for billiards1d has other times"):
        replay(replace(stub, predictions={"RNN": late}))


def test_what_was_found_comes_before_everything_else(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    order = ["<p>It works.</p>", "<h3>Found</h3>", f"<p>{escape(TRICK)}</p>", "<nav"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert '<td colspan="1"></td><th class="group" colspan="2" scope="colgroup">' in text


def test_sections_without_content_are_left_out(tmp_path: Path) -> None:
    write_page(tmp_path / "index.html", summary="Only words.", about=ABOUT)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<p>Only words.</p>" in text
    assert "<section" not in text
    assert 'id="examples"' not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"figures": [FigureCard("F", "", Path("missing.png"))]},
            "missing.png cannot be read",
        ),
        ({"figures": [FigureCard("F", "", Path(__file__))]}, "must be a PNG file"),
        ({"videos": [VideoCard("V", "", Path("missing.mp4"))]}, "missing.mp4 cannot be read"),
        ({"videos": [VideoCard("V", "", Path("film.avi"))]}, "in .mp4 or .gif; got 'film.avi'"),
        ({"tables": [TableCard("T", "", ["a", "b"], [["1"]])]}, "'T' must have 2 cells.*got 1"),
    ],
)
def test_errors_name_what_is_wrong_and_keep_the_old_page(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    path = tmp_path / "index.html"
    path.write_text("old")
    with pytest.raises(InvalidInput, match=message):
        write_page(path, summary="", about=ABOUT, **content)
    assert path.read_text() == "old"


def test_the_viewer_leads_to_the_playground_if_there_is_one(tmp_path: Path) -> None:
    for name in ("", "playground.html"):
        write_page(tmp_path / "i.html", summary="", about=ABOUT, examples=EXAMPLES, playground=name)
        text = (tmp_path / "i.html").read_text(encoding="utf-8")
        assert ('href="playground.html"' in text) == bool(name)
