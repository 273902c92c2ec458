"""Contacts that trip up simulators: simultaneous, grazing, touching, at rest."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.paper.tasks import billiards
from skipstone.paper.tasks.billiards import simulate
from skipstone.paper.tasks.events import Kind

R = 0.1


def play(positions: Any, velocities: Any, duration: Any = 0.1, radius: Any = R) -> Any:
    """One trajectory: its events and final state."""
    motion = simulate([positions], [velocities], duration, radius)
    position, velocity = motion.state_at([duration])
    return motion.events, position[0, 0], velocity[0, 0]


def test_head_on_balls_swap_velocities_at_the_known_time() -> None:
    events, position, velocity = play([[0.3, 0.5], [0.7, 0.5]], [[1, 0], [-1, 0]], 0.15)
    np.testing.assert_allclose(events.times, [0.1])
    assert (events.kinds[0], events.balls[0], events.others[0]) == (Kind.BALL, 0, 1)
    np.testing.assert_allclose(position, [[0.35, 0.5], [0.65, 0.5]])
    np.testing.assert_allclose(velocity, [[-1, 0], [1, 0]])


def test_at_the_time_of_a_collision_velocities_are_those_after_it() -> None:
    motion = simulate([[[0.3, 0.5], [0.7, 0.5]]], [[[1, 0], [-1, 0]]], 0.15)
    (time,) = motion.events.times
    position, velocity = motion.state_at([np.nextafter(time, 0), time])
    np.testing.assert_allclose(velocity[0, :, 0], [[1, 0], [-1, 0]])
    np.testing.assert_allclose(position[0, 0], position[0, 1], atol=1e-12)


def test_a_start_a_hair_inside_a_wall_or_a_ball_is_set_right() -> None:
    deep = 5e-10
    events, position, velocity = play([[0.9 + deep, 0.1], [0.7 + 3 * deep, 0.1]], [[1, 0], [0, 0]])
    assert events.times.min() == 0
    assert (velocity**2).sum() == pytest.approx(1)
    assert position.max() <= 0.9


def test_an_oblique_hit_sends_equal_balls_off_at_a_right_angle() -> None:
    # The line of centres at contact is 30° off the direction of motion.
    _, _, velocity = play([[0.2, 0.4], [0.2 + 0.1 + 0.1 * 3**0.5, 0.5]], [[1, 0], [0, 0]], 0.15)
    cos, sin = 3**0.5 / 2, 0.5
    np.testing.assert_allclose(velocity[1], [cos * cos, cos * sin], atol=1e-12)
    np.testing.assert_allclose(velocity[0], [sin * sin, -cos * sin], atol=1e-12)
    assert abs(velocity[0] @ velocity[1]) < 1e-12


def test_balls_at_rest_stay_where_they_are() -> None:
    events, position, velocity = play([[0.1, 0.1], [0.3, 0.1]], np.zeros((2, 2)), 100.0)
    assert len(events) == 0
    np.testing.assert_array_equal(position, [[0.1, 0.1], [0.3, 0.1]])
    np.testing.assert_array_equal(velocity, 0)


def test_a_corner_is_two_walls_at_once() -> None:
    events, position, velocity = play([[0.85, 0.15]], [[1, -1]])
    np.testing.assert_allclose(events.times, [0.05, 0.05])
    assert sorted(events.others.tolist()) == [1, 2]
    np.testing.assert_allclose(velocity, [[-1, 1]])
    np.testing.assert_allclose(position, [[0.85, 0.15]])


def test_a_grazing_contact_exchanges_nothing() -> None:
    events, position, velocity = play([[0.2, 0.5], [0.5, 0.7]], [[1, 0], [0, 0]], 0.6)
    assert len(events) == 0
    np.testing.assert_allclose(position, [[0.8, 0.5], [0.5, 0.7]])
    np.testing.assert_array_equal(velocity, [[1, 0], [0, 0]])


@pytest.mark.parametrize("depth", [1e-3, 1e-6, 1e-9])
def test_almost_grazing_contacts_deflect_by_almost_nothing(depth: Any) -> None:
    _, position, velocity = play([[0.2, 0.5], [0.5, 0.7 - depth]], [[1, 0], [0, 0]], 0.5)
    # cos² of the impact angle is 1 − (1 − depth/0.2)²: the share of energy handed over.
    share = 1 - (1 - depth / 0.2) ** 2
    assert velocity[1] @ velocity[1] == pytest.approx(share, rel=1e-4)
    assert np.linalg.norm(position[0] - position[1]) > 0.2 - 1e-9


def test_touching_balls_that_move_apart_or_along_do_not_collide() -> None:
    rounding = [[1 + 4e-16, 0], [1, 0]]
    for velocities in ([[-1, 0], [1, 0]], [[0, 1], [0, 1]], [[0, 1], [0, -1]], rounding):
        events, _, velocity = play([[0.4, 0.5], [0.6, 0.5]], velocities)
        assert len(events) == 0
        np.testing.assert_array_equal(velocity, velocities)


def test_touching_balls_that_close_collide_at_once() -> None:
    events, _, velocity = play([[0.4, 0.5], [0.6, 0.5]], [[1, 0], [0, 0]])
    np.testing.assert_array_equal(events.times, [0])
    np.testing.assert_allclose(velocity, [[0, 0], [1, 0]], atol=1e-15)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_newtons_cradle(order: Any) -> None:
    """One ball hits a row of touching ones: the last leaves, whatever the balls are called."""
    positions = np.array([[0.1], [0.4], [0.6], [0.8]])
    velocities = np.array([[1.0], [0], [0], [0]])
    _, _, velocity = play(positions[order], velocities[order], 0.15)
    np.testing.assert_allclose(velocity, np.array([[0], [0], [0], [1.0]])[order], atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_two_hit_the_middle_one_at_once(axis: Any) -> None:
    """From both sides at the same time: the outer two turn round, the middle one stays."""
    positions, velocities = np.full((3, 2), 0.5), np.zeros((3, 2))
    positions[:, axis], velocities[:, axis] = [0.2, 0.5, 0.8], [1, 0, -1]
    events, position, velocity = play(positions, velocities, 0.2)
    np.testing.assert_allclose(events.times, 0.1)
    np.testing.assert_allclose(velocity, -velocities, atol=1e-12)
    np.testing.assert_allclose(position[:, axis], [0.2, 0.5, 0.8])


def test_a_ball_between_a_wall_and_another_returns_the_blow() -> None:
    """A ball that touches the wall is hit: it bounces at once and sends the other back."""
    events, _, velocity = play([[0.1], [0.35]], [[0], [-1]])
    np.testing.assert_allclose(events.times, 0.05)
    assert events.kinds.tolist() == [Kind.BALL, Kind.WALL, Kind.BALL]
    np.testing.assert_allclose(velocity, [[0], [1]], atol=1e-12)


def test_wall_and_ball_at_the_same_time() -> None:
    events, _, velocity = play([[0.15, 0.5], [0.4, 0.5]], [[-1, 0], [-2, 0]], 0.06)
    assert events.times[0] == pytest.approx(0.05)
    assert (velocity**2).sum() == pytest.approx(5)
    assert velocity[0, 0] < velocity[1, 0]


# The example once made two touching balls with the same velocity collide for ever.
@example(2621, 4.147890791778034)
@given(st.integers(0, 10_000), st.floats(0, 2 * np.pi))
@settings(max_examples=40, deadline=None)
def test_a_packed_rack_is_broken_in_finite_time(seed: int, angle: Any) -> None:
    """Six touching balls in a triangle and a fast cue ball: energy stays, nothing overlaps."""
    radius, row = 0.05, np.sqrt(3) * 0.05
    rack = [[0.6 + row * i, 0.5 + radius * (2 * j - i)] for i in range(3) for j in range(i + 1)]
    positions = np.array([[0.2, 0.5], *rack])
    cue = [np.cos(angle), np.sin(angle)] if seed % 2 else [1.0, 0.0]
    velocities = np.zeros((7, 2))
    velocities[0] = cue
    motion = simulate(positions[None], velocities[None], 3.0, radius)
    position, velocity = motion.state_at(np.random.default_rng(seed).uniform(0, 3, 100))
    np.testing.assert_allclose((velocity**2).sum((-1, -2)), 1, rtol=1e-12)
    one, two = np.triu_indices(7, 1)
    gaps = np.linalg.norm(position[:, :, one] - position[:, :, two], axis=-1)
    assert gaps.min() > 2 * radius - 1e-9


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_momentum_changes_only_at_walls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positions = np.array([[[0.3, 0.3], [0.5, 0.3], [0.7, 0.3], [0.5, 0.5]]])
    motion = simulate(positions, rng.normal(size=positions.shape), 1.0)
    before = motion.segments.velocities[:-1].sum(axis=1)
    change = motion.events.velocities.sum(axis=1) - before
    met_ball = motion.events.kinds == Kind.BALL
    np.testing.assert_allclose(change[met_ball], 0, atol=1e-12)
    assert (np.abs(change[~met_ball]).max(axis=1) > 0).all()


def test_jammed_balls_are_an_error_rather_than_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(billiards, "MOST_COLLISIONS", 1000)
    with pytest.raises(InvalidInput, match="room to move"):
        play([[0.1], [0.3], [0.5], [0.7], [0.9]], [[1], [0], [0], [0], [0]])
