"""Models and data whose mean step is known: set by construction, found by the model itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool
from skipstone.models.stepping import read_context
from torch import Tensor

from skipstone import PCODE, Path, Sequences
from skipstone.models.base import Model

TOLERANCE = 1e-2
"""Squared error that a segment may reach, on the staircase."""

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
    """A random model whose lines hardly move: on a staircase its steps are the stairs'."""
    torch.manual_seed(0)
    model = PCODE(PCODE.Config(dim=dim, **options))
    with torch.no_grad():
        model.decoder.last.weight.mul_(NEARLY_STILL)
    return model


def stepping_pcode(batch: Sequences, wanted: float, **options: Any) -> PCODE:
    """A random model whose rollouts of this batch have a mean step of `wanted`."""
    torch.manual_seed(0)
    model = PCODE.for_data(batch, **options)
    aim_steps(model, batch.head(model.config.num_context), wanted, lambda: updates(model, batch))
    return model


@torch.inference_mode()
def updates(model: Model[Any], batch: Sequences) -> Path:
    """A rollout from the context to the end, of which nothing is read yet."""
    return model.rollout(batch.head(model.config.num_context), batch.ends)


def mean_step(path: Path, model: Model[Any]) -> float:
    """Time covered by all rollouts over their updates, in the model's unit."""
    covered = (path.end - path.start).sum() / model.config.time_unit
    return float(covered / path.num_updates.sum())


@torch.no_grad()
def aim_steps(model: PCODE, context: Sequences, wanted: float, roll: Callable[[], Path]) -> None:
    """Set the layer that predicts steps: different for every state, and right on average.

    Its weights make the spread; its bias is found by trying, since the end cuts last steps short.
    """
    states = read_context(model, context)
    assert isinstance(model.step_size, torch.nn.Linear)
    weight, bias = model.step_size.weight, model.step_size.bias
    spread = STEP_SPREAD * (wanted - model.config.min_step)
    weight.mul_(spread / float((states @ weight[0]).std()) if len(states) > 1 else 0.0)
    centre = float((states @ weight[0]).mean())
    low, high = -2 * wanted, 2 * wanted
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        bias.fill_(middle - centre)
        low, high = (middle, high) if mean_step(roll(), model) < wanted else (low, middle)


def typical_row(path: Path) -> int:
    """The row whose own mean step is nearest to that of all."""
    steps = (path.end - path.start) / path.num_updates
    overall = (path.end - path.start).sum() / path.num_updates.sum()
    return int((steps - overall).abs().argmin())
