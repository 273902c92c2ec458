from typing import Any

import numpy as np
import pytest

from skipstone.paper.tasks import find_task, record, shots, task_options


@pytest.fixture(scope="module")
def recording() -> Any:
    task = find_task("shots")
    return record(task, task_options(task, trajectories=400))


def test_balls_rest_during_the_context_and_the_cue_moves_from_the_shot_on(recording: Any) -> None:
    values, controls = recording.values, recording.controls
    assert values.shape == (400, 39, 4)
    assert controls.shape == (400, 39, 2)
    assert (values[:, :4] == values[:, :1]).all()
    assert (np.delete(controls, 3, axis=1) == 0).all()
    # Where nothing is hit in between, the first move is the control times the spacing.
    first = recording.events.trajectories[recording.events.times <= recording.times[0, 4]]
    free = np.setdiff1d(np.arange(400), first)
    assert len(free) > 200
    moved = values[free, 4, :2] - values[free, 3, :2]
    np.testing.assert_allclose(moved, 0.05 * controls[free, 3], atol=1e-12)
    assert (values[free, 4, 2:] == values[free, 3, 2:]).all()
    assert recording.events.times.min() >= recording.times[0, 3]


def test_the_shot_is_struck_when_it_is_observed_also_at_irregular_times() -> None:
    task = find_task("shots")
    recording = record(task, task_options(task, trajectories=50, jitter=0.9, drop=0.5))
    assert recording.controls is not None
    assert (recording.controls[:, 3] != 0).any(axis=1).all()
    assert recording.keep[:, :4].all()
    motion = shots.play(
        recording.values[:, 0].reshape(-1, 2, 2), recording.controls[:, 3], duration=3.0
    )
    since = recording.times[:, 3:] - recording.times[:, 3:4]
    replayed = motion.state_at(since)[0].reshape(50, -1, 4)
    np.testing.assert_allclose(recording.values[:, 3:], replayed, atol=1e-9)


def test_random_shots_favour_no_direction_and_keep_to_their_speeds() -> None:
    actions = shots.random_shots(np.random.default_rng(0), 20_000)
    speed = np.linalg.norm(actions, axis=1)
    slow, fast = shots.SPEEDS
    assert slow <= speed.min() < slow + 0.01
    assert fast - 0.01 < speed.max() <= fast
    np.testing.assert_allclose(np.quantile(speed, 0.5), (slow + fast) / 2, atol=0.03)
    angle = np.arctan2(actions[:, 1], actions[:, 0])
    counts, _ = np.histogram(angle, bins=8, range=(-np.pi, np.pi))
    assert np.abs(counts / 2500 - 1).max() < 0.1


def test_a_straight_shot_pockets_the_target() -> None:
    """Cue, target and pocket on one line: the target takes all speed and runs into the corner."""
    tables = np.array([[[0.4, 0.6], [0.6, 0.4]]])
    motion = shots.play(tables, np.array([[1.0, -1.0]]))
    assert shots.pocket_distance(motion)[0] == pytest.approx(0.1 * 2**0.5)
    away = shots.play(tables, np.array([[-1.0, 0.0]]))
    assert shots.pocket_distance(away)[0] == pytest.approx(0.4 * 2**0.5)


def test_pocket_distance_is_the_minimum_over_all_times() -> None:
    rng = np.random.default_rng(1)
    motion = shots.play(shots.random_tables(rng, 200), shots.random_shots(rng, 200))
    exact = shots.pocket_distance(motion)
    path = motion.state_at(np.linspace(0, motion.duration, 5001))[0][:, :, shots.TARGET]
    sampled = np.linalg.norm(path - shots.POCKET, axis=-1).min(axis=1)
    assert (exact <= sampled + 1e-12).all()
    np.testing.assert_allclose(exact, sampled, atol=1e-3)


def test_the_game_is_winnable_but_not_by_luck() -> None:
    rng = np.random.default_rng(2)
    tables = np.repeat(shots.random_tables(rng, 40), 500, axis=0)
    won = shots.pocket_distance(shots.play(tables, shots.random_shots(rng, 20_000)))
    won = (won < shots.POCKET_RADIUS).reshape(40, 500)
    assert 0.005 < won.mean() < 0.06
    assert won.any(axis=1).mean() > 0.8
