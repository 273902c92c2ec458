"""A regression guard: recorded ratios of training and rollouts, with room for noise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

MARGIN = 1.6
"""How much worse than recorded, or than its bar if that was met, a ratio may be: what is more than
another machine and a few rounds explain has become slower."""


@pytest.mark.bench
@pytest.mark.parametrize("part", ["training", "rollout"])
def test_speed_has_not_regressed(part: str, tmp_path: Path) -> None:
    # In a process of its own: here every call is checked for shapes, which takes time.
    command = [sys.executable, "-m", "benchmarks.bench", "--only", part, "--rounds", "5"]
    subprocess.run([*command, "--folder", tmp_path], cwd=ROOT, check=True)
    # Names are those of one part: memory compares the same models as training.
    every = _comparisons(ROOT / "results" / "bench.json")
    recorded = {one["name"]: one for one in every if one["part"] == part}
    judged = [one for one in _comparisons(tmp_path / "bench.json") if one["met"] is not None]
    assert judged
    slow = [text for one in judged if (text := _slower(one, recorded.get(one["name"])))]
    assert not slow


def _comparisons(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["comparisons"]


def _slower(found: dict[str, Any], recorded: dict[str, Any] | None) -> str:
    """What is wrong with a ratio, if anything is."""
    # The reference can be the other of two RNNs here: then there is only the bar.
    before = recorded["ratio"]["median"] if recorded else None
    ratio = found["ratio"]["median"]
    if found["at_most"] is not None:
        worst = max(found["at_most"], before or 0) * MARGIN
        return f"{found['name']}: {ratio:.3g} > {worst:.3g}" if ratio > worst else ""
    worst = min(found["at_least"], before or found["at_least"]) / MARGIN
    return f"{found['name']}: {ratio:.3g} < {worst:.3g}" if ratio < worst else ""
