"""An ODE-RNN in JAX with diffrax, from the weights of ours: the same numbers by another route."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Run
from skipstone import ODERNN, Sequences

NEEDS = ("jax", "diffrax", "optax")
"""What it is made of, none of which the project itself needs."""

MOST_SOLVER_STEPS = 64
"""Bound for diffrax, which reserves memory for that many steps between two observations."""


def missing() -> str | None:
    """Why this peer cannot take part, or None."""
    absent = [name for name in NEEDS if find_spec(name) is None]
    return f"{', '.join(absent)} not installed: make bench-jax" if absent else None


class DiffraxODERNN:
    """Training step and rollout of an `ODERNN` with dopri5, compiled as a whole."""

    def __init__(self, model: ODERNN):
        self.config = model.config
        # Modules, not names, so that nothing is imported unless this peer takes part.
        self.jax: Any = import_module("jax")
        self.diffrax: Any = import_module("diffrax")
        self.optax: Any = import_module("optax")
        self.weights = {
            name: self.jax.numpy.asarray(weight.detach().numpy())
            for name, weight in model.named_parameters()
        }

    def train(self, batch: Sequences) -> Run:
        """One training step. Its result is not fed back, so every call starts alike."""
        values = self.jax.numpy.asarray(batch.values.numpy())
        optimizer = self.optax.adam(1e-3)
        state = optimizer.init(self.weights)

        @self.jax.jit
        def step(weights: Any, state: Any, values: Any) -> Any:
            loss, gradient = self.jax.value_and_grad(self._loss)(weights, values)
            updates, state = optimizer.update(gradient, state)
            return self.optax.apply_updates(weights, updates), state, loss

        return lambda: self.jax.block_until_ready(step(self.weights, state, values))

    def roll_out(self, batch: Sequences) -> Run:
        """A rollout from the context, read at every observation after it."""
        count = self.config.num_context
        context = self.jax.numpy.asarray(batch.values[:, :count].numpy())
        steps = batch.values.shape[1] - count
        compiled = self.jax.jit(lambda weights, context: self._rollout(weights, context, steps))
        return lambda: self.jax.block_until_ready(compiled(self.weights, context))

    def loss(self, batch: Sequences) -> float:
        """The teacher-forced loss."""
        return float(self._loss(self.weights, self.jax.numpy.asarray(batch.values.numpy())))

    def predict(self, batch: Sequences) -> torch.Tensor:
        """The rollout's predictions."""
        return torch.from_numpy(np.array(self.roll_out(batch)()))

    def _loss(self, weights: Any, values: Any) -> Any:
        jnp = self.jax.numpy
        encoded = self._mlp(weights, "encoder", values[:, :-1])

        def interval(state: Any, inputs: Any) -> Any:
            state = self._cell(weights, inputs, state)
            end = self._flow(weights, state)
            return end, (state, end)

        empty = jnp.zeros((len(values), self.config.hidden))
        _, (starts, ends) = self.jax.lax.scan(interval, empty, jnp.swapaxes(encoded, 0, 1))
        moved = self._mlp(weights, "decoder", ends) - self._mlp(weights, "decoder", starts)
        predicted = values[:, :-1] + jnp.swapaxes(moved, 0, 1)
        # Observations of the context have no loss.
        scored = self.config.num_context - 1
        return ((predicted - values[:, 1:])[:, scored:] ** 2).mean()

    def _rollout(self, weights: Any, context: Any, steps: int) -> Any:
        jnp = self.jax.numpy
        state = jnp.zeros((len(context), self.config.hidden))
        for index in range(context.shape[1]):
            state = state if index == 0 else self._flow(weights, state)
            encoded = self._mlp(weights, "encoder", context[:, index])
            state = self._cell(weights, encoded, state)

        def interval(carried: Any, _: Any) -> Any:
            state, values = carried
            end = self._flow(weights, state)
            decoded = self._mlp(weights, "decoder", end) - self._mlp(weights, "decoder", state)
            values = values + decoded
            state = self._cell(weights, self._mlp(weights, "encoder", values), end)
            return (state, values), values

        _, predicted = self.jax.lax.scan(interval, (state, context[:, -1]), None, length=steps)
        return jnp.swapaxes(predicted, 0, 1)

    def _linear(self, weights: Any, name: str, inputs: Any) -> Any:
        return inputs @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    def _mlp(self, weights: Any, name: str, inputs: Any) -> Any:
        relu = self.jax.nn.relu
        features = relu(self._linear(weights, f"{name}.first", inputs))
        for layer in range(self.config.layers - 2):
            features = features + relu(self._linear(weights, f"{name}.inner.{layer}", features))
        return self._linear(weights, f"{name}.last", features)

    def _cell(self, weights: Any, inputs: Any, state: Any) -> Any:
        jnp = self.jax.numpy
        from_input = inputs @ weights["cell.weight_ih"].T + weights["cell.bias_ih"]
        from_state = state @ weights["cell.weight_hh"].T + weights["cell.bias_hh"]
        reset_in, keep_in, fresh_in = jnp.split(from_input, 3, axis=-1)
        reset_state, keep_state, fresh_state = jnp.split(from_state, 3, axis=-1)
        sigmoid = self.jax.nn.sigmoid
        fresh = jnp.tanh(fresh_in + sigmoid(reset_in + reset_state) * fresh_state)
        return fresh + sigmoid(keep_in + keep_state) * (state - fresh)

    def _flow(self, weights: Any, state: Any) -> Any:
        """One unit of time, all rows on one solver clock, as in ours."""

        def change(time: Any, state: Any, _: Any) -> Any:
            inner = self.jax.numpy.tanh(self._linear(weights, "dynamics.net.0", state))
            return self._linear(weights, "dynamics.net.2", inner)

        solved = self.diffrax.diffeqsolve(
            self.diffrax.ODETerm(change),
            self.diffrax.Dopri5(),
            t0=0.0,
            t1=1.0,
            dt0=None,
            y0=state,
            stepsize_controller=self.diffrax.PIDController(self.config.rtol, self.config.atol),
            max_steps=MOST_SOLVER_STEPS,
        )
        return solved.ys[0]
