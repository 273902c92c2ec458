"""A regression guard: the bars of training and rollouts, with room for a noisy machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MARGIN = 2.5
"""How far from its bar a ratio may be. Some bars are not reached yet, by up to a factor of two;
what is more than noise beyond that has become slower."""


@pytest.mark.bench
@pytest.mark.parametrize("part", ["training", "rollout"])
def test_speed_has_not_regressed(part: str, tmp_path: Path) -> None:
    # In a process of its own: here every call is checked for shapes, which takes time.
    command = [sys.executable, "-m", "benchmarks.bench", "--only", part, "--rounds", "5"]
    subprocess.run([*command, "--folder", tmp_path], cwd=ROOT, check=True)
    found = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["comparisons"]
    judged = [one for one in found if one["met"] is not None]
    assert judged
    slow = [
        f"{one['name']}: {one['ratio']['median']:.3g}"
        for one in judged
        if one["ratio"]["median"] > MARGIN * (one["at_most"] or float("inf"))
        or one["ratio"]["median"] < (one["at_least"] or 0) / MARGIN
    ]
    assert not slow
