"""The simulator against laws, closed forms and two independent simulations."""

from typing import Any

import numpy as np
import pymunk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_loop import simulate_one
from starts import random_start

from skipstone.errors import InvalidInput
from skipstone.paper.tasks.balls import place_balls
from skipstone.paper.tasks.billiards import simulate
from skipstone.paper.tasks.events import Kind

R = 0.1
CASES = [(1, 1, R), (2, 1, R), (4, 1, R), (1, 2, R), (2, 2, R), (5, 2, R), (3, 3, R), (12, 2, 0.05)]


def energy(velocities: Any) -> Any:
    return (velocities**2).sum(axis=(-1, -2))


def closest_pair(positions: Any) -> Any:
    one, two = np.triu_indices(positions.shape[-2], 1)
    gaps = positions[..., one, :] - positions[..., two, :]
    return np.linalg.norm(gaps, axis=-1).min(initial=np.inf)


def test_energy_is_conserved_over_ten_thousand_trajectories() -> None:
    positions, velocities = random_start(10_000)
    motion = simulate(positions, velocities, 2.2)
    assert len(motion.events) > 50_000
    assert np.abs(energy(motion.events.velocities) - 2).max() < 1e-10


@pytest.mark.parametrize(("balls", "axes", "radius"), CASES)
def test_never_overlapping_nor_in_a_wall(balls: int, axes: int, radius: Any) -> None:
    motion = simulate(*random_start(100, balls, axes, radius), duration=3.0, radius=radius)
    times = np.random.default_rng(1).uniform(0, 3, (100, 1000))
    positions, velocities = motion.state_at(times)
    assert positions.min() > radius - 1e-9
    assert positions.max() < 1 - radius + 1e-9
    assert closest_pair(positions) > 2 * radius - 1e-9
    np.testing.assert_allclose(
        energy(velocities), np.repeat(energy(motion.velocities)[:, None], 1000, 1), rtol=1e-12
    )


@pytest.mark.parametrize("axes", [1, 2])
def test_running_backwards_returns_to_the_start(axes: int) -> None:
    positions, velocities = random_start(500, axes=axes)
    forward = simulate(positions, velocities, 1.5)
    end, final = (state[:, 0] for state in forward.state_at([1.5]))
    back = simulate(end, -final, 1.5)
    start, returned = (state[:, 0] for state in back.state_at([1.5]))
    # Each meeting of balls multiplies errors, so only a few of them can be undone exactly.
    meetings = np.bincount(forward.events.trajectories, forward.events.kinds, minlength=500)
    few = meetings <= 3
    assert few.sum() > 250
    assert np.abs(start - positions)[few].max() < 1e-9
    assert np.abs(returned + velocities)[few].max() < 1e-9


@pytest.mark.parametrize("axis", [0, 1])
def test_a_mirrored_start_gives_the_mirrored_motion(axis: Any) -> None:
    positions, velocities = random_start(200)
    mirrored, flipped = positions.copy(), velocities.copy()
    mirrored[..., axis], flipped[..., axis] = 1 - positions[..., axis], -velocities[..., axis]
    times = np.linspace(0, 1, 21)
    straight = simulate(positions, velocities, 1.0).state_at(times)[0]
    mirror = simulate(mirrored, flipped, 1.0).state_at(times)[0]
    straight[..., axis] = 1 - straight[..., axis]
    np.testing.assert_allclose(mirror, straight, atol=1e-9)


def test_names_of_balls_and_axes_do_not_matter() -> None:
    positions, velocities = random_start(200, balls=3)
    times = np.linspace(0, 1, 11)
    plain = simulate(positions, velocities, 1.0).state_at(times)[0]
    order = [2, 0, 1]
    renamed = simulate(positions[:, order], velocities[:, order], 1.0).state_at(times)[0]
    turned = simulate(positions[..., ::-1], velocities[..., ::-1], 1.0).state_at(times)[0]
    np.testing.assert_allclose(renamed, plain[:, :, order], atol=1e-8)
    np.testing.assert_allclose(turned, plain[..., ::-1], atol=1e-8)


def bounce_between(low: Any, high: Any, start: Any, velocity: Any, times: Any) -> Any:
    """A point between two walls, in closed form: a triangle wave."""
    length = high - low
    phase = np.mod(start - low + velocity * times, 2 * length)
    return low + length - np.abs(length - phase)


@given(st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_on_a_line_equal_balls_swap_velocities(balls: int, seed: int) -> None:
    """So, with their widths cut out, they are points that pass through each other."""
    radius = 0.08
    rng = np.random.default_rng(seed)
    positions = np.sort(place_balls(rng, 20, balls, 1, radius), axis=1)
    velocities = rng.normal(size=positions.shape)
    times = np.linspace(0, 2, 41)
    found = simulate(positions, velocities, 2.0, radius).state_at(times)[0][..., 0]
    widths = radius * (2 * np.arange(balls) + 1)
    points = (positions[..., 0] - widths)[:, None]
    length = 1 - 2 * radius * balls
    free = bounce_between(0, length, points, velocities[:, None, :, 0], times[:, None])
    np.testing.assert_allclose(found, np.sort(free, axis=-1) + widths, atol=1e-9)


def test_a_single_ball_is_a_triangle_wave_along_each_axis() -> None:
    positions, velocities = random_start(100, balls=1)
    times = np.linspace(0, 5, 77)
    found = simulate(positions, velocities, 5.0).state_at(times)[0]
    exact = bounce_between(R, 1 - R, positions[:, None], velocities[:, None], times[:, None, None])
    np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize(("balls", "axes", "radius"), CASES)
def test_agrees_with_the_plain_loop(balls: int, axes: int, radius: Any) -> None:
    positions, velocities = random_start(20, balls, axes, radius, seed=3)
    times = np.linspace(0, 0.8, 9)
    motion = simulate(positions, velocities, 0.8, radius)
    found = motion.state_at(times)[0]
    for row in range(20):
        seen, collisions = simulate_one(positions[row], velocities[row], times, radius)
        np.testing.assert_allclose(found[row], seen, atol=1e-8)
        events = motion.events[row]
        np.testing.assert_allclose(events.times, [c.time for c in collisions], atol=1e-8)
        for event, collision in enumerate(collisions):
            ball, other = int(events.balls[event]), int(events.others[event])
            met_ball = events.kinds[event] == Kind.BALL
            met = other if met_ball else f"{'xyz'[other // 2]}{other % 2}"
            assert collision.partners == (ball, met)


def pymunk_positions(positions: Any, velocities: Any, times: Any, step: Any) -> Any:
    space = pymunk.Space()
    space.collision_slop = 0.0
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    for one, two in zip(corners, corners[1:] + corners[:1], strict=True):
        wall = pymunk.Segment(space.static_body, one, two, 0)
        wall.elasticity, wall.friction = 1, 0
        space.add(wall)
    balls = []
    for place, velocity in zip(positions, velocities, strict=True):
        body = pymunk.Body(1, float("inf"))
        body.position, body.velocity = tuple(place), tuple(velocity)
        shape = pymunk.Circle(body, R)
        shape.elasticity, shape.friction = 1, 0
        space.add(body, shape)
        balls.append(body)
    seen, now = [], 0
    for time in times:
        while now < round(time / step):
            space.step(step)
            now += 1
        seen.append([tuple(ball.position) for ball in balls])
    return np.array(seen)


def test_agrees_with_pymunk_until_chaos_separates_them() -> None:
    """pymunk notices a collision up to a step late: an error of about a step each time, which
    every meeting of two balls then multiplies."""
    positions, velocities = random_start(12, seed=5)
    times = np.linspace(0, 2, 41)
    motion = simulate(positions, velocities, 2.0)
    found = motion.state_at(times)[0]
    compared = 0
    for row in range(12):
        events = motion.events[row]
        meetings = events.times[events.kinds == Kind.BALL]
        until = meetings[1] if len(meetings) > 1 else np.inf
        theirs = pymunk_positions(positions[row], velocities[row], times, step=1e-4)
        before = times < until
        np.testing.assert_allclose(found[row][before], theirs[before], atol=2e-3)
        compared += int((events.times < until).sum())
    assert compared > 60


def test_batch_composition_never_changes_a_trajectory() -> None:
    positions, velocities = random_start(64)
    times = np.linspace(0, 2, 17)
    together = simulate(positions, velocities, 2.0).state_at(times)[0]
    alone = simulate(positions[7:8], velocities[7:8], 2.0).state_at(times)[0]
    np.testing.assert_array_equal(together[7:8], alone)


def test_stopping_and_going_on_is_the_same_motion() -> None:
    positions, velocities = random_start(100)
    whole = simulate(positions, velocities, 1.0)
    middle = (state[:, 0] for state in whole.state_at([0.37]))
    rest = simulate(*middle, duration=0.63)
    np.testing.assert_allclose(rest.state_at([0.63])[0], whole.state_at([1.0])[0], atol=1e-9)


def test_state_at_takes_times_per_trajectory_and_inputs_are_left_alone() -> None:
    positions, velocities = random_start(5)
    before = positions.copy()
    motion = simulate(positions, velocities, 1.0)
    times = np.random.default_rng(0).uniform(0, 1, (5, 4))
    together = motion.state_at(times)[0]
    for row in range(5):
        np.testing.assert_array_equal(together[row], motion.state_at(times[row])[0][row])
    np.testing.assert_array_equal(positions, before)


@pytest.mark.parametrize("times", [[-0.1], [1.1], [np.nan], 0.5, np.zeros((3, 2))])
def test_times_outside_the_motion_are_refused(times: Any) -> None:
    with pytest.raises(InvalidInput, match="times must"):
        simulate(*random_start(2), duration=1.0).state_at(times)


@pytest.mark.parametrize(
    ("positions", "velocities", "duration", "radius", "rule"),
    [
        ([[[0.5, 0.5]]], [[[1.0]]], 1, R, "same shape"),
        ([[0.5, 0.5]], [[0.5, 0.5]], 1, R, "first axis"),
        ([[[0.5, 0.05]]], [[[1, 0]]], 1, R, "within the box"),
        ([[[0.5, 0.5], [0.6, 0.5]]], np.zeros((1, 2, 2)), 1, R, "overlap by 0.1"),
        ([[[0.5, np.nan]]], [[[1, 0]]], 1, R, "finite"),
        ([[[0.5, 0.5]]], [[[1, 0]]], -1, R, "duration"),
        ([[[0.5, 0.5]]], [[[1, 0]]], 1, 0, "radius"),
    ],
)
def test_impossible_starts_are_refused(
    positions: Any, velocities: Any, duration: Any, radius: Any, rule: Any
) -> None:
    with pytest.raises(InvalidInput, match=rule):
        simulate(positions, velocities, duration, radius)
