"""Panels show what they are given, where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Circle

from skipstone.drawing import panels
from skipstone.drawing.scene import Scene
from skipstone.drawing.style import INK, PALETTE, faded, look, new_figure

TABLE = Scene("plane", 0.1, (1.0, 0.0, 0.2))


@pytest.fixture
def axes() -> Any:
    with look():
        return new_figure(2, 2).subplots()


def circles(axes: Any) -> list[tuple[tuple[float, ...], float]]:
    return [(tuple(p.center), p.radius) for p in axes.patches if isinstance(p, Circle)]


def test_a_scene_splits_values_into_the_paths_of_balls() -> None:
    values = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(TABLE.paths(values)[1], values[:, 2:])
    over_time = Scene("time").paths(values)
    assert len(over_time) == 4
    np.testing.assert_array_equal(over_time[3], values[:, 3:])


def test_limits_are_the_table_or_leave_room_around_a_line() -> None:
    points = np.array([[0.0, 2.0], [10.0, 2.0]])
    np.testing.assert_array_equal(TABLE.limits(points), [[0, 0], [1, 1]])
    np.testing.assert_array_equal(Scene("film").limits(points), [[0, 0], [1, 1]])
    np.testing.assert_allclose(Scene("plane").limits(points), [[-0.8, -1], [10.8, 5]])


@pytest.mark.parametrize("kind", ["time", "plane", "film"])
def test_panels_have_the_limits_of_their_scene(axes: Any, kind: Any) -> None:
    panels.prepare_panel(axes, Scene(kind, 0.1), end=3.0)
    assert axes.get_xlim() == ((0, 3) if kind == "time" else (0, 1))
    assert axes.get_ylim() == (0, 1)
    assert axes.spines["top"].get_visible() == (kind != "time")


def test_only_balls_with_a_size_in_the_plane_are_circles(axes: Any) -> None:
    path = np.array([[0.2, 0.3], [0.4, 0.5]])
    for scene in (Scene("plane"), Scene("time", 0.1), Scene("film", 0.1)):
        panels.draw_rolled(axes, scene, path, INK)
        panels.draw_pocket(axes, scene)
    assert circles(axes) == []
    panels.draw_pocket(axes, TABLE)
    panels.draw_rolled(axes, TABLE, path, INK)
    assert circles(axes) == [((1.0, 0.0), 0.2), ((0.2, 0.3), 0.1), ((0.4, 0.5), 0.1)]
    panels.draw_rolled(axes, TABLE, path[:1], INK)
    assert len(circles(axes)) == 4


def test_a_path_fades_in_and_can_be_dashed(axes: Any) -> None:
    times, path = np.linspace(0, 1, 11), np.stack([np.linspace(0, 1, 11)] * 2, axis=-1)
    panels.draw_fading(axes, times, path, PALETTE[0])
    panels.draw_fading(axes, times, path, PALETTE[0], dashed=True)
    whole, dashed = (one for one in axes.collections if isinstance(one, LineCollection))
    assert len(whole.get_segments()) == 10
    np.testing.assert_allclose(to_rgba_array(whole.get_colors())[-1, :3], faded(PALETTE[0], 1))
    starts = [segment[0, 0] for segment in dashed.get_segments()]
    np.testing.assert_allclose(starts, [0, 0.1, 0.2, 0.5, 0.6, 0.7])
    shades = panels.fading(PALETTE[0], np.array([0.0, 2.0, 3.0]), palest=0.5, now=2.0)
    assert shades == [faded(PALETTE[0], share) for share in (0.5, 1, 1)]
    assert panels.fading(PALETTE[0], np.zeros(1)) == [faded(PALETTE[0], panels.PALEST)]


def test_steps_reach_from_update_to_update(axes: Any) -> None:
    panels.draw_steps(axes, np.array([0.1, 0.3]), 1.0, PALETTE[0])
    spans = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(spans, [(0.1, 0.3), (0.3, 1.0)])
    panels.draw_steps(axes, np.zeros(0), 1.0, PALETTE[0])
    assert len(axes.patches) == 2


def test_images_stand_at_their_times_with_a_line_for_marks_below(axes: Any) -> None:
    times, images = np.array([0.0, 1.0, 2.0]), np.zeros((3, 16), dtype=np.uint8)
    width, below = panels.film_strip(axes, times, [images, images], room=(1.0, 0.5))
    assert len(axes.images) == 6
    centres = [np.mean(image.get_extent()[:2]) for image in axes.images]
    np.testing.assert_allclose(centres, [0, 1, 2, 0, 1, 2], atol=1e-12)
    assert width < 1  # They do not touch.
    assert axes.get_ylim()[0] < below < 0
    assert axes.get_xlim() == (-width, 2 + width / 2)


def test_meetings_are_dots_between_centres_that_do_not_move_the_panel(axes: Any) -> None:
    panels.draw_meetings(axes, np.array([[[0.0, 0.0]], [[1.0, 0.5]]]))
    line, dot = axes.lines
    np.testing.assert_allclose(line.get_xydata(), [[0, 0], [1, 0.5]])
    np.testing.assert_allclose(dot.get_xydata(), [[0.5, 0.25]])
    assert not dot.get_in_layout()
