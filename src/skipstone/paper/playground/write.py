"""`write_playground`: trained models, their arithmetic and the true physics in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from skipstone.errors import InvalidInput
from skipstone.files import write_text
from skipstone.models.base import Model
from skipstone.models.registry import find_kind, kind_of, title_of
from skipstone.models.storage import WEIGHTS
from skipstone.paper.jobs import varied
from skipstone.paper.page.write import embedded_json, page_asset, palette
from skipstone.paper.tasks.balls import BILLIARDS_2D, BallOptions
from skipstone.paper.tasks.base import CONTEXT
from skipstone.paper.tasks.billiards import RADIUS
from skipstone.paper.tasks.shots import (
    AFTER_SHOT,
    POCKET,
    POCKET_RADIUS,
    SHOTS,
    SPACING,
    SPEEDS,
)
from skipstone.training.run import Run

PLAYGROUND = "playground.html"
"""Name of the page, beside the report's."""

SHARED = ("draw.js", "panels.js", "player.js")
"""Scripts of the report's viewer: balls are drawn and played in one way."""

SCRIPTS = (
    "network.js",
    "models.js",
    "physics.js",
    "examples.js",
    "handles.js",
    "chart.js",
    "arena.js",
    "pool.js",
    "playground.js",
)
"""The page's own scripts, in this order after the shared ones."""

KINDS = ("pcode", "rnn")
"""Models that `models.js` can compute."""


class Players(NamedTuple):
    """Trained models that a page needs."""

    arena: Sequence[Run]
    """Models of two balls, side by side."""
    pool: Run
    """The model that plans."""


def find_players(runs: Sequence[Run]) -> Players:
    """The PC-ODE and the RNN of `billiards2d`, and the PC-ODE of `shots`, among these runs."""
    return Players(
        [_find(runs, BILLIARDS_2D.name, kind) for kind in KINDS], _find(runs, SHOTS.name, "pcode")
    )


def _find(runs: Sequence[Run], task: str, kind: str) -> Run:
    """The finished run of the lowest seed whose settings are its preset's."""
    fitting = [
        run
        for run in runs
        if run.finished
        and run.has_weights
        and run.config["data"].get("task") == task
        and run.config["model"]["kind"] == kind
        and not varied(run.config["data"]["job"])
    ]
    if not fitting:
        raise InvalidInput(
            f"a playground must have a trained {kind} of {task}; there is none. Train it: "
            f"skipstone train {task} {kind}"
        )
    return min(fitting, key=lambda run: run.config["seed"])


def write_playground(path: Path, players: Players) -> None:
    """Write a page that needs no other file and no network."""
    content = {
        "arena": {"scene": _arena_scene(), "models": [_embedded(run) for run in players.arena]},
        "pool": {"scene": _pool_scene(), "models": [_embedded(players.pool)]},
    }
    scripts = [page_asset(name) for name in SHARED] + [_asset(name) for name in SCRIPTS]
    balls, shots = (run.config["data"]["options"] for run in (players.arena[0], players.pool))
    page = Template(_asset("playground.html")).substitute(
        style=palette() + page_asset("page.css") + _asset("playground.css"),
        controls=page_asset("controls.html"),
        ahead=BILLIARDS_2D.options.observations - CONTEXT,
        context=CONTEXT,
        units=", the ".join(_units(run) for run in players.arena),
        ball_trajectories=f"{balls['trajectories']:,}",
        shot_trajectories=f"{shots['trajectories']:,}",
        slowest=f"{SPEEDS[0]:g}",
        fastest=f"{SPEEDS[1]:g}",
        after_shot=AFTER_SHOT,
        pocket_radius=f"{POCKET_RADIUS:g}",
        data=embedded_json(content),
        script="".join(scripts),
    )
    write_text(path, page)


def _asset(name: str) -> str:
    return files("skipstone.paper.playground").joinpath(name).read_text(encoding="utf-8")


def _units(run: Run) -> str:
    model = run.config["model"]
    return f"{title_of(find_kind(model['kind']))} has {model['hidden']} units"


def _arena_scene() -> dict[str, Any]:
    options = BILLIARDS_2D.options
    assert isinstance(options, BallOptions)
    return {
        "task": BILLIARDS_2D.name,
        "radius": options.radius,
        "spacing": options.spacing,
        "context": CONTEXT,
        "ahead": options.observations - CONTEXT,
        "labels": ["first", "second"],
        "moving": [0, 1],
        # Every ball of the training data starts with speed 1.
        "speeds": [1, 1],
        "arrow": {"least": 0.19, "perSpeed": 0},
        "start": [
            {"position": [0.41, 0.57], "velocity": [math.cos(2.1), math.sin(2.1)]},
            {"position": [0.81, 0.47], "velocity": [math.cos(4.7), math.sin(4.7)]},
        ],
    }


def _pool_scene() -> dict[str, Any]:
    return {
        "task": SHOTS.name,
        "radius": RADIUS,
        "spacing": SPACING,
        "ahead": AFTER_SHOT,
        "pocket": [*POCKET, POCKET_RADIUS],
        "labels": ["cue", "target"],
        "speeds": list(SPEEDS),
        "arrow": {"least": 0.1, "perSpeed": 0.07},
        "start": [
            {"position": [0.25, 0.75], "velocity": [1.0, -0.62]},
            {"position": [0.6, 0.42], "velocity": [0.0, 0.0]},
        ],
    }


def _embedded(run: Run) -> dict[str, Any]:
    return embedded_model(run.load(), (run.folder / WEIGHTS).read_bytes())


def embedded_model(model: Model[Any], weights: bytes) -> dict[str, Any]:
    """A model as `readModel` in `models.js` takes it; `weights` are its file's very bytes."""
    _require_computable(model)
    config = asdict(model.config)
    # JSON knows no infinity; only a tolerance can be infinite, and a rollout needs none.
    config = {key: value for key, value in config.items() if value != math.inf}
    return {
        "kind": kind_of(model),
        "title": title_of(type(model)),
        "config": config,
        "weights": base64.b64encode(weights).decode("ascii"),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }


def _require_computable(model: Model[Any]) -> None:
    kind, config = kind_of(model), model.config
    if kind not in KINDS or config.missing or getattr(config, "image", ()):
        raise InvalidInput(
            f"a playground computes models of coordinates without missing values, kinds "
            f"{' and '.join(KINDS)}; got a {kind} with missing={config.missing}. Train one "
            f"with the preset's settings: skipstone train {BILLIARDS_2D.name} pcode"
        )
