"""How the benchmark measures, on things whose answer is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest
import torch
import typer
from typer.testing import CliRunner

from benchmarks import bench, peers
from benchmarks.cases import staircase, still_pcode
from benchmarks.efficiency import pcode_work
from benchmarks.measure import Spread, flops, interleave, matmuls, peak_memory, ratio
from benchmarks.report import Comparison

ROOT = Path(__file__).parents[2]


def test_contenders_take_turns() -> None:
    called: list[str] = []
    runs = {name: lambda name=name: called.append(name) for name in "ABC"}
    seconds = interleave(runs, rounds=3, turn_seconds=0.0)
    # Two calls each to get ready, then in turns.
    assert "".join(called) == "AABBCC" + "ABC" * 3
    assert {name: len(samples) for name, samples in seconds.items()} == {"A": 3, "B": 3, "C": 3}


def test_short_calls_fill_a_turn_and_the_first_is_not_counted() -> None:
    durations = iter([0, 0.01, *[0.2, *[0.01] * 10] * 2, *[0.01] * 30])
    seconds = interleave({"only": lambda: sleep(next(durations))}, rounds=2, turn_seconds=0.1)
    # Ten calls or a few less make a tenth of a second; the slow first one is left out.
    assert seconds["only"][0] == pytest.approx(0.01, rel=0.5)


def test_ratios_are_taken_round_by_round() -> None:
    """A machine that is ten times slower in one round changes no ratio."""
    assert ratio([1, 20, 3], [2, 40, 6]) == Spread(0.5, 0.5, 0.5)
    assert Spread.of([1, 2, 3, 4, 5]) == Spread(2, 3, 4)


@pytest.mark.parametrize(
    ("bar", "met"),
    [({"at_most": 2.0}, True), ({"at_most": 1.9}, False), ({"at_least": 2.1}, False), ({}, None)],
)
def test_the_median_meets_a_bar_or_not(bar: dict[str, float], met: bool | None) -> None:
    comparison = Comparison("ratio", Spread(1, 2, 3), **bar)
    assert comparison.met is met
    assert comparison.to_dict()["met"] is met


def test_flops_of_products_in_every_form() -> None:
    left, right, sum_ = torch.randn(5, 7), torch.randn(7, 3), torch.zeros(5, 3)
    for product in (
        lambda: left @ right,
        lambda: torch.mm(left, right, out=sum_),
        lambda: torch.addmm(sum_, left, right),
        lambda: torch.addmm(sum_, left, right, out=torch.empty(5, 3)),
        lambda: sum_.addmm_(left, right),
        lambda: torch.nn.functional.linear(left, right.T, sum_[0]),
    ):
        assert flops(product) == 2 * 5 * 7 * 3
        with torch.inference_mode():
            assert flops(product) == 2 * 5 * 7 * 3
    for run, count in matmuls(batch=2, observations=4, hidden=8, square=16).values():
        assert flops(run) == count


def test_flops_of_the_fused_gru_are_counted() -> None:
    """Input and state, three gates each; the backward pass costs two forward ones."""
    layer = torch.nn.GRU(8, 8, batch_first=True)
    inputs = torch.randn(5, 7, 8, requires_grad=True)
    forward = 2 * (2 * 5 * 7 * 8 * 24)
    assert flops(lambda: layer(inputs)) == forward
    assert flops(lambda: layer(inputs)[0].sum().backward()) == pytest.approx(3 * forward, rel=0.1)


def test_work_of_a_training_step() -> None:
    batch, model = staircase(16, 5, observations=45, dim=4), still_pcode(4, hidden=16)
    work = pcode_work(model, batch, peers.train_pcode(model, batch))
    assert 0 < work["search_flops"] < work["useful_flops"] <= work["all_flops"]
    # A search that decodes ahead does more than it has to, but not twice the whole step.
    assert work["useful_flops"] > work["all_flops"] / 2


def test_peak_memory_is_that_of_tensors_alive_together() -> None:
    def run() -> None:
        first = torch.empty(1000, dtype=torch.uint8)
        torch.empty(5000, dtype=torch.uint8)  # Gone at once.
        second = torch.empty(3000, dtype=torch.uint8)
        del first, second

    assert peak_memory(run) == 6000


def test_quick_benchmark_writes_all_parts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.bench", "--quick", "--threads", "1"]
    done = subprocess.run(
        [*command, "--folder", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert found["quick"] is True
    assert found["machine"]["threads"] == 1
    assert {"processor", "cores", "torch", "commit", "date", "load_before"} <= set(found["machine"])
    assert found["settings"]["mean_steps"] == [1, 2.7, 5, 17]
    parts = {"training", "rollout", "peers", "efficiency", "memory", "planning", "sampling"}
    assert set(found["parts"]) == parts | {"growth"}
    assert {one["part"] for one in found["comparisons"]} == parts
    for one in found["comparisons"]:
        assert one["ratio"]["low"] <= one["ratio"]["median"] <= one["ratio"]["high"]
        assert (one["met"] is None) == (one["at_most"] is None and one["at_least"] is None)
        if one["met"] is not None:
            assert one["name"] in " ".join(done.stdout.split())
    assert sorted(path.name for path in (tmp_path / "bench").iterdir()) == [
        "growth.png",
        "peers.png",
        "sampling.png",
    ]


def test_an_unknown_part_is_named() -> None:
    app = typer.Typer()
    app.command()(bench.main)
    done = CliRunner().invoke(app, ["--only", "speed"])
    assert done.exit_code == 2
    assert "no part 'speed'" in done.stderr
