"""How time grows with the batch, with the number of observations and with the hidden size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import peers
from benchmarks.cases import (
    mean_step,
    pcode_loss,
    staircase,
    stepping_pcode,
    still_pcode,
    updates,
)
from benchmarks.measure import Run, interleave
from benchmarks.report import Part
from benchmarks.settings import Settings
from skipstone import PCODE, RNN, Path, Sequences

UPDATES_BAR = 1.25
"""Time of the updates at the highest sampling rate over that at the lowest, at most. There are
equally many of them, so it should be one: the rest is for noise."""

CALIBRATION_ROWS = 256
"""Rows on which steps are set: enough for a mean."""

CONTEXT = 4
"""Observations of the context, which belong to no free segment."""


@dataclass(frozen=True)
class Point:
    """One size at which models are timed."""

    along: str
    """What grows: `batch`, `rate` or `hidden`."""

    size: int
    batch: int
    hidden: int
    rate: int = 1
    """Sampling rate: as many times more observations, of the same events."""


def points(settings: Settings) -> Iterator[Point]:
    """All sizes of the three curves."""
    for size in settings.batches:
        yield Point("batch", size, size, settings.hidden)
    yield from rate_points(settings)
    for size in settings.hiddens:
        yield Point("hidden", size, settings.batch, size)


def rate_points(settings: Settings) -> Iterator[Point]:
    """All sampling rates."""
    for rate in settings.rates:
        yield Point("rate", rate, settings.rate_batch, settings.hidden, rate)


class Case:
    """Data and models of one size. The unit of time is the spacing, whatever the rate."""

    def __init__(self, point: Point, settings: Settings):
        observations = point.rate * settings.observations
        segments = (settings.observations - CONTEXT) / settings.typical_step
        self.mean_step = (observations - CONTEXT) / segments
        self.batch = staircase(
            point.batch, self.mean_step, observations=observations, dim=settings.dim
        )
        self.sizes: dict[str, Any] = {"hidden": point.hidden, "layers": settings.layers}
        # The same motion in shorter units is a slower one, and steps are longer.
        self.motion = {"velocity_scale": 0.2 / point.rate, "max_step": float(observations)}

    def still_pcode(self) -> PCODE:
        """The model to train."""
        return still_pcode(self.batch.dim, **self.sizes, **self.motion)

    def stepping_pcode(self) -> PCODE:
        """The model to roll out."""
        rows = self.batch[:CALIBRATION_ROWS]
        return stepping_pcode(rows, self.mean_step, **self.sizes, **self.motion)

    def rnn(self) -> RNN:
        """The model beside both."""
        torch.manual_seed(0)
        return RNN.for_data(self.batch, reads="values", **self.sizes)


def growth(settings: Settings) -> Part:
    """Training steps and rollouts of PC-ODE and RNN at all sizes, interleaved at each."""
    part = Part("growth")
    for point in points(settings):
        case = Case(point, settings)
        still, stepping, rnn = case.still_pcode(), case.stepping_pcode(), case.rnn()
        runs: dict[str, Run] = {
            "PC-ODE, training": peers.train_pcode(still, case.batch),
            "RNN, training": peers.train(rnn, case.batch),
            "PC-ODE, rollout": peers.roll_out(stepping, case.batch),
            "RNN, rollout": peers.roll_out(rnn, case.batch),
        }
        steps = {
            "PC-ODE, training": pcode_loss(still, case.batch).mean_step,
            "PC-ODE, rollout": mean_step(updates(stepping, case.batch), stepping),
        }
        samples = interleave(runs, settings.growth_rounds, settings.turn_seconds)
        part.add_times(samples, along=point.along, size=point.size, mean_step=steps)
    return part


def sampling(settings: Settings) -> Part:
    """Rollouts at several sampling rates, all interleaved: updates and decoding by themselves."""
    part = Part("sampling")
    runs: dict[str, Run] = {}
    rates: dict[str, int] = {}
    for point in rate_points(settings):
        case = Case(point, settings)
        stepping, rnn = case.stepping_pcode(), case.rnn()
        for name, run in (
            (_updates_name(point.rate), _update(stepping, case.batch)),
            (f"PC-ODE decoding, {point.rate} ×", _decode(stepping, case.batch)),
            (f"RNN rollout, {point.rate} ×", peers.roll_out(rnn, case.batch)),
        ):
            runs[name], rates[name] = run, point.rate
    samples = interleave(runs, settings.growth_rounds, settings.turn_seconds)
    part.add_times(samples, rate=rates)
    lowest, highest = _updates_name(min(settings.rates)), _updates_name(max(settings.rates))
    part.compare(samples, highest, lowest, at_most=UPDATES_BAR)
    return part


def _updates_name(rate: int) -> str:
    return f"PC-ODE updates, {rate} ×"


def _update(model: PCODE, batch: Sequences) -> Run:
    return lambda: updates(model, batch)


def _decode(model: PCODE, batch: Sequences) -> Run:
    path: Path = updates(model, batch)
    times = batch.times[:, CONTEXT:]

    @torch.inference_mode()
    def run() -> None:
        path.evaluate(times)

    return run
