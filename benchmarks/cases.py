"""Models and data whose mean step is known: set by construction, found by the model itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from skipstone import PCODE, Draws, Losses, Path, Sequences
from skipstone.models.base import Model
from skipstone.models.loop import read_context
from skipstone.paper.presets import PAPER

TOLERANCE = 1e-2
"""Squared error that a segment may reach, on the staircase."""

PAPER_EQUATIONS: dict[str, Any] = {
    **PAPER.pcode,
    "reads": PAPER.every["reads"],
    "tolerance": TOLERANCE,
}
"""The paper's PC-ODE. Everything else is measured with the defaults, which we recommend."""

RISE = 0.7
"""Height of a stair, relative to the error that the tolerance allows: one is within it, two are
not."""

NEARLY_STILL = 1e-4
"""Scale of the decoder's last layer: lines that hardly move, with all of their arithmetic."""

STEP_SPREAD = 0.3
"""Standard deviation of predicted steps over their mean. Trained on billiards it is 0.3 to 0.4."""

BISECTIONS = 16
"""Rollouts that set a mean step, each halving the error."""


def staircase(
    batch: int,
    mean_step: float,
    *,
    observations: int,
    dim: int,
    num_context: int = 4,
    seed: int = 0,
) -> Sequences:
    """Data on which the search finds segments of random lengths with exactly this mean.

    A line that does not move covers one stair up, and not two. So the search puts a knot at the
    last observation of every stair, and stairs are as long as segments shall be. Where they end
    is drawn from all observations of all rows: rows differ in their number of segments, and
    lengths are spread as if by chance, a little wider than those of trained billiards.
    """
    generator = torch.Generator().manual_seed(seed)
    knots = _random_knots(batch, mean_step, observations, num_context, generator)
    # The stair of an observation: knots before it, itself not counted.
    stair = knots.cumsum(1) - knots.long()
    start = torch.rand(batch, 1, dim, generator=generator)
    upward = torch.randint(2, (batch, 1, dim), generator=generator) * 2 - 1
    return Sequences.from_array(start + RISE * TOLERANCE**0.5 * upward * stair[..., None])


def _random_knots(
    batch: int, mean_step: float, observations: int, num_context: int, generator: torch.Generator
) -> Bool[Tensor, "batch time"]:
    """Knots after the context: one at its last observation, the others anywhere before the end."""
    first, span = num_context - 1, observations - num_context
    places = batch * (span - 1)
    wanted = round(batch * span / mean_step) - batch
    assert 0 <= wanted <= places, f"no mean step of {mean_step} in {span} intervals"
    drawn = torch.zeros(places, dtype=torch.bool)
    drawn[torch.randperm(places, generator=generator)[:wanted]] = True
    knots = torch.zeros(batch, observations, dtype=torch.bool)
    knots[:, first] = True
    knots[:, first + 1 : -1] = drawn.reshape(batch, span - 1)
    return knots


def still_pcode(dim: int, **options: Any) -> PCODE:
    """The paper's model with random weights, whose lines hardly move: on a staircase its steps are
    the stairs'."""
    return _still({"dim": dim, **PAPER_EQUATIONS, **options})


def _still(config: dict[str, Any]) -> PCODE:
    torch.manual_seed(0)
    model = PCODE.from_config(config)
    with torch.no_grad():
        model.decoder.last.weight.mul_(NEARLY_STILL)
    return model


def recommended_pcode(batch: Sequences, wanted: float, **options: Any) -> PCODE:
    """The recommended model, whose training segments on this staircase have a mean of `wanted`.

    Most of them end where the model itself would end them, so its predicted steps are set.
    """
    model = _still({"dim": batch.dim, "tolerance": TOLERANCE, **options})
    context = batch.head(model.config.num_context)
    aim_steps(model, context, wanted, lambda: training_step_length(model, batch))
    return model


def stepping_pcode(batch: Sequences, wanted: float, **options: Any) -> PCODE:
    """The paper's model with random weights, whose rollouts of this batch have a mean step of
    `wanted`."""
    torch.manual_seed(0)
    model = PCODE.for_data(batch, **{**PAPER_EQUATIONS, **options})
    context = batch.head(model.config.num_context)
    aim_steps(model, context, wanted, lambda: mean_step(updates(model, batch), model))
    return model


def pcode_loss(model: PCODE, batch: Sequences) -> Losses:
    """The loss that is timed: all that training draws is drawn, the same at every call."""
    return model.loss(batch, Draws.seeded(batch, 0))


@torch.no_grad()
def training_step_length(model: PCODE, batch: Sequences) -> float:
    """Mean length of the segments after the context that a training step really took.

    `Losses.mean_step` is what the search would have taken.
    """
    span = batch.times.shape[1] - model.config.num_context
    return len(batch) * span / pcode_loss(model, batch).num_steps


@torch.inference_mode()
def updates(model: Model[Any], batch: Sequences) -> Path:
    """A rollout from the context to the end, of which nothing is read yet."""
    return model.rollout(batch.head(model.config.num_context), batch.ends)


def mean_step(path: Path, model: Model[Any]) -> float:
    """Time covered by all rollouts over their updates, in the model's unit."""
    covered = (path.end - path.start).sum() / model.config.time_unit
    return float(covered / path.num_updates.sum())


@torch.no_grad()
def aim_steps(
    model: PCODE, context: Sequences, wanted: float, measured: Callable[[], float]
) -> None:
    """Set the network that predicts steps: different for every state, and right on average.

    The weights of its last layer make the spread. The bias is found by trying, with `measured` for
    the mean that it gives, since the end cuts last steps short.
    """
    _, states = read_context(model, model.prepare(context, model.config.num_context))
    network = model.step_size
    last = network if isinstance(network, torch.nn.Linear) else network.last
    last.bias.zero_()
    spread = STEP_SPREAD * (wanted - model.config.min_step)
    last.weight.mul_(spread / float(network(states).std()) if len(states) > 1 else 0.0)
    centre = float(network(states).mean())
    low, high = -2 * wanted, 2 * wanted
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        last.bias.fill_(middle - centre)
        low, high = (middle, high) if measured() < wanted else (low, middle)


def typical_row(path: Path) -> int:
    """The row whose own mean step is nearest to that of all."""
    steps = (path.end - path.start) / path.num_updates
    overall = (path.end - path.start).sum() / path.num_updates.sum()
    return int((steps - overall).abs().argmin())
