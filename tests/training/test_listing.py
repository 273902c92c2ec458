"""The list of runs: whatever lies in a folder, every run that can be read is in it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import edit_json, random_batch, run_cli
from skipstone import RNN, InvalidInput, Recipe, Run, fit
from skipstone.training.listing import runs_table
from skipstone.training.run import EVALUATION_FORMAT

ESTIMATE = {"value": 0.5, "low": 0.25, "high": None}
MEASURED: dict[str, Any] = {
    "num_trajectories": 2,
    **dict.fromkeys(
        ("test_mse", "sample_mse", "mean_step", "updates", "function_evaluations"), ESTIMATE
    ),
    "horizon_mse": [ESTIMATE],
    "constant_steps": [],
    "wall_times": [],
    "alignment": None,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    data = random_batch(0, [9] * 12, irregular=False, dtype=torch.float32)
    torch.manual_seed(0)
    run = fit(
        RNN.for_data(data, hidden=4),
        data,
        folder=tmp_path_factory.mktemp("runs") / "good",
        recipe=Recipe(steps=2, batch_size=4),
        progress=False,
        device="cpu",
    )
    run.keep_evaluation(MEASURED)
    return run


def copy_of(run: Run, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for path in run.folder.glob("[!.]*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


BAD: dict[str, Any] = {
    "null": lambda folder: (folder / "config.json").write_text("null"),
    "empty": lambda folder: (folder / "config.json").write_text(""),
    "number": lambda folder: (folder / "config.json").write_text("9" * 10_000),
    "deep": lambda folder: (folder / "config.json").write_text("[" * 10**5),
    "nan": lambda folder: (folder / "config.json").write_text('{"format": NaN}'),
    "bytes": lambda folder: (folder / "config.json").write_bytes(bytes(range(256))),
    "edited": lambda folder: (folder / "config.json").write_text(
        (folder / "config.json").read_text().replace('"seed": 0', '"seed": 1')
    ),
    "recipe": lambda folder: edit_json(
        folder / "config.json", lambda config: config["recipe"].update(steps=None)
    ),
    "schedule": lambda folder: edit_json(
        folder / "config.json", lambda config: config["recipe"].update(schedule="none")
    ),
    "columns": lambda folder: edit_json(
        folder / "config.json", lambda config: config["data"].update(columns=[1])
    ),
    "times": lambda folder: edit_json(
        folder / "config.json",
        lambda config: config["data"].update(columns={"time": "t", "values": [], "controls": []}),
    ),
    "task": lambda folder: edit_json(
        folder / "config.json", lambda config: config["data"].update(task=7)
    ),
    "result": lambda folder: (folder / "result.json").write_text("[]"),
    "steps": lambda folder: edit_json(
        folder / "result.json", lambda result: result.update(steps="many")
    ),
    "seconds": lambda folder: edit_json(
        folder / "result.json", lambda result: result.pop("wall_seconds")
    ),
    "other": lambda folder: edit_json(
        folder / "result.json", lambda result: result.update(config_sha256="of another")
    ),
    "evaluation": lambda folder: (folder / "evaluation.json").write_text("{}"),
    "estimate": lambda folder: edit_json(
        folder / "evaluation.json", lambda measured: measured.update(sample_mse=[1])
    ),
    "forecasts": lambda folder: edit_json(
        folder / "evaluation.json", lambda measured: measured.update(forecasts={"features": [1]})
    ),
}


def test_one_bad_run_never_breaks_the_list(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    copy_of(run, tmp_path / "good")
    for name, damage in BAD.items():
        damage(copy_of(run, tmp_path / "bad" / name))
    said = run_cli("runs", str(tmp_path))
    assert (said.code, said.err) == (0, "")
    rows = {line.split()[0]: line for line in said.out.splitlines() if line.strip()}
    assert re.search(r"own +2 .* 0\.5 +0\.5 +0\.5", rows["good"])
    for name in BAD:
        assert "unreadable" in rows[f"bad/{name}"], name


@pytest.mark.parametrize("name", BAD)
def test_each_of_them_is_one_line_that_names_the_file(name: str, run: Run, tmp_path: Path) -> None:
    folder = copy_of(run, tmp_path / name)
    BAD[name](folder)
    bad = Run(folder)
    with pytest.raises(InvalidInput) as caught:
        assert bad.config and bad.result and bad.evaluation  # noqa: PT018
    assert str(folder) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["null", "deep", "edited"])
def test_a_command_about_a_bad_run_exits_with_two(name: str, run: Run, tmp_path: Path) -> None:
    BAD[name](copy_of(run, tmp_path / name))
    said = run_cli("evaluate", str(tmp_path / name))
    assert said.code == 2
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1


def test_an_evaluation_of_another_format_is_refused(run: Run, tmp_path: Path) -> None:
    folder = copy_of(run, tmp_path / "run")
    assert Run(folder).evaluation == json.loads(json.dumps(MEASURED))
    edit_json(folder / "evaluation.json", lambda m: m.update(format=EVALUATION_FORMAT + 1))
    with pytest.raises(InvalidInput, match=r"must have format 1\. Remove it, and measure again"):
        assert Run(folder).evaluation


@pytest.mark.parametrize("text", ["step,loss\n1,x\n", "step,loss\n1\n", "step\n\x00"])
def test_damaged_metrics_are_explained(text: str, run: Run, tmp_path: Path) -> None:
    folder = copy_of(run, tmp_path / "run")
    (folder / "metrics.csv").write_text(text)
    with pytest.raises(InvalidInput, match=r"metrics\.csv must be a table of numbers"):
        assert Run(folder).metrics


def test_a_folder_that_may_not_be_entered_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = copy_of(run, tmp_path / "closed")
    original = os.scandir

    def scan(path: Any) -> Any:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(closed))
        return original(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(InvalidInput, match="closed was not looked into: Permission denied"):
        runs_table(tmp_path)
    copy_of(run, tmp_path / "open")
    assert "closed was not looked into: Permission denied" in str(runs_table(tmp_path).caption)
