"""Training for real, in seconds: resuming, stopping, failing and loading."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import skipstone.training.trainee as trainee
from helpers import edit_json, random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Recipe, Run, Sequences, fit, load
from skipstone.locks import locked
from skipstone.models.tensors import read_tensors

RECIPE = Recipe(steps=12, batch_size=8, validate_every=4, checkpoint_every=3)
OPTIONS: dict[str, Any] = {"recipe": RECIPE, "progress": False, "device": "cpu"}


@pytest.fixture
def data() -> Sequences:
    return random_batch(0, [9, 12, 7, 10] * 8, irregular=False, dtype=torch.float32)


def fresh(kind: Any, data: Sequences) -> Any:
    torch.manual_seed(1)
    return kind.for_data(data, hidden=8)


def weights(run: Run) -> dict[str, torch.Tensor]:
    return read_tensors(run.folder / "weights.safetensors")[0]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def interrupt_after(stop: int, patch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the step that is then the last one."""
    original = trainee.Trainee.training_step

    def interrupt(self: Any, step: int, index: int) -> torch.Tensor:
        self.interrupted = step == stop - 1
        return original(self, step, index)

    patch.setattr(trainee.Trainee, "training_step", interrupt)


@pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN, LatentODE])
def test_every_model_trains_and_loads_back(kind: Any, data: Sequences, tmp_path: Path) -> None:
    model = fresh(kind, data)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    run = fit(model, data, folder=tmp_path / "run", **OPTIONS)
    assert not same(before, weights(run))
    loaded = load(run.folder)
    assert type(loaded) is kind
    assert loaded.config == model.config
    assert not loaded.training
    # What is left in the caller's hands is what was kept.
    assert same(model.state_dict(), loaded.state_dict())
    assert run.result["steps"] == 12
    assert {"version", "commit", "machine", "wall_seconds", "seed"} <= set(run.result)
    assert sorted(path.name for path in run.folder.iterdir()) == [
        ".lock",  # Of nobody; see locks.py for why it stays.
        "config.json",
        "metrics.csv",
        "result.json",
        "weights.safetensors",
    ]


@pytest.mark.parametrize(
    ("kind", "scripted", "best"),
    [
        # From 60 % of the steps on, for every model: before, it is not yet what it will be.
        (kind, *rest)
        for kind in (RNN, PCODE)
        for rest in (([3.0, 1.0, 2.0], 8), ([1.0, 3.0, 2.0], 12), ([1.0, 2.0, 3.0], 8))
    ],
)
def test_the_best_weights_are_kept(
    kind: Any,
    scripted: list[float],
    best: int,
    data: Sequences,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Scripted:
        observed = np.ones(1)

        def __init__(self, error: float):
            self.values = np.array([error])

    errors = iter(scripted)
    kept = []

    def roll_out(model: Any, validation: Sequences, scaler: Any) -> Any:
        kept.append({name: weight.clone() for name, weight in model.state_dict().items()})
        return type("Rollouts", (), {"errors": Scripted(next(errors))})

    monkeypatch.setattr(trainee, "roll_out_all", roll_out)
    run = fit(fresh(kind, data), data, folder=tmp_path / "run", **OPTIONS)
    assert run.result["best_step"] == best
    assert same(weights(run), kept[best // 4 - 1])


def test_patience_ends_a_training_early(data: Sequences, tmp_path: Path) -> None:
    recipe = replace(RECIPE, steps=400, learning_rate=1e-9, patience=2)
    run = fit(fresh(RNN, data), data, folder=tmp_path / "run", **{**OPTIONS, "recipe": recipe})
    assert run.result["steps"] < 100


@pytest.mark.parametrize("kind", [PCODE, RNN])
@pytest.mark.parametrize("stop", [1, 3, 5, 11])
def test_an_interrupted_training_ends_with_the_same_weights(
    kind: Any, stop: int, data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at any step, then the same call again: bit for bit as if nothing had happened."""
    undisturbed = fit(fresh(kind, data), data, folder=tmp_path / "whole", **OPTIONS)
    with monkeypatch.context() as patch:
        interrupt_after(stop, patch)
        with pytest.raises(KeyboardInterrupt, match=f"stopped after step {stop}; .*resume"):
            fit(fresh(kind, data), data, folder=tmp_path / "cut", **OPTIONS)
    assert not Run(tmp_path / "cut").finished
    resumed = fit(fresh(kind, data), data, folder=tmp_path / "cut", **OPTIONS)
    assert same(weights(undisturbed), weights(resumed))
    for name in ("best_step", "validation_error", "training_loss", "weights_sha256"):
        assert undisturbed.result[name] == resumed.result[name]


def test_a_finished_training_is_not_repeated(data: Sequences, tmp_path: Path) -> None:
    first = fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
    finished = first.result["finished"]
    stamp = (first.folder / "weights.safetensors").stat().st_mtime_ns
    model = fresh(RNN, data)
    again = fit(model, data, folder=tmp_path / "run", **OPTIONS)
    assert same(model.state_dict(), weights(first))
    assert again.result["finished"] == finished
    assert (first.folder / "weights.safetensors").stat().st_mtime_ns == stamp


def test_a_folder_is_never_continued_with_something_else(data: Sequences, tmp_path: Path) -> None:
    fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
    with pytest.raises(InvalidInput, match="holds a run with another data and seed"):
        fit(fresh(RNN, data), data, folder=tmp_path / "run", seed=3, **OPTIONS)
    with pytest.raises(InvalidInput, match="holds a run with another data"):
        fit(fresh(RNN, data), data[:20], folder=tmp_path / "run", **OPTIONS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(InvalidInput, match="not empty and not a run"):
        fit(fresh(RNN, data), data, folder=tmp_path / "other", **OPTIONS)


def test_without_a_recipe_it_is_the_recommended_one(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit(PCODE.for_data(data), data, folder=tmp_path / "run", progress=False, device="cpu")
    config = Run(tmp_path / "run").config
    assert config["recipe"] == asdict(Recipe())
    fixed = {"dim": 2, **{name: tuple(config["model"][name]) for name in ("center", "scale")}}
    described = json.loads(json.dumps(asdict(PCODE.Config(**fixed))))
    assert config["model"] == {"kind": "pcode", **described}


@pytest.mark.parametrize(("factor", "shown"), [(float("nan"), "nan"), (1e9, "e+0")])
def test_a_diverging_loss_names_the_step_and_keeps_the_best_weights(
    factor: float, shown: str, data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = trainee.Objective.losses

    def explode(self: Any, model: Any, step: int, *ranks: int) -> Any:
        losses = original(self, model, step, *ranks)
        return replace(losses, total=losses.total * factor) if step == 7 else losses

    monkeypatch.setattr(trainee.Objective, "losses", explode)
    with pytest.raises(
        InvalidInput, match=f"at step 7 it is .*{re.escape(shown)}.*from step 4, are"
    ):
        fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
    assert not Run(tmp_path / "run").finished
    kept = load(tmp_path / "run")
    assert all(weight.isfinite().all() for weight in kept.state_dict().values())


@pytest.mark.parametrize("kind", [PCODE, RNN])
def test_mixed_precision_learns_what_full_precision_does(
    kind: Any, data: Sequences, tmp_path: Path
) -> None:
    """With eight bits of mantissa losses agree to per cents, and not to the last digit, or nothing
    would have been rounded."""
    options = {**OPTIONS, "recipe": replace(RECIPE, optimizer="adam", validate_every=12)}
    before = {name: weight.clone() for name, weight in fresh(kind, data).state_dict().items()}
    full, mixed = (
        fit(fresh(kind, data), data, folder=tmp_path / name, precision=name, **options)
        for name in ("32-true", "bf16-mixed")
    )
    assert mixed.result["steps"] == 12
    losses = [run.result["training_loss"] for run in (full, mixed)]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[1] != losses[0]
    for name, weight in weights(mixed).items():
        assert weight.isfinite().all(), name
        assert not torch.equal(weight, before[name]), name


@pytest.fixture
def run(data: Sequences, tmp_path: Path) -> Run:
    return fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run.folder / "config.json").unlink(), "a run is a folder with config.json"),
        (
            lambda run: (run.folder / "config.json").write_text("{"),
            "config.json must be JSON; it is damaged or was edited",
        ),
        (
            lambda run: edit_json(
                run.folder / "config.json", lambda config: config.update(model={"kind": "lstm"})
            ),
            "there is no model 'lstm'. Use pcode, rnn, odernn, latentode",
        ),
        (
            lambda run: edit_json(
                run.folder / "config.json", lambda config: config["model"].update(hidden=10)
            ),
            "must hold the weights of the rnn in config.json; size mismatch",
        ),
        (
            lambda run: edit_json(
                run.folder / "config.json", lambda config: config.update(format=3)
            ),
            "must have format 4; it has format 3, of another version of skipstone. A finished one",
        ),
        (
            lambda run: (run.folder / "weights.safetensors").unlink(),
            "has no weights.safetensors: only its numbers are kept",
        ),
        (
            lambda run: cut_short(run.folder / "weights.safetensors"),
            "it was cut short, edited or replaced: its checksum differs",
        ),
    ],
)
def test_damaged_runs_are_explained(run: Run, damage: Any, message: str) -> None:
    damage(run)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        load(run.folder)


def test_weights_of_another_training_are_refused(run: Run, data: Sequences, tmp_path: Path) -> None:
    """Also where no result says which they are, as in the folder of a training that diverged."""
    (run.folder / "result.json").unlink()
    load(run.folder)
    other = fit(fresh(RNN, data), data, folder=tmp_path / "other", **{**OPTIONS, "seed": 1})
    shutil.copy(other.folder / "weights.safetensors", run.folder)
    with pytest.raises(InvalidInput, match="is not the file that was written with this folder"):
        load(run.folder)


def test_one_training_at_a_time_in_a_folder(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second is told, and changes nothing: the first ends as if it were alone."""
    alone = fit(fresh(RNN, data), data, folder=tmp_path / "alone", **OPTIONS)
    original = trainee.Trainee.training_step

    def intrude(self: Any, step: int, index: int) -> torch.Tensor:
        if step == 5:
            changes: list[dict[str, Any]] = [{}, {"overwrite": True}, {"seed": 1}]
            for more in changes:
                with pytest.raises(InvalidInput, match=rf"process {os.getpid()} on .* does"):
                    fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS, **more)
            with pytest.raises(InvalidInput, match="only one process at a time can write to"):
                fresh(RNN, data).save(tmp_path / "run")
        return original(self, step, index)

    with monkeypatch.context() as patch:
        patch.setattr(trainee.Trainee, "training_step", intrude)
        run = fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
    assert run.result["weights_sha256"] == alone.result["weights_sha256"]
    # A finished one is for everybody.
    with locked(run.folder, "train in"):
        fit(fresh(RNN, data), data, folder=run.folder, **OPTIONS)


def test_a_flipped_bit_in_a_checkpoint_is_not_trained_on(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(3, patch)
        with pytest.raises(KeyboardInterrupt):
            fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
    path = tmp_path / "run" / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"checkpoint\.safetensors must be .* differs\. Copy"):
        fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)


@pytest.mark.parametrize("kill", ["write_tensors", "write_sealed", "remove_file"])
def test_a_training_that_dies_while_it_finishes_ends_the_same(
    kill: str, data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience has run out, and the process dies before weights, before the result, before the
    checkpoint is dropped: no step more is taken."""
    recipe = replace(RECIPE, steps=400, learning_rate=1e-9, patience=2)
    options = {**OPTIONS, "recipe": recipe}
    whole = fit(fresh(RNN, data), data, folder=tmp_path / "whole", **options)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"skipstone.training.fit.{kill}", die)
        with pytest.raises(KeyboardInterrupt):
            fit(fresh(RNN, data), data, folder=tmp_path / "run", **options)
    run = fit(fresh(RNN, data), data, folder=tmp_path / "run", **options)
    for name in ("steps", "best_step", "weights_sha256", "training_loss", "validation_error"):
        assert run.result[name] == whole.result[name]


def test_bad_arguments_are_explained(data: Sequences, tmp_path: Path) -> None:
    for change, message in [
        ({"device": "tpu9"}, 'device must be "auto" or "cpu"; got \'tpu9\''),
        ({"devices": 0}, f"devices must be at least 1 and at most {os.cpu_count()}; got 0"),
        ({"devices": 1_000_000}, f"at most {os.cpu_count()}; got 1000000"),
        ({"precision": "8"}, 'precision must be "32-true", "bf16-mixed" or "16-mixed"; got \'8\''),
        ({"seed": -1}, "seed must be a whole number, zero or more"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            fit(fresh(PCODE, data), data, folder=tmp_path / "run", **{**OPTIONS, **change})


def test_short_and_few_sequences_are_explained_before_the_split(
    data: Sequences, tmp_path: Path
) -> None:
    short = Sequences.concat([data.head(4)[0], data])
    with pytest.raises(InvalidInput, match="at least 5 observations here; sequence 0 has 4"):
        fit(fresh(RNN, data), short, folder=tmp_path / "run", **OPTIONS)
    with pytest.raises(InvalidInput, match="must be at least 10; got 3"):
        fit(fresh(RNN, data), data[:3], folder=tmp_path / "run", **OPTIONS)


def test_units_do_not_change_what_is_learned(data: Sequences, tmp_path: Path) -> None:
    """Features at 1e5 and 1e-5 beside each other train as well as features at 1."""
    units = torch.tensor([1e5, 1e-5], dtype=torch.float64)
    far = Sequences(data.times, data.values.double() * units, mask=data.mask)
    errors = []
    for part, size in ((data, torch.ones(2)), (far, units)):
        model = fresh(RNN, part)
        folder = tmp_path / str(float(size[0]))
        fit(model, part, folder=folder, **{**OPTIONS, "recipe": RECIPE})
        predicted = model.in_data_units(model.loss(part).predicted)
        errors.append(float(((predicted - part.values) / size).square().nanmean()))
    assert errors[1] == pytest.approx(errors[0], rel=0.01)


def test_a_full_disk_is_explained(
    data: Sequences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        InvalidInput, match=r"No space left on device\. Choose another folder, or make room"
    ):
        fit(fresh(RNN, data), data, folder=tmp_path / "run", **OPTIONS)
