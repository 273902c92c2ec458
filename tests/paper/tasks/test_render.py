from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.paper.tasks.render import render

R = 0.1


def supersampled(position: Any, radius: Any, pixels: Any = 28, fine: Any = 20) -> Any:
    """The share of each pixel that a disc covers, by counting fine points."""
    axis = (np.arange(pixels * fine) + 0.5) / (pixels * fine)
    x, y = axis[None, :], 1 - axis[:, None]
    inside = (x - position[0]) ** 2 + (y - position[1]) ** 2 < radius**2
    return inside.reshape(pixels, fine, pixels, fine).mean(axis=(1, 3))


@given(st.floats(R, 1 - R), st.floats(R, 1 - R))
@settings(max_examples=40, deadline=None)
def test_brightness_is_the_share_of_a_pixel_that_is_covered(x: Any, y: Any) -> None:
    image = render(np.array([[x, y]]), R) / 255
    exact = supersampled((x, y), R)
    assert np.abs(image - exact).max() < 0.12
    assert image.sum() == pytest.approx(np.pi * (28 * R) ** 2, rel=0.03)


@given(st.floats(0.15, 0.85), st.floats(0.15, 0.85))
@settings(max_examples=40, deadline=None)
def test_the_centre_of_brightness_is_the_ball(x: Any, y: Any) -> None:
    image = render(np.array([[x, y]]), R).astype(float)
    centres = (np.arange(28) + 0.5) / 28
    weights = image / image.sum()
    assert (weights.sum(axis=0) * centres).sum() == pytest.approx(x, abs=0.002)
    assert (weights.sum(axis=1) * centres[::-1]).sum() == pytest.approx(y, abs=0.002)


def test_x_is_to_the_right_and_y_is_up() -> None:
    image = render(np.array([[0.9, 0.1]]), R)
    assert image[20:, 20:].sum() == image.sum() > 0


def test_balls_add_up_and_each_image_is_its_own() -> None:
    rng = np.random.default_rng(0)
    positions = np.stack([rng.uniform(0.1, 0.4, (3, 5, 2)), rng.uniform(0.6, 0.9, (3, 5, 2))], 2)
    images = render(positions, R)
    assert images.shape == (3, 5, 28, 28)
    assert images.dtype == np.uint8
    for index in np.ndindex(3, 5):
        both = render(positions[index][:1], R).astype(int) + render(positions[index][1:], R)
        np.testing.assert_array_equal(images[index], both)


@pytest.mark.parametrize("radius", [0.01, 0.3, 0.5])
def test_other_sizes(radius: Any) -> None:
    image = render(np.array([[0.5, 0.5]]), radius) / 255
    assert image.sum() == pytest.approx(np.pi * (28 * radius) ** 2, rel=0.02 if radius > 0.1 else 1)
    np.testing.assert_array_equal(image, image[::-1])
    np.testing.assert_array_equal(image, image.T)
