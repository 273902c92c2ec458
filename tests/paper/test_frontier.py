"""The frontier: which runs are on it, and where it crosses the RNN's error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted import measured

from skipstone.paper.frontier import Frontier, frontiers
from skipstone.paper.measured import Measured

SMALL: dict[str, Any] = {"hidden": 64, "steps": 1500}


def sweep(folder: Path, errors: dict[float, float], rnn: float) -> Frontier:
    """PC-ODEs with so large errors at mean steps, beside an RNN."""
    runs = [measured(folder, "RNN", mse=rnn, **SMALL)]
    for step, mse in errors.items():
        options = {"target_step": step}
        runs.append(measured(folder, step=step, mse=mse, options=options, **SMALL))
    (found,) = frontiers(runs).values()
    return found


@pytest.mark.parametrize(
    ("rnn", "expected"),
    [
        (1e-3, "14.1"),  # Half-way between 20 and 10 updates, by logarithms.
        (1e-2, "10"),  # A point has that very error.
        (1e-5, "–"),
        (1.0, "<5"),
    ],
)
def test_updates_at_the_error_of_the_rnn(tmp_path: Path, rnn: float, expected: str) -> None:
    frontier = sweep(tmp_path, {8.0: 1e-1, 2.0: 1e-4, 4.0: 1e-2}, rnn)
    assert [one.value for one in frontier.column("mean_step")] == [2.0, 4.0, 8.0]
    assert frontier.budget == (64, 1500)
    assert frontier.baseline_error.value == rnn
    assert frontier.updates_at_baseline_error() == expected


def test_the_fewest_updates_count_where_errors_go_up_and_down(tmp_path: Path) -> None:
    frontier = sweep(tmp_path, {1.0: 1e-4, 2.0: 1e-2, 4.0: 1e-4, 8.0: 1e-2}, 1e-3)
    assert frontier.updates_at_baseline_error() == "7.07"


def test_other_studies_are_not_on_it(tmp_path: Path) -> None:
    def run(model: str = "PC-ODE", **options: Any) -> Measured:
        return measured(tmp_path, model, options=options, **SMALL)

    rnn, own, low = run("RNN"), run(), run(tolerance=1e-3)
    others = [
        run(target_step=None, tolerance=1e-4),  # Of the study of capacity.
        measured(tmp_path, finer=2, **SMALL),
        measured(tmp_path),
        measured(tmp_path, "RNN"),
        measured(tmp_path, "PC-ODE", "lines", **SMALL),
    ]
    lost = run(tolerance=1e-2)
    lost.evaluation["sample_mse"] = {"value": None, "low": None, "high": None}
    found = frontiers([rnn, own, low, *others, lost])
    assert list(found) == ["billiards1d"]
    assert found["billiards1d"].baseline == [rnn]
    assert found["billiards1d"].points == [[own], [low]]
    assert frontiers([own, low]) == {}  # Without an RNN.
    assert frontiers([rnn, own]) == {}  # With one point.
