"""Arithmetic that all models share: errors of predictions, rows and inputs of tensors."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from skipstone.models.typing import BatchMask, BatchTimes
from skipstone.sequences import Sequences


def squared_error(
    predicted: Float[Tensor, "*points dim"], observed: Float[Tensor, "*points dim"]
) -> Float[Tensor, "*points"]:
    """Squared error, averaged over features: the ℓ that the tolerance ε is compared with."""
    return (predicted - observed).square().mean(-1)


def mean_error(
    batch: Sequences, errors: Float[Tensor, " points"], predicted: BatchMask
) -> tuple[Float[Tensor, ""], BatchTimes]:
    """The mean of errors at the predicted observations, and the errors laid out like the batch."""
    layout = torch.full_like(batch.values[..., 0], torch.nan)
    return errors.mean(), layout.masked_scatter(predicted, errors.detach())


def start_error(
    decoded: Float[Tensor, "segments dim"], values: Float[Tensor, "segments dim"], points: int
) -> Float[Tensor, ""]:
    """Error of an absolute readout where segments begin, weighed like any of `points` observations.

    A displacement is exact at its start by construction. An absolute readout has to learn that, or
    nothing would say what it predicts before the segment's first observation.
    """
    return squared_error(decoded, values).sum() / points


def with_inputs(
    values: Float[Tensor, "*rows dim"], *inputs: Float[Tensor, "*rows _"] | None
) -> Float[Tensor, "*rows all"]:
    """Encoder inputs joined with controls and whatever else an encoder takes."""
    given = [part for part in inputs if part is not None]
    return torch.cat([values, *given], dim=-1) if given else values


def select_rows(
    values: Float[Tensor, "rows width"], index: Int[Tensor, " picked"]
) -> Float[Tensor, "picked width"]:
    """`values[index]`, by the kernel whose gradient is fast."""
    return values.index_select(0, index)
