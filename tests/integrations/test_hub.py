"""Models on the Hub: bit for bit there and back without a network, strict, and with a true card."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import random_batch
from pages import ROOT
from skipstone import PCODE, InvalidInput, Model, Recipe, calibrate, fit

pytest.importorskip("huggingface_hub")

from huggingface_hub import HfApi, ModelCard
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from skipstone.integrations.hub import HubModel

DATA = random_batch(0, [9] * 24, dtype=torch.float32)
SHIPPED = ROOT / "weights" / "circles-pcode-cpu-seed0"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def model() -> PCODE:
    torch.manual_seed(0)
    return calibrate(PCODE.for_data(DATA, hidden=8, tolerance=0.0125), DATA)


def assert_same(one: Model[Any], other: Model[Any]) -> None:
    """Equal to the last bit: settings, weights, intervals and what they predict."""
    assert type(one) is type(other)
    assert one.config == other.config
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    until = DATA.ends
    for bound, again in zip(
        one.rollout(DATA.head(4), until).interval(until[:, None], 0.5),
        other.rollout(DATA.head(4), until).interval(until[:, None], 0.5),
        strict=True,
    ):
        assert torch.equal(bound, again)


def in_cache(folder: Path, cache: Path) -> None:
    """Lay a folder out as huggingface_hub keeps a repository that it has downloaded."""
    repository, commit = cache / "models--someone--balls", "0" * 40
    shutil.copytree(folder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")


def test_there_and_back_through_a_folder(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path / "saved")
    names = {path.name for path in (tmp_path / "saved").iterdir() if path.name[0] != "."}
    assert {"config.json", "weights.safetensors", "calibration.safetensors", "README.md"} == names
    loaded = HubModel.from_pretrained(tmp_path / "saved")
    assert not loaded.model.training
    assert_same(model, loaded.model)
    assert "tolerance" in loaded.card


def test_from_the_cache_without_a_network(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path / "saved")
    in_cache(tmp_path / "saved", tmp_path / "cache")
    loaded = HubModel.from_pretrained(
        "someone/balls", cache_dir=tmp_path / "cache", local_files_only=True
    )
    assert_same(model, loaded.model)


def test_what_is_uploaded_can_be_loaded(
    model: PCODE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, Any] = {}

    class Made:
        repo_id = "someone/balls"

    def upload(self: HfApi, *, folder_path: Path, **settings: Any) -> str:
        sent.update(settings)
        shutil.copytree(folder_path, tmp_path / "sent")
        return "sent"

    monkeypatch.setattr(HfApi, "create_repo", lambda self, **settings: Made())
    monkeypatch.setattr(HfApi, "upload_folder", upload)
    assert HubModel(model).push_to_hub("someone/balls", private=True) == "sent"
    assert (sent["repo_id"], sent["repo_type"]) == ("someone/balls", "model")
    assert sent["allow_patterns"] == ["*.json", "*.safetensors", "README.md"]
    assert_same(model, HubModel.from_pretrained(tmp_path / "sent").model)


class Trap:
    """What runs code as soon as it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was read",))


def test_a_pickle_is_never_read(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path)
    for name in ("pytorch_model.bin", "model.pt", "weights.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    assert_same(model, HubModel.from_pretrained(tmp_path).model)
    (tmp_path / "weights.safetensors").unlink()
    with pytest.raises(LocalEntryNotFoundError, match=r"has no weights\.safetensors"):
        HubModel.from_pretrained(tmp_path)


def test_damaged_and_foreign_files_are_refused(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path)
    weights = tmp_path / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-4] + b"\0\0\0\1")
    with pytest.raises(ValueError, match="checksum differs"):
        HubModel.from_pretrained(tmp_path)
    weights.write_bytes(whole)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json"):
        HubModel.from_pretrained(tmp_path)
    for damaged in (b"{", b"\xff\xfe\x00\x80", b"[" * 100_000, b"[1]", b"", b"null"):
        (tmp_path / "config.json").write_bytes(damaged)
        with pytest.raises(InvalidInput, match=r"config\.json") as raised:
            HubModel.from_pretrained(tmp_path)
        assert "\n" not in str(raised.value)
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        HubModel.from_pretrained(ROOT / "docs")


@pytest.mark.parametrize("name", ["no/such/folder", "no such name", "../gone"])
def test_a_wrong_name_is_said(name: str) -> None:
    with pytest.raises(HFValidationError, match=f"a repository, owner/name; got '{name}'"):
        HubModel.from_pretrained(name)


def test_only_models_are_wrapped(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be given a Model; got PosixPath"):
        HubModel(tmp_path)


def test_settings_of_a_saved_model_are_fixed(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path)
    with pytest.raises(TypeError, match="without further settings; got hidden"):
        HubModel.from_pretrained(tmp_path, hidden=16)


def test_the_record_of_a_training_is_not_lost(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = PCODE.for_data(DATA, hidden=8)
    recipe = Recipe(steps=2, batch_size=4)
    fit(model, DATA, folder=tmp_path / "run", recipe=recipe, progress=False, data={"log": "rooms"})
    before = (tmp_path / "run" / "config.json").read_bytes()
    shared = HubModel.from_run(tmp_path / "run")
    with pytest.raises(InvalidInput, match="must not be the folder of a training"):
        shared.save_pretrained(tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    shared.save_pretrained(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert "| data: log | rooms |" in card
    assert "| steps | 2, best at 2 |" in card


def test_the_card_says_what_was_recorded() -> None:
    evaluation = json.loads((SHIPPED / "evaluation.json").read_text(encoding="utf-8"))
    shared = HubModel.from_run(SHIPPED)
    card = shared.generate_model_card()
    assert isinstance(card, ModelCard)
    assert card.data.to_dict()["library_name"] == "skipstone"
    for line in (
        "| kind | `pcode` |",
        "| features, controls | 2, 0 |",
        "| tolerance | squared error of 5.00e-3, in scaled units |",
        "| data: task | circles |",
        "| intervals | none: it was not calibrated |",
    ):
        assert line in card.text, line
    found = next(line for line in card.text.splitlines() if "test: sample mse" in line)
    assert float(found.split("|")[2].split()[0]) == pytest.approx(
        evaluation["sample_mse"]["value"], rel=0.01
    )
    assert found.endswith("in squared units of the data |")


def test_a_card_of_ones_own_is_kept(model: PCODE, tmp_path: Path) -> None:
    HubModel(model, "# Balls\n\nThey bounce.\n").save_pretrained(tmp_path / "one")
    HubModel.from_pretrained(tmp_path / "one").save_pretrained(tmp_path / "two")
    one, two = ((tmp_path / name / "README.md").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"They bounce." in one
    assert one.startswith(b"---\nlibrary_name: skipstone\n")


def test_unrecorded_training_is_admitted(model: PCODE) -> None:
    assert "How this model was trained is not recorded." in HubModel(model).card


def test_a_generated_card_is_of_the_model_as_it_is(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = PCODE.for_data(DATA, hidden=8)
    recipe = Recipe(steps=2, batch_size=4)
    fit(model, DATA, folder=tmp_path / "run", recipe=recipe, progress=False, data={"log": "rooms"})
    HubModel.from_run(tmp_path / "run").save_pretrained(tmp_path / "saved")
    readme = tmp_path / "saved" / "README.md"
    before = readme.read_text(encoding="utf-8")
    assert "not calibrated" in before
    readme.write_text(before.replace("---\n", "---\nlicense: mit\n", 1), encoding="utf-8")
    shared = HubModel.from_pretrained(tmp_path / "saved")
    calibrate(shared.model, DATA)
    for _ in range(2):
        shared.save_pretrained(tmp_path / "saved")
        after = readme.read_text(encoding="utf-8")
        assert "split-conformal" in after
        assert "not calibrated" not in after
        assert after.startswith("---\nlicense: mit\n")
        # The weights are the same, so is their training.
        assert "| data: log | rooms |" in after
        assert "## Errors" in after
        shared = HubModel.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        next(shared.model.parameters()).add_(1.0)
    assert "How this model was trained is not recorded." in shared.card
    assert "rooms" not in shared.card
    # A generated card makes room for one's own, which stays.
    HubModel(shared.model, "# Mine\n").save_pretrained(tmp_path / "saved")
    shared.save_pretrained(tmp_path / "saved")
    assert readme.read_text(encoding="utf-8").endswith("# Mine\n")


def test_a_card_in_another_encoding_stops_nobody(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path)
    (tmp_path / "README.md").write_bytes("# Bälle\n".encode("latin-1"))
    loaded = HubModel.from_pretrained(tmp_path)
    assert_same(model, loaded.model)
    assert loaded.card.startswith("# B")
    loaded.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_bytes() == "# Bälle\n".encode("latin-1")


def test_intervals_that_got_lost_are_missed(model: PCODE, tmp_path: Path) -> None:
    HubModel(model).save_pretrained(tmp_path)
    (tmp_path / "calibration.safetensors").unlink()
    with pytest.raises(LocalEntryNotFoundError, match=r"calibration\.safetensors is missing"):
        HubModel.from_pretrained(tmp_path)
    model.calibration = None
    HubModel(model).save_pretrained(tmp_path)
    assert HubModel.from_pretrained(tmp_path).model.calibration is None
