"""The paper's own numbers, to put beside ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reported:
    """One model's line of the paper's table 1."""

    test_mse: float
    """Error of a teacher-forced pass."""

    sample_mse: float
    """Error of rollouts from the context."""

    mean_step: float
    """Mean time between two cell updates, in observations."""


_MODELS = ("ODE-RNN", "RNN", "PC-ODE")

_LINES = {
    "lines": [(1.77e-8, 1.79e-7, 1), (1.77e-8, 1.39e-7, 1), (4.42e-7, 2.19e-7, 20)],
    "circles": [(3e-6, 5.47e-4, 1), (3e-6, 3.98e-4, 1), (3.64e-4, 5.25e-4, 17)],
    "billiards1d": [(2.44e-5, 7.29e-5, 1), (2.43e-5, 1.77e-5, 1), (2.93e-5, 4.37e-5, 5.1)],
    "billiards2d": [(5.13e-5, 2.70e-2, 1), (2.19e-5, 2.36e-2, 1), (2.37e-5, 1.57e-2, 2.71)],
    "pixels1d": [(1.57e-4, 3.87e-4, 1), (1.57e-4, 2.37e-4, 1), (1.74e-4, 2.64e-4, 4.1)],
    "pixels2d": [(1.99e-3, 6.41e-2, 1), (2.08e-3, 6.48e-2, 1), (3.90e-3, 3.71e-2, 3.2)],
}

TABLE: dict[str, dict[str, Reported]] = {
    task: {model: Reported(*line) for model, line in zip(_MODELS, lines, strict=True)}
    for task, lines in _LINES.items()
}
"""Table 1 by task and model, in the paper's order."""
