"""One set of defaults: the API, the command, the recommended preset and the page agree."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import Any

import pytest
import typer.main

from helpers import run_cli
from pages import ROOT
from skipstone import PCODE, ModelConfig, Recipe
from skipstone.cli import app
from skipstone.models.ode import ODEConfig
from skipstone.models.pcode_config import PCODEConfig
from skipstone.models.registry import MODELS
from skipstone.paper.jobs import Job
from skipstone.paper.presets import PAPER, STEPS, TARGET_STEPS, TOLERANCES, preset_for

PAGE = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
FROM_DATA = {
    "dim",
    "control",
    "time_unit",
    "center",
    "scale",
    "control_center",
    "control_scale",
    "missing",
}
SHARED = {field.name for field in fields(ModelConfig)}
OWN_TASK = "a task of one's own"


def section(name: str) -> list[list[str]]:
    """The cells of the table below a heading, without its first two lines."""
    text = PAGE.partition(name)[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize(
    ("heading", "defaults", "paper"),
    [
        ("`Recipe`", asdict(Recipe()), asdict(PAPER.recipe)),
        (
            "`ModelConfig`",
            {name: ModelConfig.__dict__[name] for name in SHARED - FROM_DATA},
            {k: v for k, v in PAPER.every.items() if k != "scaling"},
        ),
        ("`PCODEConfig`", asdict(PCODEConfig(dim=1)), dict(PAPER.pcode)),
        ("`ODEConfig`", asdict(ODEConfig(dim=1)), dict(PAPER.ode)),
    ],
)
def test_the_page_has_every_setting(
    heading: str, defaults: dict[str, Any], paper: dict[str, Any]
) -> None:
    if heading not in ("`Recipe`", "`ModelConfig`"):
        defaults = {name: value for name, value in defaults.items() if name not in SHARED}
    shown = {row[0].strip("`"): row[1:3] for row in section(heading)}
    known = {name: [str(value), str(paper.get(name, value))] for name, value in defaults.items()}
    assert shown == known


def test_the_page_has_every_task() -> None:
    shown = {row[0].strip("`"): row[1:] for row in section("The paper's tasks with")}
    assert set(shown) == {*TOLERANCES, *TARGET_STEPS}
    for task, (steps, *options) in shown.items():
        preset, usual = preset_for("cpu", task), asdict(Recipe())
        assert steps == str(STEPS.get(task, usual["steps"]))
        changed = {**preset.data, **preset.every, **preset.pcode, **asdict(preset.recipe)}
        changed = {k: v for k, v in changed.items() if k not in usual or v != usual[k]}
        changed = {k: str(v) for k, v in changed.items() if k != "steps"}
        assert dict(re.findall(r"`(\w+)=([^`]+)`", " ".join(options))) == changed


def test_the_recommended_preset_is_the_defaults() -> None:
    preset = preset_for("cpu", OWN_TASK)
    assert preset.recipe == Recipe()
    for model in MODELS.values():
        assert preset.options(model) == {}


def test_commands_train_the_recommended_preset() -> None:
    commands: Any = typer.main.get_command(app)
    presets = {
        name: option.default
        for name, command in commands.commands.items()
        for option in command.params
        if option.name == "preset"
    }
    assert presets == {"train": "cpu", "grid": "cpu", "reproduce": "cpu"}
    assert Job(task="circles", model="pcode").preset == "cpu"
    assert "cpu, paper or smoke" in run_cli("train", "--help").out


def test_a_job_trains_what_fit_trains_but_for_its_tables() -> None:
    job = Job(task="billiards2d", model="pcode")
    assert job.recipe == Recipe()
    options = preset_for(job.preset, job.task).options(PCODE)
    assert set(options) == {"target_step", "hidden"}
