"""The playground: what is in the file, and which models it is made of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT
from skipstone import PCODE, InvalidInput
from skipstone.paper.playground import PLAYGROUND, find_players
from skipstone.paper.playground.write import SCRIPTS, embedded_model
from skipstone.training.run import Run, list_runs

WEIGHTS = ROOT / "weights"


def embedded(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json" id="playground">(.*?)</script>', text)
    assert len(found) == 1
    return json.loads(found[0])


def test_nothing_is_loaded_from_outside(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert "http" not in re.sub(r'<meta http-equiv="Content-Security-Policy"', "", text)
    assert re.findall(r'(?:src|href|srcset|action|poster)="([^"]*)"', text) == ["data:,"]
    assert not re.search(r"@import|url\(|\beval\(|new Function", text)
    assert text.count("<script") == text.count("</script>") == 2


def test_weights_are_the_very_bytes_of_the_shipped_files(page_file: Path) -> None:
    content = embedded(page_file)
    players = find_players(list_runs(WEIGHTS))
    runs = [*players.arena, players.pool]
    models = [*content["arena"]["models"], *content["pool"]["models"]]
    assert [model["title"] for model in models] == ["PC-ODE", "RNN", "PC-ODE"]
    for run, model in zip(runs, models, strict=True):
        file = run.folder / "weights.safetensors"
        content = file.read_bytes()
        assert base64.b64decode(model["weights"]) == content
        checksum = hashlib.sha256(content).hexdigest()
        assert model["sha256"] == checksum == run.result["weights_sha256"]
        assert model["config"]["hidden"] == run.config["model"]["hidden"]


def test_the_page_in_the_repository_has_the_weights_of_the_repository(page_file: Path) -> None:
    # If this fails, say `make playground`.
    def sums(file: Path) -> list[str]:
        return [one["sha256"] for game in embedded(file).values() for one in game["models"]]

    assert sums(ROOT / "results" / "paper" / PLAYGROUND) == sums(page_file)


def test_the_page_says_what_its_models_were_trained_on(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    balls = Run(WEIGHTS / "billiards2d-pcode-cpu-seed0").config["data"]["options"]
    shots = Run(WEIGHTS / "shots-pcode-cpu-seed0").config["data"]["options"]
    assert f"a set of {balls['trajectories']:,}: two balls" in text
    assert f"a set of {shots['trajectories']:,}: both balls at rest" in text
    assert "a speed from 0.5 to 2" in text
    sizes = [model["config"]["hidden"] for model in embedded(page_file)["arena"]["models"]]
    assert "The PC-ODE has {} units, the RNN has {} units.".format(*sizes) in text


def test_scripts_are_a_few_kilobytes() -> None:
    folder = ROOT / "src" / "skipstone" / "paper" / "playground"
    assert {file.name for file in folder.glob("*.js")} == set(SCRIPTS)
    assert sum((folder / name).stat().st_size for name in SCRIPTS) < 60_000


def test_missing_models_are_named() -> None:
    balls = [run for run in list_runs(WEIGHTS) if run.folder.name.startswith("billiards2d")]
    with pytest.raises(InvalidInput, match="must have a trained pcode of shots"):
        find_players(balls)


def test_a_model_that_the_page_cannot_compute_is_refused() -> None:
    model = PCODE.from_config({"dim": 4, "hidden": 8, "missing": True})
    with pytest.raises(InvalidInput, match=r"without missing values.*got a pcode"):
        embedded_model(model, b"")
