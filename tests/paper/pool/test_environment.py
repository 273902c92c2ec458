"""The pool table as others see it: Gymnasium's own checks, and shots with known ends."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from skipstone import InvalidInput
from skipstone.paper.pool.environment import Pool
from skipstone.paper.tasks.shots import SPEEDS

WINNING = [[0.3, 0.7], [0.6, 0.4]]
"""The target lies on the way from the cue ball to the pocket."""


def pool(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("skipstone/Pool-v0", **options)


# Velocities are velocities: scaling them to [-1, 1] would only hide what they are.
@pytest.mark.filterwarnings("ignore:.*normalized space")
def test_gymnasium_finds_nothing_wrong() -> None:
    check_env(pool(render_mode="rgb_array").unwrapped)


def test_a_straight_shot_sinks_the_target_and_one_away_from_it_does_not() -> None:
    env = pool()
    seen, info = env.reset(options={"table": WINNING})
    np.testing.assert_allclose(seen, np.ravel(WINNING), rtol=1e-6)
    assert info == {}
    seen, reward, terminated, truncated, info = env.step(np.array([1.0, -1.0]))
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["pocket_distance"] == pytest.approx(0.1 * 2**0.5)
    assert info["trajectory"].shape == (36, 2, 2)
    np.testing.assert_allclose(info["trajectory"][0], WINNING)
    np.testing.assert_allclose(info["trajectory"][-1].ravel(), seen, atol=1e-6)
    env.reset(options={"table": WINNING})
    _, reward, _, _, info = env.step(np.array([-1.0, 0.0]))
    assert (reward, info["success"]) == (0.0, False)


def test_a_seed_decides_the_table_and_the_shots() -> None:
    first, second = pool(), pool()
    np.testing.assert_array_equal(first.reset(seed=5)[0], second.reset(seed=5)[0])
    assert not np.array_equal(first.reset()[0], first.reset()[0])
    first.action_space.seed(1)
    second.action_space.seed(1)
    np.testing.assert_array_equal(first.action_space.sample(), second.action_space.sample())


def test_sampled_actions_are_allowed_and_from_the_documented_distribution() -> None:
    space = pool().action_space
    space.seed(0)
    shots = np.stack([space.sample() for _ in range(2000)])
    assert all(shot in space for shot in shots)
    speed = np.linalg.norm(shots, axis=1)
    np.testing.assert_allclose(np.quantile(speed, [0, 0.5, 1]), [0.5, 1.25, 2.0], atol=0.05)
    np.testing.assert_allclose((shots / speed[:, None]).mean(0), 0, atol=0.06)


@pytest.mark.parametrize(
    "action", [[0.1, 0.1], [2.0, 2.0], [1.0], [1.0, 0.0, 0.0], [np.nan, 1.0], 1.0, "left"]
)
def test_actions_that_are_not_shots(action: Any) -> None:
    assert action not in pool().action_space


def test_an_action_of_the_wrong_shape_or_size_is_an_error() -> None:
    env = pool(disable_env_checker=True)
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"two numbers; got an array of shape \(3,\)"):
        env.step(np.array([1.0, 0.0, 0.0]))
    with pytest.raises(InvalidInput, match=r"between 0.5 and 2; \[3.0, 4.0\] has 5"):
        env.step(np.array([3.0, 4.0]))
    with pytest.raises(InvalidInput, match="must be finite; got NaN"):
        env.step(np.array([np.nan, 1.0]))
    # Nothing is lost: the table is still there.
    assert env.step(np.array([SPEEDS[1], 0.0], dtype=np.float32))[2]


def test_a_table_is_for_one_shot() -> None:
    env = pool(disable_env_checker=True).unwrapped
    with pytest.raises(InvalidInput, match=r"call reset\(\)"):
        env.step(np.array([1.0, 0.0]))
    env.reset(seed=0)
    env.step(np.array([1.0, 0.0]))
    with pytest.raises(InvalidInput, match=r"call reset\(\)"):
        env.step(np.array([1.0, 0.0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": [[0.3, 0.3], [0.35, 0.3]]}, "balls must not overlap"),
        ({"table": [0.3, 0.3, 0.5, 0.5]}, "must have shape"),
        ({"tabel": WINNING}, r"can have a \"table\"; got \['tabel'\]"),
    ],
)
def test_impossible_tables_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pool().reset(options=options)


def test_an_unknown_render_mode_is_an_error() -> None:
    with pytest.raises(InvalidInput, match='render_mode must be "rgb_array"'):
        Pool(render_mode="ascii")


def test_rendering_shows_the_balls_and_then_their_way() -> None:
    env = pool(render_mode="rgb_array")
    env.reset(options={"table": WINNING})
    before: Any = env.render()
    env.step(np.array([1.0, -1.0]))
    after: Any = env.render()
    assert before.shape == after.shape == (480, 480, 3)
    assert before.dtype == np.uint8
    # The cue ball, blue, is where the table says; y points up.
    x, y = np.array(WINNING[0])
    pixel = before[int((1 - y) * 479), int(x * 479)].astype(int)
    assert pixel[2] > pixel[0] + 30
    assert (before != after).any()


def test_many_tables_at_once() -> None:
    tables = gymnasium.make_vec("skipstone/Pool-v0", num_envs=3, vectorization_mode="sync")
    seen, _ = tables.reset(seed=0)
    assert seen.shape == (3, 4)
    rewards = tables.step(np.tile([1.0, 0.0], (3, 1)))[1]
    assert rewards.shape == (3,)


def test_a_vector_of_tables_draws_shots_that_are_allowed() -> None:
    tables = gymnasium.make_vec("skipstone/Pool-v0", num_envs=3)
    tables.reset(seed=0)
    tables.action_space.seed(0)
    drawn = [tables.action_space.sample() for _ in range(20)]
    assert all(shots in tables.action_space for shots in drawn)
    shots = drawn[0]
    assert shots.shape == (3, 2)
    _, rewards, *_ = tables.step(shots)
    assert rewards.shape == (3,)
    assert 10 * shots not in tables.action_space
    assert shots[:2] not in tables.action_space
