"""Run folders in daily life: none given, one used again, other data, and horizons."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import skipstone.training.fit as fitting
import skipstone.training.trainee as trainee
from helpers import random_batch
from skipstone import PCODE, RNN, InvalidInput, Recipe, Run, Sequences, fit, load
from skipstone.locks import locked
from skipstone.models.tensors import read_tensors

RECIPE = Recipe(steps=6, batch_size=8, validate_every=3, checkpoint_every=2)
OPTIONS: dict[str, Any] = {"recipe": RECIPE, "progress": False, "device": "cpu"}


@pytest.fixture
def data() -> Sequences:
    return random_batch(0, [9, 12, 7, 10] * 4, irregular=False, dtype=torch.float32)


def fresh(data: Sequences, kind: Any = RNN) -> Any:
    torch.manual_seed(1)
    return kind.for_data(data, hidden=8)


def weights(run: Run) -> dict[str, torch.Tensor]:
    return read_tensors(run.folder / "weights.safetensors")[0]


def test_without_a_folder_it_is_a_temporary_one_that_is_told(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = fit(fresh(data), data, **OPTIONS)
    assert run.folder.parent == tmp_path
    assert f"temporary folder, {run.folder}; give folder=" in capsys.readouterr().err
    assert run.finished
    with pytest.raises(InvalidInput, match=r"2 processes must agree on a folder"):
        fit(fresh(data), data, devices=2, **OPTIONS)


def test_a_run_takes_a_string(data: Sequences, tmp_path: Path) -> None:
    run = fit(fresh(data), data, folder=str(tmp_path / "run"), **OPTIONS)
    assert Run(str(tmp_path / "run")) == run
    assert Run(str(run.folder)).result == run.result


def test_overwrite_starts_over_and_keeps_what_is_not_the_runs(
    data: Sequences, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    fit(fresh(data), data, folder=folder, **OPTIONS)
    (folder / "evaluation.json").write_text("{}")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match=r"another data and seed.*overwrite=True"):
        fit(fresh(data), data, folder=folder, seed=2, **OPTIONS)
    again = fit(fresh(data), data, folder=folder, seed=2, overwrite=True, **OPTIONS)
    assert again.config["seed"] == 2
    assert again.evaluation == {}
    assert (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(InvalidInput, match="not empty and not a run"):
        fit(fresh(data), data, folder=tmp_path / "other", overwrite=True, **OPTIONS)


def test_what_cannot_be_trained_does_not_remove_a_former_run(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fit(fresh(data), data, folder=tmp_path, **OPTIONS)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    again: dict[str, Any] = {"folder": tmp_path, "seed": 2, "overwrite": True, **OPTIONS}
    with pytest.raises(InvalidInput, match=r"told about its training.*`object`, got `int`"):
        fit(fresh(data), data, data={"job": 3}, **again)
    monkeypatch.setattr(RNN, "needs", ("torchdiffeq",))
    for missing, extra in (("lightning", "train"), ("torchdiffeq", "ode")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(InvalidInput, match=rf"not installed.*skipstone\[{extra}\]"):
                fit(fresh(data), data, **again)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert run.config["seed"] == 0


def test_only_the_first_process_overwrites(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fit(fresh(data), data, folder=tmp_path / "run", **OPTIONS)
    finished = run.result["finished"]
    monkeypatch.setitem(os.environ, "LOCAL_RANK", "1")
    monkeypatch.setattr(fitting, "cpu_count", lambda: 2)
    options = {**OPTIONS, "devices": 2}
    again = fit(fresh(data), data, folder=tmp_path / "run", overwrite=True, **options)
    assert again.result["finished"] == finished


def test_a_single_process_is_the_first_whatever_it_was_started_by(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "LOCAL_RANK", "1")
    with locked(tmp_path / "run", "train in"), pytest.raises(InvalidInput, match="only one proc"):
        fit(fresh(data), data, folder=tmp_path / "run", **OPTIONS)
    assert fit(fresh(data), data, folder=tmp_path / "run", **OPTIONS).finished


@pytest.mark.parametrize("described", [None, {"file": "log.csv"}])
def test_other_data_of_either_part_is_an_error(
    described: dict[str, Any] | None, data: Sequences, tmp_path: Path
) -> None:
    train, validation = data[:12], data[12:]
    options = {**OPTIONS, "folder": tmp_path / "run", "data": described}
    fit(fresh(train), train, validation, **options)
    fit(fresh(train), train, validation, **options)
    for other in ((train, validation[:3]), (train[:11], validation)):
        with pytest.raises(InvalidInput, match="holds a run with another data"):
            fit(fresh(train), *other, **options)


def test_a_model_trained_by_hand_is_saved_and_loaded(data: Sequences, tmp_path: Path) -> None:
    model = fresh(data, PCODE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.loss(data).total.backward()
    optimizer.step()
    for _ in range(2):  # Once more over the first.
        model.save(tmp_path / "mine")
    again = load(str(tmp_path / "mine"))
    times = data.head(4).ends[:, None] + torch.arange(1.0, 3.0)
    one, other = (m.rollout(data.head(4), times[:, -1]).evaluate(times) for m in (model, again))
    assert torch.equal(one, other)
    run = fit(model, data, folder=tmp_path / "run", **OPTIONS)
    with pytest.raises(InvalidInput, match=r"holds a training.*a folder of its own"):
        again.save(run.folder)
    assert load(run.folder) is not None


def test_a_horizon_trains_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches and the validation are windows of context and horizon."""
    log = random_batch(0, [300], dtype=torch.float32)
    model, widths = fresh(log), []
    original, rolled = RNN.loss, []
    monkeypatch.setattr(
        RNN,
        "loss",
        lambda self, batch, *a: (widths.append(batch.times.shape), original(self, batch, *a))[1],
    )
    usual = trainee.roll_out_all
    monkeypatch.setattr(
        trainee, "roll_out_all", lambda m, s, **more: (rolled.append(s), usual(m, s, **more))[1]
    )
    run = fit(model, log, folder=tmp_path / "run", horizon=5, **OPTIONS)
    assert run.config["horizon"] == 5
    assert set(widths) == {(8, 9)}
    # The last tenth of the log, three windows side by side, the same each time.
    assert {tuple(s.times.shape) for s in rolled} == {(3, 9)}
    assert float(rolled[0].times.min()) > float(log.times[0, 269])
    assert all(torch.equal(s.times, rolled[0].times) for s in rolled)
    with pytest.raises(InvalidInput, match="another horizon"):
        fit(fresh(log), log, folder=tmp_path / "run", horizon=6, **OPTIONS)


@pytest.mark.parametrize("kind", [PCODE, RNN])
def test_a_horizon_resumes_bit_for_bit(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    logs = random_batch(0, [60, 8, 90], dtype=torch.float32)
    whole = fit(fresh(logs, kind), logs, folder=tmp_path / "whole", horizon=6, **OPTIONS)
    original = trainee.Trainee.training_step

    def interrupt(self: Any, step: int, index: int) -> torch.Tensor:
        self.interrupted = step == 2
        return original(self, step, index)

    with monkeypatch.context() as patch:
        patch.setattr(trainee.Trainee, "training_step", interrupt)
        with pytest.raises(KeyboardInterrupt, match="stopped after step 3"):
            fit(fresh(logs, kind), logs, folder=tmp_path / "cut", horizon=6, **OPTIONS)
    shown = {**OPTIONS, "progress": True}
    resumed = fit(fresh(logs, kind), logs, folder=tmp_path / "cut", horizon=6, **shown)
    assert f"resuming the training in {tmp_path / 'cut'}" in capsys.readouterr().err
    assert all(torch.equal(weights(whole)[n], w) for n, w in weights(resumed).items())
    assert whole.result["validation_error"] == resumed.result["validation_error"]


@pytest.mark.parametrize("horizon", [0, -1, 500])
def test_a_bad_horizon_is_explained(horizon: Any, data: Sequences) -> None:
    with pytest.raises(InvalidInput, match=re.escape("horizon, the observations to predict,")):
        fit(fresh(data), data, horizon=horizon, **OPTIONS)


def test_a_long_log_is_two_calls_from_a_forecast(tmp_path: Path) -> None:
    """50,000 rows: what a step takes and keeps does not grow with the log."""
    angle = torch.arange(50_000) * 0.1
    log = Sequences.from_array(torch.stack([angle.sin(), angle.cos()], -1)[None], spacing=0.1)
    model = fresh(log, PCODE)
    fit(model, log, folder=tmp_path / "run", horizon=20, **OPTIONS)
    path = model.rollout(log.tail(4), until=log.ends + 2)
    assert path.evaluate(log.ends[:, None] + 1.5).isfinite().all()
