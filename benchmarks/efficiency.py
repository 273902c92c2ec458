"""How much of the machine's arithmetic a training step uses."""

from __future__ import annotations

from statistics import median

import torch

from benchmarks import peers
from benchmarks.cases import staircase, still_pcode
from benchmarks.measure import Run, Spread, flops, interleave, matmuls
from benchmarks.report import Comparison, Part, Samples
from benchmarks.settings import Settings
from skipstone import PCODE, RNN, Draws, Sequences, find_knots

EFFICIENCY_BAR = 0.5
"""Useful arithmetic per second over that of the fastest product, at least."""


def efficiency(settings: Settings) -> Part:
    """Useful arithmetic per second, beside that of plain matrix products in the same rounds."""
    part = Part("efficiency")
    model = still_pcode(settings.dim, **settings.sizes)
    rnn = RNN(RNN.Config(dim=settings.dim, reads="values", **settings.sizes))
    runs: dict[str, Run] = {}
    work: dict[str, dict[str, int]] = {}
    for step in settings.mean_steps:
        batch = staircase(
            settings.batch, step, observations=settings.observations, dim=settings.dim
        )
        name = f"PC-ODE, mean step {step:g}"
        runs[name] = peers.train_pcode(model, batch)
        work[name] = pcode_work(model, batch, runs[name])
        runs["RNN"] = peers.train(rnn, batch)
    work["RNN"] = {"useful_flops": flops(runs["RNN"])}
    products = matmuls(settings.batch, settings.observations, settings.hidden, settings.square)
    for name, (product, count) in products.items():
        runs[name], work[name] = product, {"useful_flops": count}
    samples = interleave(runs, settings.rounds, settings.turn_seconds)
    rates = {name: _rates(samples, name, work[name]["useful_flops"]) for name in runs}
    part.add_times(
        samples,
        gflops_per_second={name: median(rate) / 1e9 for name, rate in rates.items()},
        useful_flops={name: done["useful_flops"] for name, done in work.items()},
        all_flops={name: done.get("all_flops") for name, done in work.items()},
        search_flops={name: done.get("search_flops") for name, done in work.items()},
    )
    # The strictest measure: the best rate of any product.
    fastest = max(products, key=lambda name: median(rates[name]))
    for name in [name for name in runs if name not in products]:
        bar = None if name == "RNN" else EFFICIENCY_BAR
        shares = [own / best for own, best in zip(rates[name], rates[fastest], strict=True)]
        title = f"arithmetic per second, {name} over the best product"
        part.comparisons.append(Comparison(title, Spread.of(shares), at_least=bar))
    return part


def _rates(samples: Samples, name: str, count: int) -> list[float]:
    return [count / seconds for seconds in samples[name]]


def pcode_work(model: PCODE, batch: Sequences, run: Run) -> dict[str, int]:
    """Work of a training step: all of it, what is useful of it, and what the search did.

    Useful is the fit, forward and backward, which holds the search's own updates, and of the
    search besides what none could do without: each observation after the context decoded once,
    and once more where a line turned out to end.
    """
    draws = Draws.seeded(batch, 0)
    found = Draws(knots=find_knots(model, batch, draws))
    losses = model.loss(batch, found)
    points = len(batch) * (batch.times.shape[1] - model.config.num_context)
    ended = losses.num_steps - len(batch)

    @torch.no_grad()
    def least_search() -> None:
        lines = model.lines(model.initial_state(1), torch.zeros(1, model.config.dim))
        model.decoder.after_first(lines.first.expand(points + ended, -1).contiguous())

    done = flops(run)
    fit = flops(lambda: model.loss(batch, found).total.backward())
    return {
        "all_flops": done,
        "useful_flops": fit + flops(least_search),
        "search_flops": flops(lambda: find_knots(model, batch, draws)),
    }
