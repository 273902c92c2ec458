"""The parts of the benchmark that answer with ratios."""

from __future__ import annotations

import pathlib
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks import jax_peer, peers
from benchmarks.cases import (
    PAPER_EQUATIONS,
    aim_steps,
    mean_step,
    recommended_pcode,
    staircase,
    stepping_pcode,
    still_pcode,
    training_step_length,
    typical_row,
    updates,
)
from benchmarks.measure import Run, Spread, interleave, peak_memory
from benchmarks.report import Comparison, Part
from benchmarks.settings import Settings
from skipstone import ODERNN, PCODE, RNN, Path, Sequences, load
from skipstone.models.base import Model
from skipstone.paper.pool.game import ImaginedScore, ShotSpace, imagine
from skipstone.paper.tasks.shots import SPACING, random_tables

TRAINING_BARS = {
    "large": {1: 1.3, 2.7: 0.75, 5: 0.55, 17: 0.4},
    "small": {1: 1.4, 2.7: 0.85, 5: 0.65, 17: 0.45},
}
"""PC-ODE over RNN in training, at most, by size of the batch and by mean step."""

RECOMMENDED_BAR = 0.8
"""The recommended PC-ODE over the RNN in training, at most, in small batches at its usual step."""

LONG_BAR = 1.0
"""PC-ODE over RNN in training on one long sequence, at most."""

ORACLE_BAR = 0.35
"""PC-ODE over the oracle in training, at most."""

LATENCY_BARS = {1: 0.8, 2.7: 2.2, 5: 4.1, 17: 9.0}
"""RNN over PC-ODE in a rollout, at least, by mean step."""

THROUGHPUT_BAR = 2.1
"""RNN over PC-ODE in many rollouts at once, at least, at a typical mean step."""

ODE_BAR = 8.0
"""ODE-RNN over PC-ODE in rollouts, at least."""

PLANNING_BAR = 2.0
"""RNN over PC-ODE in planning, at least."""

RECOMMENDED = ", recommended"
"""Mark of a PC-ODE with the default settings. Without it, it has the paper's, which the bars are
about."""

WEIGHTS = pathlib.Path(__file__).parents[1] / "weights"


def _data(settings: Settings, step: float, batch: int) -> Sequences:
    return staircase(batch, step, observations=settings.observations, dim=settings.dim)


def _still_pcode(settings: Settings) -> PCODE:
    return still_pcode(settings.dim, **settings.sizes)


def _rnn(settings: Settings) -> RNN:
    torch.manual_seed(0)
    return RNN(RNN.Config(dim=settings.dim, reads="values", **settings.sizes))


def _ode_rnn(settings: Settings, solver: str) -> ODERNN:
    torch.manual_seed(0)
    return ODERNN(ODERNN.Config(dim=settings.dim, solver=solver, reads="values", **settings.sizes))


def _pcode_name(step: float, mark: str = "") -> str:
    return f"PC-ODE, mean step {step:g}{mark}"


def training(settings: Settings) -> Part:
    """Training steps at several mean steps beside the RNN's: the paper's, and the recommended."""
    part = Part("training")
    _train(part, settings, settings.batch, TRAINING_BARS["large"])
    _train(part, settings, settings.small_batch, TRAINING_BARS["small"], RECOMMENDED_BAR)
    _train_long(part, settings)
    return part


def _train(
    part: Part,
    settings: Settings,
    size: int,
    bars: dict[float, float],
    recommended_bar: float | None = None,
) -> None:
    """Training steps with batches of one size."""
    rnn, paper = _rnn(settings), _still_pcode(settings)
    any_data = _data(settings, 1, size)
    usual, note = settings.recommended_step, "" if size == settings.batch else f"batch {size}"
    runs: dict[str, Run] = {
        "RNN": peers.train(rnn, any_data),
        "RNN, unfused": peers.train(peers.unfused(rnn), any_data),
    }
    steps = dict.fromkeys(runs, 1.0)
    for step in (*settings.mean_steps, usual):
        batch = _data(settings, step, size)
        recommended = recommended_pcode(batch, step, **settings.sizes)
        for mark, model in (("", paper), (RECOMMENDED, recommended)):
            name = _pcode_name(step, mark)
            runs[name] = peers.train_pcode(model, batch)
            steps[name] = training_step_length(model, batch)
    samples = interleave(runs, settings.rounds, settings.turn_seconds)
    part.add_times(samples, batch=size, mean_step=steps)
    # Judged beside the better of the two RNNs, whichever that is here.
    better = min(("RNN", "RNN, unfused"), key=lambda name: median(samples[name]))
    for reference in ("RNN", "RNN, unfused"):
        for mark in ("", RECOMMENDED):
            for step in (*settings.mean_steps, usual):
                bar = bars.get(step) if not mark else recommended_bar if step == usual else None
                bar = bar if reference == better else None
                part.compare(samples, _pcode_name(step, mark), reference, note, at_most=bar)


def _train_long(part: Part, settings: Settings) -> None:
    """A training step on one long sequence."""
    step, count = settings.typical_step, settings.long
    batch = staircase(1, step, observations=count, dim=settings.dim)
    runs = {
        "RNN": peers.train(_rnn(settings), batch),
        _pcode_name(step): peers.train_pcode(_still_pcode(settings), batch),
    }
    samples = interleave(runs, settings.slow_rounds, settings.turn_seconds)
    part.add_times(samples, batch=1, observations=count, mean_step={_pcode_name(step): step})
    note = f"one sequence of {count:,}"
    part.compare(samples, _pcode_name(step), "RNN", note, at_most=LONG_BAR)


def rollout(settings: Settings) -> Part:
    """Rollouts read at all observation times: alone, where latency counts, and many at once."""
    part = Part("rollout")
    batch = _data(settings, settings.typical_step, settings.many)
    pcodes = {step: stepping_pcode(batch, step, **settings.sizes) for step in settings.mean_steps}
    others: dict[str, Model[Any]] = {
        "RNN": _rnn(settings),
        "ODE-RNN, dopri5": _ode_rnn(settings, "dopri5"),
        "ODE-RNN, rk4": _ode_rnn(settings, "rk4"),
    }
    for size in (1, settings.many):
        runs = {name: peers.roll_out(model, batch[:size]) for name, model in others.items()}
        steps = dict.fromkeys(others, 1.0)
        for step, model in pcodes.items():
            name, own = _pcode_name(step), batch
            if size == 1:
                own = batch[typical_row(updates(model, batch))]
            runs[name] = peers.roll_out(model, own)
            steps[name] = mean_step(updates(model, own), model)
        samples = interleave(runs, settings.rounds, settings.turn_seconds)
        part.add_times(samples, batch=size, mean_step=steps)
        for step in pcodes:
            many = THROUGHPUT_BAR if step == settings.typical_step else None
            bar = LATENCY_BARS[step] if size == 1 else many
            part.compare(samples, "RNN", _pcode_name(step), f"batch {size}", at_least=bar)
        for other in ("ODE-RNN, dopri5", "ODE-RNN, rk4"):
            name = _pcode_name(settings.typical_step)
            part.compare(samples, other, name, f"batch {size}", at_least=ODE_BAR)
    return part


def everyone(settings: Settings) -> Part:
    """All peers at one mean step: training steps, and rollouts of a large batch."""
    part = Part("peers")
    step = settings.typical_step
    batch, large = _data(settings, step, settings.batch), _data(settings, step, settings.many)
    pcode, stepping = _still_pcode(settings), stepping_pcode(large, step, **settings.sizes)
    rnn, dopri5, rk4 = _rnn(settings), _ode_rnn(settings, "dopri5"), _ode_rnn(settings, "rk4")
    cfc = peers.CfC(settings.dim, **settings.sizes)
    horizon = settings.observations - cfc.num_context
    trained: dict[str, Run] = {
        "PC-ODE": peers.train_pcode(pcode, batch),
        "RNN": peers.train(rnn, batch),
        "RNN, unfused": peers.train(peers.unfused(rnn), batch),
        "CfC": peers.training_step(cfc, lambda: cfc.loss(batch.values)),
        "ODE-RNN, rk4": peers.train(rk4, batch),
        "ODE-RNN, dopri5": peers.train(dopri5, batch),
        "masked step": peers.train_masked(pcode, batch),
        "oracle": peers.train_oracle(pcode, batch),
    }
    rolled: dict[str, Run] = {
        "PC-ODE": peers.roll_out(stepping, large),
        "RNN": peers.roll_out(rnn, large),
        "CfC": lambda: cfc.rollout(large.values, horizon),
        "ODE-RNN, rk4": peers.roll_out(rk4, large),
        "ODE-RNN, dopri5": peers.roll_out(dopri5, large),
    }
    reason = jax_peer.missing()
    if reason is None:
        diffrax = jax_peer.DiffraxODERNN(dopri5)
        trained["ODE-RNN, diffrax"] = diffrax.train(batch)
        rolled["ODE-RNN, diffrax"] = diffrax.roll_out(large)
    else:
        part.skipped["ODE-RNN, diffrax"] = reason
    for what, runs, size in (
        ("training", trained, settings.batch),
        ("rollout", rolled, settings.many),
    ):
        samples = interleave(runs, settings.slow_rounds, settings.turn_seconds)
        part.add_times(samples, what=what, batch=size)
        for name in list(runs)[1:]:
            bar = ORACLE_BAR if name == "oracle" else None
            part.compare(samples, "PC-ODE", name, what, at_most=bar)
    return part


def memory(settings: Settings) -> Part:
    """Peak memory of a training step."""
    part = Part("memory")
    model = _still_pcode(settings)
    rnn = peak_memory(peers.train(_rnn(settings), _data(settings, 1, settings.batch)))
    part.rows.append({"name": "RNN", "peak_bytes": rnn})
    for step in settings.mean_steps:
        peak = peak_memory(peers.train_pcode(model, _data(settings, step, settings.batch)))
        part.rows.append({"name": _pcode_name(step), "peak_bytes": peak})
        share = Spread(*[peak / rnn] * 3)
        bar = 1.0 if step == settings.typical_step else None
        part.comparisons.append(Comparison(f"{_pcode_name(step)} over RNN", share, at_most=bar))
    return part


def planning(settings: Settings) -> Part:
    """Candidate shots at one pool table scored: how near the target ball comes to the pocket."""
    part = Part("planning")
    rng = np.random.default_rng(0)
    table = random_tables(rng, 1)
    tables, shots = table.repeat(settings.many, axis=0), ShotSpace().sample(rng, 1, settings.many)

    def shoot(model: Model[Any]) -> Path:
        with torch.inference_mode():
            return imagine(model, tables, shots[0])

    sizes: dict[str, Any] = {**settings.sizes, "dim": 4, "control": 2, "time_unit": SPACING}
    torch.manual_seed(0)
    pcode = PCODE.from_config({**sizes, **PAPER_EQUATIONS})
    context, _ = ImaginedScore(pcode, tables).inputs(torch.arange(len(tables)), shots[0])
    aim_steps(pcode, context, settings.planning_step, lambda: mean_step(shoot(pcode), pcode))
    pairs: dict[str, tuple[PCODE, Model[Any]]] = {"untrained": (pcode, RNN.from_config(sizes))}
    trained = [WEIGHTS / f"shots-{kind}-cpu-seed0" for kind in ("pcode", "rnn")]
    if all(folder.exists() for folder in trained):
        model, rnn = (load(folder) for folder in trained)
        assert isinstance(model, PCODE)
        pairs["trained"] = (model, rnn)
    else:
        part.skipped["trained models"] = "no weights/shots-*-cpu-seed0"
    for kind, (model, rnn) in pairs.items():
        scores = {"PC-ODE": ImaginedScore(model, table), "RNN": ImaginedScore(rnn, table)}
        runs: dict[str, Run] = {
            name: lambda score=score: score(shots) for name, score in scores.items()
        }
        step = mean_step(shoot(model), model)
        samples = interleave(runs, settings.rounds, settings.turn_seconds)
        part.add_times(samples, weights=kind, mean_step={"PC-ODE": step, "RNN": 1.0})
        part.compare(samples, "RNN", "PC-ODE", kind, at_least=PLANNING_BAR)
    return part
