"""What a newcomer meets first: the import, the command, the shipped models."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

import skipstone
from pages import ROOT
from skipstone.training.run import Run


def modules_after(code: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter by some code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {
    *("lightning", "pytorch_lightning", "matplotlib", "torchdiffeq", "gymnasium", "imageio"),
    *("sktime", "sklearn", "huggingface_hub", "onnx", "onnxscript", "onnxruntime", "fastapi"),
}


def test_import_loads_torch_and_little_more() -> None:
    every_name = "from skipstone import *"
    loaded = modules_after(every_name)
    assert "torch" in loaded
    assert not loaded & HEAVY


def test_command_line_help_needs_no_torch() -> None:
    loaded = modules_after(
        "import sys; sys.argv = ['skipstone', '--help']\n"
        "from skipstone.cli import main\n"
        "try: main()\nexcept SystemExit as done: assert done.code == 0"
    )
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"torch", "numpy"})


def test_every_public_name_exists_and_nothing_else() -> None:
    stub = (ROOT / "src" / "skipstone" / "__init__.pyi").read_text(encoding="utf-8")
    listed = re.findall(r"import (\w+) as \1$", stub, flags=re.MULTILINE)
    assert sorted(listed) == sorted(dir(skipstone))
    for name in listed:
        assert getattr(skipstone, name).__name__ in (name, f"skipstone.{name}")
    with pytest.raises(AttributeError, match="attribute Sequence"):
        skipstone.Sequence  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


SHIPPED = sorted((ROOT / "weights").iterdir())
RECORDED = ROOT / "results" / "paper"


@pytest.mark.parametrize("task", sorted({folder.name.split("-")[0] for folder in SHIPPED}))
def test_shipped_models_are_what_was_recorded(task: str) -> None:
    recorded = json.loads((RECORDED / "evaluations.json").read_text(encoding="utf-8"))["runs"]
    usual = skipstone.load_task(task, cache=False).test[:100]
    for folder in SHIPPED:
        if folder.name.split("-")[0] != task:
            continue
        shipped = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
        for name in ("test_mse", "sample_mse", "mean_step", "updates"):
            again = recorded[f"weights/{folder.name}"][name]["value"]
            assert again == pytest.approx(shipped[name]["value"], rel=0.03), folder.name
        # The numbers are the model's: a few rollouts come close to them. Of further seeds only the
        # numbers are shipped.
        assert Run(folder).has_weights == folder.name.endswith("seed0")
        if "finer" not in folder.name and Run(folder).has_weights:
            model = skipstone.load(folder)
            result = skipstone.evaluate(model, usual, timing=False)
            updates = shipped["updates"]["value"]
            assert result.updates.value == pytest.approx(updates, rel=0.1), folder.name


def test_shipped_folders_are_whole_and_their_weights_are_loaded_bit_for_bit() -> None:
    """The files of weights are older than the checksums in the JSON files beside them."""
    for folder in SHIPPED:
        run = Run(folder)
        assert run.config["data"]["task"] == folder.name.split("-")[0]
        assert run.evaluation["sample_mse"]
        assert run.result["steps"] > 0
        if run.has_weights:
            path = folder / "weights.safetensors"
            assert hashlib.sha256(path.read_bytes()).hexdigest() == run.result["weights_sha256"]
            kept, loaded = load_file(path), run.load().state_dict()
            assert kept.keys() == loaded.keys()
            assert all(torch.equal(kept[name], loaded[name]) for name in kept)


def test_the_page_of_results_shows_what_was_recorded() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert (RECORDED / "table1.md").read_text(encoding="utf-8") in page
    # The paper's table has no row for shots: those are written by hand.
    for label, kind in (("ODE-RNN", "odernn"), ("RNN", "rnn"), ("PC-ODE", "pcode")):
        folder = ROOT / "weights" / f"shots-{kind}-cpu-seed0"
        evaluation = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
        row = next(line for line in page.splitlines() if line.startswith(f"| shots | {label} |"))
        shown = [float(cell) for cell in row.split("|")[3:6]]
        measured = [evaluation[name]["value"] for name in ("sample_mse", "mean_step", "updates")]
        assert shown == pytest.approx(measured, rel=0.01)


def test_every_name_in_the_paper_map_exists() -> None:
    text = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    places = re.findall(r"\[`([\w.]+)`\]\(\.\./(src/[\w/]+\.py|tests/[\w/]+\.py)\)", text)
    assert len(places) > 15
    for name, file in places:
        source = (ROOT / file).read_text(encoding="utf-8")
        last = name.rpartition(".")[2]
        assert re.search(rf"^\s*(def|class) {last}\b|^\s*{last}\s*[:=]", source, re.MULTILINE), name
