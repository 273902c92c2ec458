"""What a walk of a `PCODE` computes, kept, so that its gradient needs no second forward pass.

The search runs encoder, cell and the start of each line round by round. Running them again for the
gradient would cost a third more, and autograd over so many small operations about as much. So the
walk keeps what it computes, and its gradient goes back over that, round by round: what a round
needs fits into the cache. The tests hold it to the paper's own training step, gradients included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from skipstone.knots import Stops, Walk, walk
from skipstone.models.base import with_inputs
from skipstone.models.networks import ResidualMLP
from skipstone.sequences import Sequences

if TYPE_CHECKING:
    from skipstone.models.pcode import PCODE, Lines


def differentiable_walk(
    model: PCODE,
    batch: Sequences,
    stops: Stops,
    seen: Float[Tensor, "batch time dim"] | None = None,
) -> tuple[Walk, Float[Tensor, "segments state"], tuple[Tensor, ...]]:
    """A walk, and its states and the parts of its lines with their gradients."""
    tape = _Tape(model)
    # Sums over thousands of updates are not for half precision.
    with torch.autocast(batch.values.device.type, enabled=False):
        walked = walk(tape, batch, stops, seen)
        weights = list(_weights(model))
        states, *lines = _Gradient.apply(model, walked, tape.reel, *weights)  # pyright: ignore
    return walked, states, tuple(lines)


Frame = dict[str, Tensor]
"""What one round computed, by name."""


class _Tape:
    """A `PCODE` as far as a walk is concerned, that keeps what it computes."""

    def __init__(self, model: PCODE):
        self._model = model
        self.config = model.config
        self.reel: list[Frame] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def update(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        controls: Float[Tensor, "rows control"] | None,
        elapsed: Float[Tensor, " rows"],
    ) -> Float[Tensor, "rows state"]:
        """The encoder, and the cell as `torch.nn.GRUCell` defines it."""
        encoder, cell, width = self._model.encoder, self._model.cell, state.shape[1]
        self.reel.append({})
        inputs = with_inputs(values, controls)
        encoded = encoder.last(self._features("encoder", encoder, encoder.first(inputs)))
        from_input = F.linear(encoded, cell.weight_ih, cell.bias_ih)
        from_state = F.linear(state, cell.weight_hh, cell.bias_hh)
        gates = (from_input[:, : 2 * width] + from_state[:, : 2 * width]).sigmoid_()
        recurrent = from_state[:, 2 * width :]
        fresh = torch.addcmul(from_input[:, 2 * width :], gates[:, :width], recurrent).tanh_()
        updated = torch.lerp(fresh, state, gates[:, width:])
        self.reel[-1].update(inputs=inputs, encoded=encoded, before=state, gates=gates)
        self.reel[-1].update(recurrent=recurrent, fresh=fresh, states=updated)
        return updated

    def lines(self, state: Float[Tensor, "rows state"], values: Float[Tensor, "rows dim"]) -> Lines:
        """The lines that begin with this state at these values."""
        lines, decoder = self._model.directions(state), self._model.decoder
        if self._model.config.readout == "displacement":
            decoded = decoder.last(self._features("decoder", decoder, lines.first))
            lines = lines._replace(origin=values - decoded)
        self.reel[-1].update(origin=lines.origin, first=lines.first, slope=lines.slope)
        return lines

    def _features(self, name: str, mlp: ResidualMLP, first: Tensor) -> Tensor:
        """The input of the last layer."""
        features = F.relu(first)
        self.reel[-1].update(**{f"{name}0": features})
        for number, layer in enumerate(mlp.inner, start=1):
            added = F.relu(layer(features), inplace=True)
            features = features + added
            self.reel[-1].update(**{f"{name}{number}": features, f"{name}{number}+": added})
        return features


def _weights(model: PCODE) -> Iterator[nn.Parameter]:
    """The weights a walk depends on, in the order of their gradients."""
    cell = model.cell
    yield from model.encoder.parameters()
    yield from (cell.weight_ih, cell.bias_ih, cell.weight_hh, cell.bias_hh)
    yield from model.decoder.parameters()


class _Gradient(torch.autograd.Function):
    """Returns what was computed; its backward pass is the point."""

    @staticmethod
    def forward(
        ctx: Any, model: PCODE, walked: Walk, reel: list[Frame], *weights: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.model, ctx.walked, ctx.reel = model, walked, reel
        names = ("states", "origin", "first", "slope")
        return tuple(torch.cat([frame[name] for frame in reel]) for name in names)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *of_outputs: Tensor) -> tuple[Any, ...]:  # pyright: ignore
        model, walked, reel = ctx.model, ctx.walked, ctx.reel
        found = {weight: torch.zeros_like(weight) for weight in _weights(model)}
        of_states = of_outputs[0].clone()
        moves = model.config.velocity_scale * walked.elapsed[:, None]
        half, stop, earlier = model.config.hidden // 2, len(of_states), walked.earlier
        for frame in reversed(reel):
            rows = slice(stop - len(frame["states"]), stop)
            stop = rows.start
            here = of_states[rows]
            _lines_backward(model, frame, here, *(part[rows] for part in of_outputs[1:]), found)
            back = _update_backward(model, frame, here, found)
            if stop > 0:
                back[:, half:].addcmul_(back[:, :half], moves[rows])
                first = walked.sizes[0]
                of_states.index_add_(0, earlier[rows.start - first : rows.stop - first], back)
        return None, None, None, *found.values()


def _lines_backward(
    model: PCODE,
    frame: Frame,
    of_state: Tensor,
    of_origin: Tensor,
    of_first: Tensor,
    of_slope: Tensor,
    found: dict[Tensor, Tensor],
) -> None:
    """Adds to the gradient of the state in place."""
    first, scale, half = model.decoder.first, model.config.velocity_scale, of_state.shape[1] // 2
    if model.config.readout == "displacement":
        of_first = of_first + _mlp_backward(model.decoder, "decoder", frame, -of_origin, found)
    _add_product(found, first, of_first, frame["states"])
    found[first.weight][:, :half].addmm_(of_slope.t(), frame["states"][:, half:], alpha=scale)
    of_state.addmm_(of_first, first.weight)
    of_state[:, half:].addmm_(of_slope, first.weight[:, :half], alpha=scale)


def _update_backward(
    model: PCODE, frame: Frame, of_state: Tensor, found: dict[Tensor, Tensor]
) -> Tensor:
    """The gradient of the state before the update.

    state = fresh + keep·(before - fresh), and fresh = tanh(input + reset·recurrent).
    """
    cell, fresh, before = model.cell, frame["fresh"], frame["before"]
    reset, keep = frame["gates"].chunk(2, dim=1)
    of_fresh = of_state * (1 - keep) * (1 - fresh.square())
    of_keep = of_state * (before - fresh) * keep * (1 - keep)
    of_reset = of_fresh * frame["recurrent"] * reset * (1 - reset)
    to_input = torch.cat([of_reset, of_keep, of_fresh], dim=1)
    to_state = torch.cat([of_reset, of_keep, of_fresh * reset], dim=1)
    found[cell.weight_hh].addmm_(to_state.t(), before)
    found[cell.bias_hh].add_(to_state.sum(0))
    found[cell.weight_ih].addmm_(to_input.t(), frame["encoded"])
    found[cell.bias_ih].add_(to_input.sum(0))
    of_encoded = to_input @ cell.weight_ih
    of_first = _mlp_backward(model.encoder, "encoder", frame, of_encoded, found)
    _add_product(found, model.encoder.first, of_first, frame["inputs"])
    return torch.addcmul(to_state @ cell.weight_hh, of_state, keep)


def _mlp_backward(
    mlp: ResidualMLP, name: str, frame: Frame, of_output: Tensor, found: dict[Tensor, Tensor]
) -> Tensor:
    """The gradient of the first layer's output; those of all later weights are found."""
    count = len(mlp.inner)
    _add_product(found, mlp.last, of_output, frame[f"{name}{count}"])
    of_features = of_output @ mlp.last.weight
    for number in range(count, 0, -1):
        layer = mlp.inner[number - 1]
        assert isinstance(layer, nn.Linear)
        of_added = of_features * (frame[f"{name}{number}+"] > 0)
        _add_product(found, layer, of_added, frame[f"{name}{number - 1}"])
        of_features = of_features.addmm_(of_added, layer.weight)
    return of_features.mul_(frame[f"{name}0"] > 0)


def _add_product(
    found: dict[Tensor, Tensor], layer: nn.Linear, of_output: Tensor, inputs: Tensor
) -> None:
    found[layer.weight].addmm_(of_output.t(), inputs)
    if layer.bias is not None:
        found[layer.bias].add_(of_output.sum(0))
