"""Folders of models: what decides a prediction cannot be changed unseen, and strangers' sizes cost
nothing."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import safetensors.torch
import torch

from helpers import edit_json
from skipstone import PCODE, RNN, InvalidInput, load, register
from skipstone.calibration import Calibration
from skipstone.models.ensemble import Ensemble
from skipstone.models.rnn import RNNConfig
from skipstone.models.storage import load_hashed, save_model
from skipstone.models.tensors import open_tensors, write_tensors


def small(kind: Any = RNN, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind.from_config({"dim": 2, "hidden": 4, **options})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small(time_unit=0.5).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_comes_back_with_the_checksum_of_its_weights(folder: Path) -> None:
    model, checksum = load_hashed(folder)
    assert checksum == open_tensors(folder / "weights.safetensors").sha256
    assert model.config == small(time_unit=0.5).config
    expected = small().state_dict()
    assert all(torch.equal(each, expected[name]) for name, each in model.state_dict().items())


def test_an_edited_config_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"time_unit": 0.5', '"time_unit": 0.25'))
    with pytest.raises(InvalidInput, match=r"config\.json is not the file that was written"):
        load(folder)


def test_weights_of_another_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    other = RNN.from_config({"dim": 2, "hidden": 4})
    other.save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "weights.safetensors", folder)
    with pytest.raises(InvalidInput, match="is not the file that was written with this folder"):
        load(folder)
    # Nor does it help that nothing is said of them, if they say nothing themselves.
    (folder / "weights.safetensors").write_bytes(safetensors.torch.save(other.state_dict()))
    edit_json(folder / "config.json", lambda config: config.pop("weights_sha256"))
    with pytest.raises(InvalidInput, match="is not the file that was written with this folder"):
        load(folder)


def test_a_save_that_is_killed_leaves_the_former_model_or_the_new_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every change of a name: models with other weights, and with the same ones but another
    config; each with a calibration of its own, or with none."""
    plain, changed, other = small(time_unit=0.5), small(time_unit=0.25), small(dim=3)
    for size, model in enumerate((plain, changed), 1):
        model.calibration = Calibration(torch.full((99, 3, 2), float(size)), torch.arange(1.0, 4.0))
    replace = os.replace
    left = 0

    def dying(source: Any, target: Any) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        replace(source, target)

    for before, after in itertools.permutations((plain, changed, other), 2):
        for count in itertools.count(1):  # The first is that of the lock.
            place = tmp_path / "place"
            shutil.rmtree(place, ignore_errors=True)
            before.save(place)
            left = count
            with monkeypatch.context() as patch:
                patch.setattr(os, "replace", dying)
                with contextlib.suppress(KeyboardInterrupt):
                    after.save(place)
            found = load(place)
            assert any(is_same(found, each) for each in (before, after))
            if left:
                assert is_same(found, after)
                break
            other.save(place)
            assert is_same(load(place), other)
            assert {path.name for path in place.iterdir()} == {
                ".lock",
                "config.json",
                "weights.safetensors",
            }


def is_same(one: Any, other: Any) -> bool:
    kept = one.calibration.quantiles.max() if one.calibration else None
    return (
        one.config == other.config
        and all(
            torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True)
        )
        and kept == (other.calibration.quantiles.max() if other.calibration else None)
    )


def test_a_damaged_calibration_is_refused(folder: Path) -> None:
    model = load(folder)
    model.calibration = Calibration(torch.ones(99, 3, 2), torch.arange(1.0, 4.0))
    save_model(model, folder)
    path = folder / "calibration.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="its checksum differs"):
        load(folder)


HUGE = 10**6


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (RNN, {"layers": HUGE}),
        (RNN, {"layers": 10**18}),
        (RNN, {"hidden": HUGE}),
        (RNN, {"hidden": 10**12}),
        (RNN, {"hidden": 10**30}),
        (RNN, {"dim": 10**9}),
        (PCODE, {"step_layers": HUGE}),
        (PCODE, {"control": 10**9}),
    ],
)
def test_the_sizes_of_a_stranger_cost_neither_time_nor_memory(
    kind: Any, change: dict[str, int], tmp_path: Path
) -> None:
    small(kind).save(tmp_path)
    edit_json(tmp_path / "config.json", lambda config: config["model"].update(change))
    began = time.monotonic()
    refused = (
        r"must hold the weights of the \w+ in config.json; |at most [\d,]+ weights|below 2\*\*63"
        r"|at most 1000; got"
    )
    with pytest.raises(InvalidInput, match=refused):
        load(tmp_path)
    assert time.monotonic() - began < 5


def test_an_ensemble_of_hundreds_is_given_up_early(tmp_path: Path) -> None:
    Ensemble([small(), small()]).save(tmp_path)

    def many(config: dict[str, Any]) -> None:
        config["model"]["members"] *= 200

    edit_json(tmp_path / "config.json", many)
    with pytest.raises(InvalidInput, match="the model in the config has far more layers"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": "4"}, "hidden: expected `int`, got `str`"),
        ({"hidden": 4.5}, "hidden: expected `int`, got `float`"),
        ({"missing": "no"}, "missing: expected `bool`, got `str`"),
        ({"center": None}, "center: expected `array`, got `null`"),
        ({"center": [[0]]}, "expected `float`, got `array`"),
        ({"time_unit": -1}, "time_unit must be above 0"),
        ({"activation": {}}, "activation: expected `str`, got `object`"),
        ({"kind": None}, "model.kind: expected `str`, got `null`"),
        ({"kind": "os:system"}, "must be one that is known here; os:system is not"),
        ({"dims": 3}, "option of RNN must be"),
    ],
)
def test_options_of_the_wrong_type_are_explained(
    change: dict[str, Any], message: str, folder: Path
) -> None:
    edit_json(folder / "config.json", lambda config: config["model"].update(change))
    with pytest.raises(InvalidInput, match=re.escape(message)):
        load(folder)


def test_missing_options_are_explained(folder: Path) -> None:
    edit_json(folder / "config.json", lambda config: config["model"].pop("dim"))
    with pytest.raises(InvalidInput, match="a described RNN must have dim"):
        load(folder)


@dataclass(frozen=True, kw_only=True)
class CountingConfig(RNNConfig):
    units: int = 3


class Counting(RNN):
    """A model that computes with its numbers while it is built, which takes memory."""

    Config: ClassVar[type[RNNConfig]] = CountingConfig

    def __init__(self, config: Any):
        super().__init__(config)
        self.count = int(torch.ones(config.units).sum())


def test_a_model_that_needs_memory_to_be_built_loads_all_the_same(tmp_path: Path) -> None:
    register(Counting, "counting")
    Counting.from_config({"dim": 2, "hidden": 4}).save(tmp_path)
    loaded = load(tmp_path)
    assert isinstance(loaded, Counting)
    assert loaded.count == 3
    edit_json(tmp_path / "config.json", lambda config: config["model"].update(hidden=6))
    with pytest.raises(InvalidInput, match="must hold the weights of the counting"):
        load(tmp_path)


def test_what_cannot_be_described_is_not_half_saved(tmp_path: Path) -> None:
    model = small(PCODE)
    object.__setattr__(model.config, "tolerance", float("inf"))
    with pytest.raises(InvalidInput, match=r"config\.json can only hold finite numbers"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_weights_may_share_memory(tmp_path: Path) -> None:
    one = torch.ones(3)
    write_tensors(tmp_path / "t", {"a": one, "b": one}, {})
    assert json.dumps(open_tensors(tmp_path / "t").shapes) == '{"a": [3], "b": [3]}'
