"""Gymnasium: its own checks, an integrator that is known in closed form, and recorded episodes."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import jaxtyping
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from torch import Tensor

from helpers import random_batch
from skipstone import PCODE, RNN, Ensemble, InvalidInput, LatentODE, Model, ModelConfig, Sequences
from skipstone.integrations.gymnasium import ModelEnv, sequences_from_episodes
from skipstone.path import Path

BOX = spaces.Box(-1, 1, (2,), np.float32)
SEEN = spaces.Box(-50, 50, (2,), np.float32)


class Integrator(Model[ModelConfig]):
    """x' = u, exactly, for the control of the last observation."""

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def rollout(self, context: Sequences, until: Any, controls: Any = None, **_: Any) -> Path:
        context = self.prepare_context(context)
        end = self.end_times(context, until)
        assert context.controls is not None
        start, push = context.values[:, -1:], context.controls[:, -1:]

        def predict(segment: Tensor, offset: Tensor) -> tuple[Tensor, int]:
            return start + push * offset[..., None].to(push.dtype), 0

        return Path(predict, context.ends[:, None], end)

    def loss(self, batch: Sequences, draws: Any = None) -> Any:
        raise NotImplementedError


def integrator(control: int = 2) -> Integrator:
    return Integrator(ModelConfig(dim=control, control=control, num_context=2, time_unit=0.5))


def starts(control: int = 2) -> Sequences:
    return random_batch(0, [2, 4, 3], control, control, irregular=False, dtype=torch.float32)


def square(before: np.ndarray, action: Any, after: np.ndarray) -> float:
    return -float((after**2).sum())


def env_of(model: Model[Any], **options: Any) -> ModelEnv:
    given = {"action_space": BOX, "observation_space": SEEN, **options}
    return ModelEnv(model, starts(), square, **given)


@pytest.mark.filterwarnings("ignore:.*not having a spec")
@pytest.mark.parametrize("kind", [PCODE, RNN, LatentODE])
def test_gymnasium_finds_nothing_wrong(kind: type[Model[Any]]) -> None:
    data = random_batch(1, [12, 9], 2, 2, dtype=torch.float32)
    model = kind.for_data(data, hidden=8, num_context=2)
    check_env(env_of(model))
    if kind is RNN:
        check_env(env_of(Ensemble([model, kind.for_data(data, hidden=8, num_context=2)])))


def test_a_step_holds_its_action_for_an_interval() -> None:
    env = env_of(integrator(), interval=0.25)
    place, info = env.reset(options={"start": 1})
    np.testing.assert_allclose(place, starts().values[1, -1].numpy())
    assert info == {}
    for action in ([1.0, 0.0], [-0.5, 0.25], [0.0, 0.0]):
        after, reward, terminated, truncated, info = env.step(np.array(action, np.float32))
        np.testing.assert_allclose(after, place + 0.25 * np.array(action), rtol=1e-6)
        assert after.dtype == np.float32
        assert (reward, terminated, truncated, info) == (
            square(place, action, after),
            False,
            False,
            {},
        )
        place = after


def test_a_step_is_a_rollout_from_what_was_seen_and_done() -> None:
    data = random_batch(3, [12, 9], 2, 2, dtype=torch.float32)
    model = PCODE.for_data(data, hidden=8, num_context=2)
    env = env_of(model)
    env.reset(options={"start": 0})
    context, spacing = starts()[0].tail(2), model.config.time_unit
    times, values, controls = context.times, context.values, context.controls
    assert controls is not None
    for action in ([0.5, -1.0], [0.3, 0.2]):
        controls = torch.cat([controls[:, :-1], torch.tensor([[action]])], dim=1)
        until = times[:, -1:] + spacing
        with torch.no_grad():
            context = Sequences(times, values, controls).tail(2)
            expected = model.rollout(context, float(until)).evaluate(until)
        after, *_ = env.step(np.array(action, np.float32))
        np.testing.assert_allclose(after, expected[0, 0].numpy(), rtol=1e-6)
        times, values = torch.cat([times, until], 1), torch.cat([values, expected], 1)
        controls = torch.cat([controls, controls[:, -1:]], dim=1)


def test_discrete_actions_have_a_control_each() -> None:
    env = ModelEnv(integrator(3), starts(3), square, spaces.Discrete(3, start=-1), interval=1.0)
    before, _ = env.reset(seed=0)
    after, *_ = env.step(-1)
    np.testing.assert_allclose(after - before, [1, 0, 0], atol=1e-6)
    with pytest.raises(gymnasium.error.InvalidAction, match=r"must be in Discrete\(3"):
        env.step(2)


def test_predictions_stay_inside_and_episodes_end() -> None:
    low, high = np.full(2, -50, np.float32), np.array([50, 1.5], np.float32)
    env = env_of(
        integrator(),
        observation_space=spaces.Box(low, high),
        terminated=lambda seen: seen[1] >= 1.5,
        interval=100.0,
    )
    env.reset(options={"start": 0})
    after, _, terminated, _, _ = env.step(np.array([0.0, 1.0], np.float32))
    assert after[1] == 1.5
    assert terminated
    with pytest.raises(gymnasium.error.ResetNeeded, match="Call reset"):
        env.step(np.zeros(2, np.float32))


def test_a_seed_decides_the_start() -> None:
    env = env_of(integrator())
    np.testing.assert_array_equal(env.reset(seed=7)[0], env.reset(seed=7)[0])
    env.reset(seed=0)
    assert len({tuple(env.reset()[0]) for _ in range(30)}) == 3


@pytest.mark.parametrize("action", [[2.0, 0.0], [0.0], "up", [np.nan, 0.0], None])
def test_what_is_no_action_is_refused_in_gymnasiums_way(action: Any) -> None:
    env = env_of(integrator())
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, np.float32))
    env.reset()
    with pytest.raises(gymnasium.error.InvalidAction, match="an action must be in Box") as caught:
        env.step(action)
    assert isinstance(caught.value, InvalidInput)


def test_numbers_that_are_none_are_refused_in_gymnasiums_way() -> None:
    env = ModelEnv(integrator(), starts(), lambda *_: np.nan, BOX)
    env.reset()
    with pytest.raises(gymnasium.error.Error, match="reward must be a finite"):
        env.step(np.zeros(2, np.float32))
    every: list[Any] = [np.zeros(2), None, "1"]
    for wrong in every:
        env = ModelEnv(integrator(), starts(), lambda *_, wrong=wrong: wrong, BOX)
        env.reset()
        with pytest.raises(InvalidInput, match="reward must return a number; it returned"):
            env.step(np.zeros(2, np.float32))
    env = ModelEnv(integrator(), starts(), square, BOX, interval=1e300)
    env.reset()
    with pytest.raises(gymnasium.error.Error, match="prediction must be finite"):
        env.step(np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "runs/balls"}, "skipstone.Model"),
        ({"starts": np.zeros((1, 2, 2))}, "must be Sequences"),
        ({"starts": random_batch(0, [4], 2)}, "2 features and 2 controls, and starts have 2 and 0"),
        ({"starts": random_batch(0, [4], 2, 2, missing=0.9)}, "missing values"),
        ({"action_space": spaces.Discrete(3)}, r"Box of 2 numbers or Discrete\(2\)"),
        ({"action_space": None}, "got None"),
        ({"observation_space": spaces.Box(0, 1, (3,))}, r"shape \(2,\)"),
        ({"interval": 0.0}, "interval must be above 0"),
        ({"reward": 1.0}, "reward must be a function; got 1.0"),
        ({"reward": None}, "reward must be a function; got None"),
        ({"terminated": True}, "terminated must be a function; got True"),
    ],
)
def test_an_environment_that_cannot_be_is_refused(
    changed: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A user's annotations are checked by nobody.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    given = {"model": integrator(), "starts": starts(), "reward": square, "action_space": BOX}
    with pytest.raises(ValueError, match=message):
        ModelEnv(**{**given, **changed})


@pytest.mark.parametrize("options", [{"start": 3}, {"start": "first"}, {"begin": 0}])
def test_options_of_a_reset_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="start"):
        env_of(integrator()).reset(options=options)


# Episodes.


def played(seed: int, steps: int) -> list[tuple[Any, ...]]:
    """Transitions of a random walk whose steps are its actions."""
    rng = np.random.default_rng(seed)
    place, transitions = rng.normal(size=2), []
    for _ in range(steps):
        action = rng.uniform(-1, 1, 2)
        transitions.append((place, action, 0.0, place + action, False))
        place = place + action
    return transitions


def as_minari(transitions: list[tuple[Any, ...]]) -> SimpleNamespace:
    observations = np.stack([t[0] for t in transitions] + [transitions[-1][3]])
    actions = np.stack([t[1] for t in transitions])
    return SimpleNamespace(id=3, observations=observations, actions=actions, rewards=actions[:, 0])


def test_the_control_of_an_observation_leads_to_the_next() -> None:
    data = sequences_from_episodes([played(0, 5), played(1, 3)], interval=0.1)
    assert data.lengths.tolist() == [6, 4]
    np.testing.assert_allclose(data.times[0].numpy(), 0.1 * np.arange(6))
    assert data.controls is not None
    for row, length in enumerate([6, 4]):
        steps = data.values[row, :length].diff(dim=0)
        torch.testing.assert_close(steps, data.controls[row, : length - 1])


def test_both_forms_of_an_episode_are_the_same() -> None:
    episodes = [played(0, 5), played(1, 3)]
    ours, theirs = (sequences_from_episodes(e) for e in (episodes, map(as_minari, episodes)))
    for name in ("times", "values", "controls", "mask"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=0, atol=0)


def test_episodes_of_an_environment_come_back_as_they_were() -> None:
    env, episode = gymnasium.make("CartPole-v1"), []
    seen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(6):
        action = env.action_space.sample()
        after, reward, terminated, truncated, _ = env.step(action)
        episode.append((seen, action, reward, after, terminated, truncated))
        seen = after
    data = sequences_from_episodes([episode], 0.02, env.action_space)
    np.testing.assert_array_equal(data.values[0, :-1].numpy(), [t[0] for t in episode])
    assert data.controls is not None
    assert data.controls[0, :-1].argmax(1).tolist() == [t[1] for t in episode]
    assert data.controls.sum(2).unique().tolist() == [1.0]


def test_images_stay_images() -> None:
    frames = np.arange(4 * 3 * 2, dtype=np.uint8).reshape(4, 3, 2)
    episode = SimpleNamespace(observations=frames, actions=np.zeros(3))
    data = sequences_from_episodes([episode])
    assert data.values.dtype == torch.uint8
    assert (data.dim, data.control_dim) == (6, 1)


STEP = played(0, 2)


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([], "at least one sequence"),
        (as_minari(STEP), "Put it in a list"),
        ([[]], "list of transitions"),
        ([STEP[0]], "list of transitions"),
        ([[STEP[0], STEP[0]]], "number 1 does not begin where number 0 ends"),
        ([SimpleNamespace(observations=np.zeros((3, 2)), actions=np.zeros((3, 1)))], "3 and 3"),
        ([SimpleNamespace(observations={"a": np.zeros(3)}, actions=np.zeros(2))], "Flatten"),
        (
            [SimpleNamespace(observations=np.zeros((3, 2)), actions=np.array([0, 1]))],
            "action_space",
        ),
    ],
)
def test_what_is_no_episode_is_refused(episodes: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sequences_from_episodes(episodes)


@pytest.mark.parametrize("actions", [[0, 2], [0.0, 0.5], [[0, 1], [1, 1]], [-1, 0]])
def test_actions_outside_a_discrete_space_are_refused(actions: Any) -> None:
    episode = SimpleNamespace(observations=np.zeros((3, 2)), actions=np.array(actions))
    with pytest.raises(InvalidInput, match=r"episode 0 must be in Discrete\(2\), a whole number"):
        sequences_from_episodes([episode], action_space=spaces.Discrete(2))


def test_only_actions_that_can_be_coded_are() -> None:
    episode = SimpleNamespace(observations=np.zeros((3, 2)), actions=np.array([[0, 1], [1, 0]]))
    with pytest.raises(InvalidInput, match="action_space must be a Box, a MultiBinary or a Disc"):
        sequences_from_episodes([episode], action_space=spaces.MultiDiscrete([2, 3]))
    coded = sequences_from_episodes([episode], action_space=spaces.MultiBinary(2)).controls
    assert coded is not None
    assert coded[0].tolist() == [[0, 1], [1, 0], [1, 0]]
    whole = SimpleNamespace(observations=np.zeros((3, 2)), actions=np.array([[1.0], [0.0]]))
    coded = sequences_from_episodes([whole], action_space=spaces.Discrete(2)).controls
    assert coded is not None
    assert coded[0].tolist() == [[0, 1], [1, 0], [1, 0]]


def test_gymnasium_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "skipstone.integrations.gymnasium"
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skipstone\[gymnasium\]'"):
        importlib.import_module(name)
