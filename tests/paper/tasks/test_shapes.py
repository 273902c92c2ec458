from typing import Any

import numpy as np
import pytest

from skipstone.paper.tasks import find_task, record, task_options


def recorded(name: str, **options: Any) -> Any:
    task = find_task(name)
    return record(task, task_options(task, **{"trajectories": 300, **options}))


def test_lines_advance_by_a_constant_at_a_random_height() -> None:
    values = recorded("lines").values
    assert values.shape == (300, 21, 2)
    np.testing.assert_allclose(np.diff(values[..., 0], axis=1), 0.1)
    assert (np.diff(values[..., 1], axis=1) == 0).all()
    assert 0 < values[..., 1].min() < 0.05
    assert 0.95 < values[..., 1].max() < 1


def test_circles_keep_their_radius_and_tangential_speed() -> None:
    values = recorded("circles").values
    assert values.shape == (300, 25, 2)
    radius = np.linalg.norm(values, axis=-1)
    np.testing.assert_allclose(radius, radius[:, :1].repeat(25, 1))
    assert 1 < radius.min() < 1.05
    assert 1.95 < radius.max() < 2
    angle = np.unwrap(np.arctan2(values[..., 1], values[..., 0]), axis=1)
    np.testing.assert_allclose(np.diff(angle, axis=1) * radius[:, 1:], 0.3)
    assert np.ptp(angle[:, 0]) > 6


@pytest.mark.parametrize("name", ["lines", "circles"])
def test_irregular_times_only_change_when_one_looks(name: str) -> None:
    plain, jittered = recorded(name), recorded(name, jitter=0.5)
    np.testing.assert_array_equal(plain.values[:, 0], jittered.values[:, 0])
    assert (plain.times[:, 1:] != jittered.times[:, 1:]).all()
    assert len(plain.events) == 0
