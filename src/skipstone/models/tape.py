"""What a walk of a `PCODE` computes, kept, so that its gradient needs no second forward pass.

The search runs encoder, cell and the start of each line round by round, because it cannot know
where it will stop. Its gradient can: all updates are known by then, so the derivatives of all of
them are formed together, in a few large products, and only the recurrence goes back from round to
round. Autograd would either repeat the forward pass, or form small products for every round and
every weight. The tests hold this to the paper's own training step, gradients included.
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
        states, *lines = _Gradient.apply(model, walked, tape.reel(), *weights)  # pyright: ignore
    return walked, states, tuple(lines)


class _Tape:
    """A `PCODE` as far as a walk is concerned, that keeps what it computes."""

    def __init__(self, model: PCODE):
        self._model = model
        self.config = model.config
        self._kept: dict[str, list[Tensor]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def reel(self) -> dict[str, Tensor]:
        """Everything kept, for all segments, round by round."""
        return {name: torch.cat(parts) for name, parts in self._kept.items()}

    def update(
        self,
        state: Float[Tensor, "rows state"],
        values: Float[Tensor, "rows dim"],
        controls: Float[Tensor, "rows control"] | None,
        elapsed: Float[Tensor, " rows"],
    ) -> Float[Tensor, "rows state"]:
        """The encoder, and the cell as `torch.nn.GRUCell` defines it."""
        encoder, cell, width = self._model.encoder, self._model.cell, state.shape[1]
        inputs = with_inputs(values, controls)
        encoded = encoder.last(self._features("encoder", encoder, encoder.first(inputs)))
        from_input = F.linear(encoded, cell.weight_ih, cell.bias_ih)
        from_state = F.linear(state, cell.weight_hh, cell.bias_hh)
        gates = (from_input[:, : 2 * width] + from_state[:, : 2 * width]).sigmoid_()
        recurrent = from_state[:, 2 * width :]
        fresh = torch.addcmul(from_input[:, 2 * width :], gates[:, :width], recurrent).tanh_()
        updated = torch.lerp(fresh, state, gates[:, width:])
        self._keep(inputs=inputs, encoded=encoded, before=state, gates=gates)
        self._keep(recurrent=recurrent, fresh=fresh, states=updated)
        return updated

    def lines(self, state: Float[Tensor, "rows state"], values: Float[Tensor, "rows dim"]) -> Lines:
        """The lines that begin with this state at these values."""
        lines, decoder = self._model.directions(state), self._model.decoder
        if self._model.config.readout == "displacement":
            decoded = decoder.last(self._features("decoder", decoder, lines.first))
            lines = lines._replace(origin=values - decoded)
        self._keep(origin=lines.origin, first=lines.first, slope=lines.slope)
        return lines

    def _features(self, name: str, mlp: ResidualMLP, first: Tensor) -> Tensor:
        """The input of the last layer."""
        features = F.relu(first)
        self._keep(**{f"{name}0": features})
        for number, layer in enumerate(mlp.inner, start=1):
            added = F.relu(layer(features), inplace=True)
            features = features + added
            self._keep(**{f"{name}{number}": features, f"{name}{number}+": added})
        return features

    def _keep(self, **tensors: Tensor) -> None:
        for name, tensor in tensors.items():
            self._kept.setdefault(name, []).append(tensor)


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
        ctx: Any, model: PCODE, walked: Walk, reel: dict[str, Tensor], *weights: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.model, ctx.walked, ctx.reel = model, walked, reel
        return tuple(reel[name].clone() for name in ("states", "origin", "first", "slope"))

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, of_states: Tensor, of_origin: Tensor, of_first: Tensor, of_slope: Tensor
    ) -> tuple[Any, ...]:
        model, walked, reel = ctx.model, ctx.walked, ctx.reel
        cell, scale = model.cell, model.config.velocity_scale
        half = model.config.hidden // 2

        # Lines: the decoder's first layer, and the rest of it at their start.
        decoder: dict[str, Tensor] = {}
        if model.config.readout == "displacement":
            of_first = of_first + _mlp_backward(model.decoder, "decoder", reel, -of_origin, decoder)
        states, weight = reel["states"], model.decoder.first.weight
        of_weight = of_first.t() @ states
        of_weight[:, :half].addmm_(of_slope.t(), states[:, half:], alpha=scale)
        decoder["first.weight"], decoder["first.bias"] = of_weight, of_first.sum(0)
        of_states = torch.addmm(of_states, of_first, weight)
        of_states[:, half:].addmm_(of_slope, weight[:, :half], alpha=scale)

        # Cell: from round to round for its states, at once for all that depends on them.
        to_state, to_input = _cell_backward(cell.weight_hh, scale, walked, reel, of_states)
        cells = [to_input.t() @ reel["encoded"], to_input.sum(0)]
        cells += [to_state.t() @ reel["before"], to_state.sum(0)]

        encoder: dict[str, Tensor] = {}
        of_inputs = _mlp_backward(
            model.encoder, "encoder", reel, to_input @ cell.weight_ih, encoder
        )
        encoder["first.weight"] = of_inputs.t() @ reel["inputs"]
        encoder["first.bias"] = of_inputs.sum(0)
        return (
            *(None, None, None),
            *(encoder.get(name) for name, _ in model.encoder.named_parameters()),
            *cells,
            *(decoder.get(name) for name, _ in model.decoder.named_parameters()),
        )


def _mlp_backward(
    mlp: ResidualMLP,
    name: str,
    reel: dict[str, Tensor],
    of_output: Tensor,
    found: dict[str, Tensor],
) -> Tensor:
    """Gradients of all weights but those of the first layer go into `found`; returns that of the
    first layer's output."""
    count = len(mlp.inner)
    found["last.weight"] = of_output.t() @ reel[f"{name}{count}"]
    found["last.bias"] = of_output.sum(0)
    of_features = of_output @ mlp.last.weight
    for number in range(count, 0, -1):
        of_added = of_features * (reel[f"{name}{number}+"] > 0)
        found[f"inner.{number - 1}.weight"] = of_added.t() @ reel[f"{name}{number - 1}"]
        found[f"inner.{number - 1}.bias"] = of_added.sum(0)
        of_features = torch.addmm(of_features, of_added, mlp.inner[number - 1].weight)
    return of_features * (reel[f"{name}0"] > 0)


def _cell_backward(
    weight: Tensor, scale: float, walked: Walk, reel: dict[str, Tensor], grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the two products that go into a GRU's gates: of its state, and of its input.

    state = fresh + keep·(before - fresh), where `before` has moved along its velocity.
    """
    before, gates, fresh = reel["before"], reel["gates"], reel["fresh"]
    width, half = fresh.shape[1], fresh.shape[1] // 2
    reset, keep = gates[:, :width], gates[:, width:]
    by_fresh = (1 - keep) * (1 - fresh.square())
    by_keep = (before - fresh) * keep * (1 - keep)
    by_reset = by_fresh * reel["recurrent"] * reset * (1 - reset)
    through = torch.cat([by_reset, by_keep, by_fresh * reset], dim=1)
    to_state, moves = torch.empty_like(through), scale * walked.elapsed[:, None]
    earlier, stop = walked.earlier, len(grad)
    for size in reversed(walked.sizes):
        rows = slice(stop - size, stop)
        here = to_state[rows]
        torch.mul(grad[rows].repeat(1, 3), through[rows], out=here)
        stop -= size
        if stop > 0:
            back = torch.addcmul(here @ weight, grad[rows], keep[rows])
            back[:, half:].addcmul_(back[:, :half], moves[rows])
            grad.index_add_(0, earlier[rows.start - walked.sizes[0] :][:size], back)
    return to_state, torch.cat([to_state[:, : 2 * width], grad * by_fresh], dim=1)
