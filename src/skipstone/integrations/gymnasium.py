"""Gymnasium: a trained model as an environment, and recorded episodes as `Sequences`.

pip install 'skipstone[gymnasium]'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from skipstone.errors import InvalidInput, require_number, shortened
from skipstone.models.base import Model, require_sequences
from skipstone.sequences import Sequences

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    told = "gymnasium must be installed for this. Run: pip install 'skipstone[gymnasium]'"
    raise ModuleNotFoundError(told) from error

Reward = Callable[[np.ndarray, Any, np.ndarray], float]
"""`reward(observation, action, next_observation)`, the reward of one step."""

SAME = 1e-6
"""Largest relative difference of two observations that count as the same one."""


class ActionOutside(InvalidInput, gymnasium.error.InvalidAction):
    """An action that is not in the action space."""


class Unstarted(InvalidInput, gymnasium.error.ResetNeeded):
    """A step before `reset`, or after the end of an episode."""


class Diverged(InvalidInput, gymnasium.error.Error):
    """A prediction or a reward that is not a finite number."""


class ModelEnv(gymnasium.Env[Float[np.ndarray, " dim"], Any]):
    """An environment whose dynamics are a trained model; its controls are the actions.

    An episode begins with one of `starts`. A step holds the action for one interval: the model is
    rolled out that far from its last `num_context` observations, and what it predicts is the next
    observation, read like any other from then on. A prediction outside `observation_space` becomes
    the nearest one inside.

    There is no time limit: `gymnasium.wrappers.TimeLimit(env, 200)` sets one.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own way

    def __init__(
        self,
        model: Any,
        starts: Any,
        reward: Reward,
        action_space: Any,
        observation_space: Any = None,
        terminated: Callable[[np.ndarray], bool] | None = None,
        interval: float | None = None,
    ):
        """`model` is any `skipstone.Model` with controls. `starts` are contexts for it; their last
        `num_context` observations are read, for example `sequences.head(4)`. `action_space` is
        a `Box` with a number for each control, or a `Discrete` with a control for each action,
        which is 1 for the one taken. `observation_space` is a `Box`, by default without bounds.
        `terminated(observation)` says when an episode is over, by default never. `interval` is the
        time between two steps, by default the model's unit of time, the typical spacing of its
        data.
        """
        if not isinstance(model, Model):
            kind = type(model).__name__
            raise InvalidInput(f"model must be a skipstone.Model; got {kind}. Use skipstone.load.")
        require_sequences(starts)
        config = model.config
        _require_fit(starts, config.dim, config.control)
        if interval is not None:
            require_number("interval", interval, above=0)
        for name, function in (("reward", reward), ("terminated", terminated)):
            if not callable(function) and (name, function) != ("terminated", None):
                raise InvalidInput(f"{name} must be a function; got {shortened(function)}.")
        self._model, self._starts = model, starts.tail(config.num_context)
        self._reward, self._terminated = reward, terminated
        self._interval = config.time_unit if interval is None else float(interval)
        self.action_space = _require_actions(action_space, config.control)
        self.observation_space = _observations(observation_space, config.dim)
        self._context: Sequences | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " dim"], dict[str, Any]]:
        """Begin an episode: at a random one of the starts, or at `options={"start": index}`."""
        super().reset(seed=seed)
        unknown = sorted(set(options or {}) - {"start"})
        if unknown:
            raise InvalidInput(f'options of a ModelEnv can have a "start"; got {unknown}.')
        index = (options or {}).get("start")
        count = len(self._starts)
        if index is None:
            index = self.np_random.integers(count)
        require_number("options start, the index of a start,", index, 0, below=count, whole=True)
        self._context = context = self._starts[int(index)]
        return self._observed(context), {}

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " dim"], float, bool, bool, dict[str, Any]]:
        """Hold an action for one interval."""
        if self._context is None:
            raise Unstarted("a step needs an episode; there is none. Call reset() first.")
        control = as_controls(self._checked(action), self.action_space)
        before = self._observed(self._context)
        self._context = self._advanced(self._context, control)
        after = self._observed(self._context)
        reward = _as_reward(self._reward(before, action, after.copy()), before)
        over = self._terminated is not None and bool(self._terminated(after.copy()))
        if over:
            self._context = None
        return after, reward, over, False, {}

    def _checked(self, action: Any) -> Shaped[np.ndarray, ...]:
        """An action as an array of the space's dtype, if it is in the space."""
        space = self.action_space
        try:
            given = np.asarray(action).astype(space.dtype, casting="same_kind")
        except (TypeError, ValueError):
            given = np.empty(0)
        # What is discrete is a number, not an array.
        member = given if isinstance(space, spaces.Box) or given.ndim else given[()]
        if given.shape != space.shape or not space.contains(member):
            raise ActionOutside(
                f"an action must be in {space}; got {action!r}. Clip it, or sample one: "
                "env.action_space.sample()."
            )
        return given

    def _advanced(self, context: Sequences, control: Float[np.ndarray, " control"]) -> Sequences:
        """The context one interval later, with the model's prediction as its last observation."""
        assert context.controls is not None
        controls, until = context.controls.clone(), context.ends + self._interval
        controls[:, -1] = torch.as_tensor(control)
        acted = Sequences(context.times, context.values, controls)
        with torch.no_grad():
            predicted = self._model.rollout(acted, until).evaluate(until[:, None])
        space = self.observation_space
        assert isinstance(space, spaces.Box)
        values = np.clip(predicted.cpu().numpy(), space.low, space.high)
        if not np.isfinite(values).all():
            raise Diverged(
                f"a prediction must be finite; got {values[0, 0]}. The model has left what it was "
                "trained on: end episodes earlier, or give an observation_space with bounds."
            )
        return Sequences(
            torch.cat([acted.times, until[:, None]], dim=1)[:, 1:],
            torch.cat([acted.values, torch.as_tensor(values).to(acted.values)], dim=1)[:, 1:],
            torch.cat([controls, controls[:, -1:]], dim=1)[:, 1:],
        )

    def _observed(self, context: Sequences) -> Float[np.ndarray, " dim"]:
        """The last observation of a context, in the observation space."""
        space = self.observation_space
        assert isinstance(space, spaces.Box)
        last = context.values[0, -1].cpu().numpy().astype(space.dtype)
        return np.clip(last, space.low, space.high)


def _as_reward(given: Any, before: Float[np.ndarray, " dim"]) -> float:
    """A reward as a number; arrays and tensors of one number will do, and no text."""
    try:
        reward = float("text" if isinstance(given, str) else given)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput(
            f"reward must return a number; it returned {shortened(given)}. Sum it up, or return "
            "one of its entries."
        ) from None
    if not np.isfinite(reward):
        raise Diverged(f"a reward must be a finite number; got {shortened(given)} after {before}.")
    return reward


def sequences_from_episodes(
    episodes: Any, interval: float = 1.0, action_space: spaces.Space[Any] | None = None
) -> Sequences:
    """`Sequences` of recorded episodes: observations as values, actions as controls.

    An episode is a thing with `observations` and `actions`, one observation more than actions, such
    as Minari's `EpisodeData`; or a list of transitions `(observation, action, reward,
    next_observation, ...)`. Observations and actions of any shape become rows of numbers.
    `interval` is the time between two observations. For discrete actions give the `action_space`:
    each has a control of its own, which is 1 where it was taken.

    The action of an observation holds until the next one. The last observation has none, and
    repeats the one before, which nothing depends on.
    """
    require_number("interval", interval, above=0)
    if hasattr(episodes, "observations"):
        raise InvalidInput("episodes must be a list of episodes; got one. Put it in a list.")
    if not isinstance(episodes, Iterable):
        raise InvalidInput(f"episodes must be a list; got {type(episodes).__name__}.")
    values, controls = [], []
    for number, episode in enumerate(episodes):
        observations, actions = _episode(episode, number)
        inputs = as_controls(actions, action_space, number)
        values.append(observations)
        controls.append(np.concatenate([inputs, inputs[-1:]]))
    times = [interval * np.arange(len(row)) for row in values]
    return Sequences.from_lists(values, times, controls)


def as_controls(
    actions: Shaped[np.ndarray, ...], space: spaces.Space[Any] | None, episode: int | None = None
) -> Float[np.ndarray, "*time control"]:
    """Actions as controls: one action, or with an `episode` one per row. Of a `Discrete` space one
    is 1 and the others are 0."""
    if isinstance(space, spaces.Discrete):
        one_each = actions.size == np.prod(actions.shape[:1])
        rows = actions.reshape(actions.shape[:1]) if one_each else np.full(1, np.nan)
        chosen = rows - int(space.start)
        if not (np.isin(chosen, np.arange(space.n))).all():
            raise InvalidInput(
                f"actions of episode {episode} must be in {space}, a whole number each; some are "
                "not. Give the action_space of the environment that was played."
            )
        return np.eye(int(space.n), dtype=np.float32)[chosen.astype(np.int64)]
    if not isinstance(space, spaces.Box | spaces.MultiBinary | None):
        raise InvalidInput(
            f"action_space must be a Box, a MultiBinary or a Discrete; got {space}. Code other "
            "actions as numbers first, such as 0 and 1 for each choice, and leave it out."
        )
    if space is None and actions.dtype.kind not in "f":
        raise InvalidInput(
            f"actions must be real numbers, or have an action_space; those of episode {episode} "
            f"are {actions.dtype}. Say sequences_from_episodes(..., action_space=env.action_space)."
        )
    rows = actions.astype(np.float32)
    return rows.reshape(-1) if episode is None else rows.reshape(len(rows), -1)


def _episode(episode: Any, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations (time + 1, dim) and actions (time, ...) of an episode in either form."""
    if hasattr(episode, "observations") and hasattr(episode, "actions"):
        observations, actions = (
            _array(f"{name} of episode {number}", getattr(episode, name))
            for name in ("observations", "actions")
        )
    else:
        observations, actions = _joined(episode, number)
    if len(actions) == 0 or len(observations) != len(actions) + 1:
        raise InvalidInput(
            "an episode must have at least one action and one observation more than actions, the "
            f"last one included; episode {number} has {len(observations)} and {len(actions)}."
        )
    return observations.reshape(len(observations), -1), actions


def _joined(episode: Any, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations and actions of a list of transitions, checked to follow each other."""
    transitions = list(episode) if isinstance(episode, Iterable) else []
    if not transitions or any(not isinstance(t, tuple | list) or len(t) < 4 for t in transitions):
        raise InvalidInput(
            "an episode must have observations and actions, or be a list of transitions "
            f"(observation, action, reward, next_observation, ...); episode {number} is "
            f"{type(episode).__name__}."
        )
    before, actions, after = (
        _array(f"{name} of episode {number}", [transition[place] for transition in transitions])
        for name, place in (("observations", 0), ("actions", 1), ("next observations", 3))
    )
    if before.shape != after.shape:
        raise InvalidInput(
            f"observations of a transition must be alike; those of episode {number} have shapes "
            f"{before.shape[1:]} and {after.shape[1:]}."
        )
    broken = ~np.isclose(before[1:], after[:-1], rtol=SAME, atol=SAME)
    if broken.any():
        index = int(np.nonzero(broken.reshape(len(broken), -1).any(1))[0][0])
        raise InvalidInput(
            "transitions of an episode must follow each other; in episode "
            f"{number} number {index + 1} does not begin where number {index} ends. Start a new "
            "list after every reset()."
        )
    return np.concatenate([before, after[-1:]]), actions


def _array(name: str, given: Any) -> np.ndarray:
    """Numbers that nest evenly, as an array."""
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu" or array.ndim == 0:
        raise InvalidInput(
            f"{name} must be arrays of numbers, all of one shape; got {type(given).__name__} of "
            f"{array.dtype}. Flatten others before: gymnasium.wrappers.FlattenObservation(env)."
        )
    return array


def _require_fit(starts: Sequences, dim: int, control: int) -> None:
    if control == 0 or (starts.dim, starts.control_dim) != (dim, control):
        raise InvalidInput(
            f"actions are a model's controls; this model takes {dim} features and {control} "
            f"controls, and starts have {starts.dim} and {starts.control_dim}. Train on sequences "
            "with controls: sequences_from_episodes(episodes)."
        )
    if not starts.complete:
        raise InvalidInput("starts must be complete; they have missing values (NaN). Drop those.")
    if not starts.values.is_floating_point():
        raise InvalidInput("starts must be floating point; got images. Use starts.to(dtype=...).")


def _require_actions(space: Any, control: int) -> spaces.Space[Any]:
    discrete = isinstance(space, spaces.Discrete) and int(space.n) == control
    box = isinstance(space, spaces.Box) and int(np.prod(space.shape)) == control
    if not (discrete or box):
        raise InvalidInput(
            f"action_space must be a Box of {control} numbers or Discrete({control}), as the model "
            f"has {control} controls; got {space}."
        )
    return space


def _observations(space: Any, dim: int) -> spaces.Box:
    if space is None:
        return spaces.Box(-np.inf, np.inf, (dim,), np.float32)
    if not isinstance(space, spaces.Box) or space.shape != (dim,):
        raise InvalidInput(
            f"observation_space must be a Box of shape ({dim},), as the model predicts {dim} "
            f"features; got {space}."
        )
    return space
