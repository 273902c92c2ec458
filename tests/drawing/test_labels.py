"""Labels stand where they belong, and never on top of each other."""

from __future__ import annotations

import numpy as np
import pytest

from skipstone.drawing.labels import key, label_at, label_ends, label_points
from skipstone.drawing.style import INK, look, new_figure


def test_labels_at_ends_do_not_run_into_each_other() -> None:
    with look():
        axes = new_figure(3, 3).subplots()
        axes.set_yscale("log")
        axes.set_ylim(1, 100)
        ends = [(10.0, "a", INK), (10.5, "b", INK), (99.0, "c", INK), (np.nan, "d", INK)]
        label_ends(axes, ends, apart=0.1)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert set(heights) == {"a", "b", "c"}
    assert heights["b"] - heights["a"] >= 0.1 - 1e-9
    assert heights["a"] == pytest.approx(0.5, abs=0.03)
    assert max(heights.values()) <= 0.98


def test_labels_of_points_stand_at_their_x_and_of_none_nowhere() -> None:
    with look():
        axes = new_figure(3, 3).subplots()
        axes.set_ylim(0, 10)
        label_points(axes, 2.0, [(5.0, "a", INK), (5.1, "b", INK)], apart=0.2)
        label_points(axes, 2.0, [])
        label_at(axes, (1.0, 4.0), "c", INK, (3, 0))
    at = {text.get_text(): text.xy for text in axes.texts}  # pyright: ignore[reportAttributeAccessIssue]
    assert at == {"a": (2.0, 0.5), "b": (2.0, pytest.approx(0.7)), "c": (1.0, 4.0)}


def test_a_key_is_a_line_or_a_symbol() -> None:
    assert key("line", INK, lw=2).get_linestyle() == "-"
    assert key("symbol", INK, marker="o").get_linestyle() == "None"
