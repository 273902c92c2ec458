"""Training of a `PCODE`: section 3 of the paper, the loss of segments that a search has found."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from skipstone.models import fast
from skipstone.models.arithmetic import (
    laid_out,
    scored_observations,
    select_rows,
    squared_error,
)
from skipstone.models.controls import Integrals
from skipstone.models.learning import Draws, Knots, Losses
from skipstone.models.loop import GivenKnots, Round, TeacherForcing, walk
from skipstone.models.pcode import PCODE
from skipstone.models.pcode_config import STEP_LOSS_WEIGHTS
from skipstone.models.search import Search
from skipstone.models.targets import Fitted, Targets
from skipstone.sequences import Sequences

SHORT = 0.5
"""Predicted step, in the model's unit of time, below which a logarithm goes on as a straight line:
an untrained layer may predict anything."""

OVERSHOOT_CAP = 4.0
"""Multiple of the tolerance beyond which an overshooting line is left alone: there a true event
ended it."""


class Walk(NamedTuple):
    """A batch, walked from knot to knot."""

    rounds: list[Round]
    """What was computed."""

    knots: Knots
    """Where segments began."""

    targets: Targets
    """Which segment predicts what."""

    integrals: Integrals | None
    """Of controls that drive segments."""


def training_loss(model: PCODE, batch: Sequences, draws: Draws) -> Losses:
    """See `PCODE.loss`."""
    config = model.config
    batch = model.prepare(batch, config.num_context + 1)
    fitted = fit_lines(model, batch, draws)
    points = max(1, len(fitted.error))
    prediction = fitted.error.sum() / points
    step = _step_loss(model, fitted)
    weight = STEP_LOSS_WEIGHTS[config.step_loss]
    total = prediction + weight * step
    # Both are weighed like any other observation.
    if not config.moves:
        total = total + fitted.start.sum() / points
    if config.overshoot and len(fitted.past):
        past = fitted.past.clamp(max=OVERSHOOT_CAP * model.tolerance_at(draws)).sum() / points
        total = total + config.overshoot * past
    return Losses(
        total=total,
        prediction=prediction,
        predicted=laid_out(batch, fitted.predicted, fitted.values),
        num_points=len(fitted.error),
        mean_step=float(fitted.length.mean()) if len(fitted.length) else 1.0,
        num_updates=int(fitted.knots.count.sum()),
        step=step,
        step_weight=weight,
        num_steps=len(fitted.length),
    )


def fit_lines(model: PCODE, batch: Sequences, draws: Draws) -> Fitted:
    """The segments of a prepared batch and their errors, by the fast path where it applies."""
    scored = scored_observations(batch, model.config.num_context)
    fitted = fast.try_fit(model, batch, draws, model.tolerance_at(draws), scored)
    return _fit_walk(model, batch, walk_data(model, batch, draws)) if fitted is None else fitted


def _fit_walk(model: PCODE, batch: Sequences, walked: Walk) -> Fitted:
    """What the lines of a walk predict."""
    config, targets = model.config, walked.targets
    states = torch.cat([each.front.state for each in walked.rounds])
    begins = torch.cat([each.front.values for each in walked.rounds])
    lines = model.lines(states, begins)
    decoded = model.decoder.after_first(lines.first)
    origin = begins - decoded if config.moves else torch.zeros_like(begins)
    observed = batch.values.flatten(0, 1)

    def predict(segment: Tensor, offset: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        integrals = None
        if walked.integrals is not None:
            integrals = walked.integrals.between(targets.begin[segment], place)
        found = model.decode(origin, lines.first, lines.slope, segment, offset, integrals)
        return found, squared_error(found, select_rows(observed, place), config.missing)

    chosen = select_rows(states, targets.free)
    values, error = predict(targets.point_segment, targets.point_offset, targets.point)
    past = error[:0]
    if config.overshoot and len(targets.past):
        _, past = predict(targets.past_segment, targets.past_offset, targets.past)
    return Fitted(
        predicted=targets.predicted,
        values=values.detach(),
        error=error,
        past=past,
        # Not the observations: what is missing there was filled in.
        start=squared_error(decoded, begins, False),
        step=model.predict_step(chosen if config.steps_reach_states else chosen.detach()),
        length=targets.free_lengths,
        cut=targets.free_cut,
        knots=walked.knots,
    )


def walk_data(model: PCODE, batch: Sequences, draws: Draws) -> Walk:
    """Walk a prepared batch from knot to knot, teacher-forced."""
    context = model.config.num_context
    source = TeacherForcing(model, batch, draws.shown(batch.values), range(context))
    clock, given = source.clock, draws.knots
    if given is None:
        policy = search = search_policy(model, batch, draws, source)
    else:
        policy = GivenKnots(given.at, batch.lengths - 1, clock, batch.values.dtype)
        search = None
    rounds = list(walk(model, source.begin(), policy, source))
    if search is None:
        assert given is not None
        knots, reach = given, None
    else:
        at = torch.zeros_like(batch.mask)
        for front, _, _ in rounds:
            at[front.rows, front.knot] = True
        knots, reach = Knots(at, search.cut), search.reach
    targets = Targets.of(batch, rounds, clock, context, reach, knots.cut)
    return Walk(rounds, knots, targets, source.signal and source.signal.integrals)


def search_policy(model: PCODE, batch: Sequences, draws: Draws, source: TeacherForcing) -> Search:
    """The search of a training step. Features that are not targets count as not observed."""
    config, observed = model.config, batch.values
    if config.targets:
        others = [feature for feature in range(config.dim) if feature not in config.targets]
        observed = observed.index_fill(2, torch.tensor(others, device=observed.device), torch.nan)
    return Search(
        model,
        batch,
        observed,
        source.clock,
        source.signal and source.signal.integrals,
        model.tolerance_at(draws),
        config.num_context,
        draws.happens("explore", config.explore, batch),
        draws.happens("own steps", config.own_steps, batch),
    )


def _step_loss(model: PCODE, fitted: Fitted) -> Float[Tensor, ""]:
    """Mean squared error of predicted steps, over the segments whose length was free.

    A segment cut short by the end of its sequence or by a change of control would have gone on: its
    length is a lower bound, and only a prediction below it is an error.
    """
    step, length = fitted.step, fitted.length
    if len(step) == 0:
        return fitted.error.sum() * 0
    ratio = model.config.step_loss == "ratio"
    error = _log(step) - _log(length) if ratio else step - length
    error = torch.where(fitted.cut, error.clamp(max=0), error)
    return error.square().mean()


def _log(step: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """The logarithm, and below `SHORT` its tangent there, so that it is defined everywhere."""
    return step.clamp(min=SHORT).log() + (step - SHORT).clamp(max=0) / SHORT


@torch.no_grad()
def find_knots(model: PCODE, batch: Sequences, draws: Draws | None = None) -> Knots:
    """Where a training step on this batch would update the cell: the longest segments whose error
    stays below the model's tolerance."""
    batch = model.prepare(batch, model.config.num_context + 1)
    return fit_lines(model, batch, draws or Draws()).knots
