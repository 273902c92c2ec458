"""Arithmetic that all models share: errors of predictions, rows and inputs of tensors."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.models.config import ModelConfig
from skipstone.models.typing import BatchMask, BatchTimes, BatchValues
from skipstone.sequences import Sequences

CHORD = (0.1, 1.0)
"""Shortest and longest stretch, in the model's unit of time, over which a rollout takes the rate of
change at a segment's end. In training the shortest one bounds rates between close observations."""


def squared_error(
    predicted: Float[Tensor, "*points dim"], observed: Float[Tensor, "*points dim"], missing: bool
) -> Float[Tensor, "*points"]:
    """Squared error, averaged over features: the ℓ that the tolerance ε is compared with.

    With `missing`, NaN was not observed: the average is over what was, and 0 where nothing was.
    """
    difference = predicted - observed
    if not missing:
        return difference.square().mean(-1)
    unseen = observed.isnan()
    difference = difference.masked_fill(unseen, 0)
    return difference.square().sum(-1) / (~unseen).sum(-1).clamp(min=1)


def scored_observations(batch: Sequences, num_context: int) -> BatchMask:
    """Observations that a loss counts: those after the context of which anything was observed.

    Most of what a context holds nobody can predict, and its errors would drown the others'.
    """
    scored = batch.mask.clone()
    scored[:, :num_context] = False
    return scored if batch.complete else scored & ~batch.values.isnan().all(2)


def laid_out(
    batch: Sequences, where: BatchMask, values: Float[Tensor, "points dim"]
) -> BatchValues:
    """Predictions of some observations, laid out like the batch, without gradient, else NaN."""
    layout = torch.full_like(batch.values, torch.nan)
    layout[where] = values.detach()
    return layout


def start_error(
    decoded: Float[Tensor, "segments dim"], values: Float[Tensor, "segments dim"], points: int
) -> Float[Tensor, ""]:
    """Error of an absolute readout where segments begin, weighed like any of `points` observations.

    A displacement is exact at its start by construction. An absolute readout has to learn that, or
    nothing would say what it predicts before the segment's first observation.
    """
    return squared_error(decoded, values, False).sum() / points


def rates_of_change(
    values: BatchValues, gaps: BatchTimes, shortest: float, missing: bool
) -> BatchValues:
    """Change of each feature since it was last observed, per unit of time; 0 before that.

    Observations that are close together would have any rate, so that the time between them counts
    as `shortest` at least. A missing value has no rate: NaN.
    """
    if not missing:
        # Padding has no gap, and no rate.
        gaps = gaps[:, 1:, None]
        chords = torch.where(gaps > 0, gaps.clamp(min=shortest), torch.inf)
        return torch.nn.functional.pad(values.diff(dim=1) / chords, (0, 0, 1, 0))
    last, known = last_observed(values)
    clock = gaps.cumsum(1)[..., None].expand_as(values)
    since = (clock - clock.gather(1, last)).clamp(min=shortest)
    change = values - values.gather(1, last)
    return torch.where(known, change / since, torch.where(values.isnan(), torch.nan, 0.0))


def last_observed(
    values: BatchValues,
) -> tuple[Int[Tensor, "batch time dim"], Bool[Tensor, "batch time dim"]]:
    """Index of the last observation before each one that has this feature, and whether any has."""
    index = torch.arange(values.shape[1], device=values.device)[None, :, None]
    seen = torch.where(values.isnan(), -1, index).cummax(dim=1).values
    before = torch.nn.functional.pad(seen, (0, 0, 1, 0), value=-1)[:, :-1]
    return before.clamp(min=0), before >= 0


def with_inputs(
    values: Float[Tensor, "*rows dim"], *inputs: Float[Tensor, "*rows _"] | None
) -> Float[Tensor, "*rows all"]:
    """Encoder inputs joined with controls and whatever else an encoder takes."""
    given = [part for part in inputs if part is not None]
    return torch.cat([values, *given], dim=-1) if given else values


def observation_inputs(
    values: BatchValues, gaps: BatchTimes, config: ModelConfig, rate_unit: float = 1.0
) -> Float[Tensor, "batch time input"]:
    """What an encoder is given of observations, each after its gap: values; their rates of change
    since the ones before, per `rate_unit` of time, if it reads motion; and which were observed,
    where that is a question."""
    rates = None
    if config.reads_motion:
        rates = rate_unit * rates_of_change(values, gaps, CHORD[0], config.missing)
    observed = (~values.isnan()).to(values.dtype) if config.missing else None
    return with_inputs(values, rates, observed)


def prediction_inputs(
    predicted: Float[Tensor, "rows dim"],
    displacement: Float[Tensor, "rows dim"],
    lengths: Float[Tensor, " rows"],
    config: ModelConfig,
) -> Float[Tensor, "rows input"]:
    """The same of predictions, which have moved evenly by `displacement`."""
    rates = None
    if config.reads_motion:
        rates = displacement / lengths.clamp(min=CHORD[0])[:, None]
    return with_inputs(predicted, rates, torch.ones_like(predicted) if config.missing else None)


def select_rows(
    values: Float[Tensor, "rows width"], index: Int[Tensor, " picked"]
) -> Float[Tensor, "picked width"]:
    """`values[index]`, by the kernel whose gradient is fast."""
    return values.index_select(0, index)


def filled(values: Tensor, instead: Tensor) -> Tensor:
    """Values, with `instead` where they are missing."""
    return torch.where(values.isnan(), instead, values)
