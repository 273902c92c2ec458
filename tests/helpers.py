"""Exact problems and stubs: batches of every shape, a scripted model, a linear one; `run_cli`."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from hypothesis import strategies as st
from torch import Tensor

from skipstone import PCODE, Draws, Sequences
from skipstone.cli import main
from skipstone.records import SEAL, write_json, write_sealed

PAPER: dict[str, object] = {
    "tolerance": 0.1,
    "anneal_from": 0.0,
    "explore": 0.0,
    "overshoot": 0.0,
    "own_steps": 0.0,
    "step_loss": "difference",
    "step_layers": 1,
    "reads": "values",
    "control_effect": "update",
}
"""The paper's model, without exploration: the plainest one there is."""


@dataclass(frozen=True)
class Said:
    """What a command returned and printed."""

    code: int
    out: str
    err: str


def run_cli(*arguments: str) -> Said:
    """Run the `skipstone` command in this process: `run_cli("train", "circles", "rnn")`."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["skipstone", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as done:
            code = int(done.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def edit_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a JSON file as one who also knows how to seal it, to see what else notices."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    seal = write_sealed(path, content) if SEAL in content else write_json(path, content)
    if path.name == "config.json" and (path.parent / "result.json").is_file():
        edit_json(path.parent / "result.json", lambda result: result.update(config_sha256=seal))


def random_batch(
    seed: int,
    lengths: list[int],
    dim: int = 2,
    control: int = 0,
    spacing: float = 1.0,
    irregular: bool = True,
    dtype: torch.dtype = torch.float64,
    missing: float = 0.0,
) -> Sequences:
    """A smooth random walk, ragged, and irregular unless told otherwise; a share may be missing."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    times, values, controls = [], [], []
    for length in lengths:
        gaps = torch.rand(length, generator=generator, dtype=torch.float64) * 1.5 + 0.25
        times.append(spacing * (gaps if irregular else torch.ones_like(gaps)).cumsum(0))
        values.append((normal(1, dim) + 0.3 * normal(length, dim).cumsum(0)).to(dtype))
        hidden = torch.rand(length, dim, generator=generator) < missing
        # Something is seen of each observation, so that none is dropped.
        hidden[:, 0] &= ~hidden[:, 1:].all(1)
        values[-1] = values[-1].masked_fill(hidden, torch.nan)
        # Controls hold for a few observations, then change.
        levels = normal(length, control).to(dtype)
        switch = (torch.rand(length, generator=generator) < 0.2).cumsum(0)
        controls.append(levels[switch.clamp(max=length - 1)])
    return Sequences.from_lists(values, times, controls if control else None)


def lengths(least: int, most: int = 14, rows: int = 5) -> st.SearchStrategy[list[int]]:
    """Lengths of a ragged batch."""
    return st.lists(st.integers(least, most), min_size=1, max_size=rows)


def small_pcode(seed: int, dim: int = 2, **options: object) -> PCODE:
    """A random model of the paper in double precision whose lines move enough to matter."""
    torch.manual_seed(seed)
    model = PCODE.from_config({"dim": dim, "hidden": 8, **PAPER, **options}).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
        if model.crosses_controls:
            model.drive.normal_()
    return model


def tuned(model: PCODE, **options: object) -> PCODE:
    """The same model with other settings of its config."""
    model.config = replace(model.config, **options)  # pyright: ignore[reportArgumentType]
    return model


def forced(explore: Tensor, own: Tensor | None = None) -> Draws:
    """Draws in which exploration and own steps happen exactly where the masks say so."""
    masks = {"explore": explore, "own steps": torch.zeros_like(explore) if own is None else own}
    return Draws(uniform=lambda purpose: 1.0 - masks[purpose].double())


def step_layer(model: PCODE) -> torch.nn.Linear:
    """The layer that predicts steps, of a model that has one."""
    assert isinstance(model.step_size, torch.nn.Linear)
    return model.step_size


class ScriptedPCODE(PCODE):
    """A model whose predicted steps are written down: by row, then by update."""

    def __init__(self, script: list[list[float]], **options: object):
        config = {"dim": 1, "hidden": 2, "num_context": 1, **PAPER, **options}
        super().__init__(PCODE.Config(**config))  # pyright: ignore
        self.script = torch.tensor(script, dtype=torch.float64)
        self.double()

    def initial_state(self, rows: int) -> Tensor:
        # The state counts updates in its velocity and carries its row in its position.
        return torch.stack([torch.arange(float(rows)), torch.zeros(rows)], dim=1).double()

    def update(self, state: Tensor, encoded: Tensor) -> Tensor:
        return state + torch.tensor([0.0, 1.0], dtype=state.dtype)

    def move(
        self, state: Tensor, lengths: Tensor, drive: object = None, segments: object = None
    ) -> Tensor:
        return state

    def predict_step(self, state: Tensor) -> Tensor:
        row, update = state.round().long().T
        return self.script[row, update - 1]


def linear_pcode(rate: float, step: float, **options: object) -> PCODE:
    """A model that is known in closed form: every segment moves with the same speed.

    The cell ignores its input: its candidate is constant and its gate never keeps the old state.
    The decoder reads the position (kept positive, where ReLU is the identity), so that
    x̂(t) = x(τ) + rate·(t − τ), and the step size is a constant.
    """
    sizes = {"dim": 1, "hidden": 2, "layers": 2, "num_context": 1, "max_step": 1000}
    model = PCODE.from_config({**sizes, **PAPER, **options}).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        # Candidate tanh(bias) = (0.5, 0.5); the keep gate is sigmoid(-100) = 0.
        model.cell.bias_ih[2:4] = -100.0
        model.cell.bias_ih[4:] = torch.tensor(0.5, dtype=torch.float64).atanh()
        model.decoder.first.weight[0, 0] = 1.0
        velocity = 0.5 * model.config.velocity_scale
        model.decoder.last.weight[0, 0] = rate / velocity
        step_layer(model).bias.fill_(step - model.config.min_step)
    return model
