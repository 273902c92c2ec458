"""ONNX: rollouts without torch are those of torch, for every setting and number of rows."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch

from exportable import SETTINGS, context_of, trained_like
from skipstone import InvalidInput, Sequences
from skipstone.integrations import onnx as exporter
from skipstone.integrations import onnx_rollout
from skipstone.integrations.onnx import export_onnx
from skipstone.integrations.onnx_rollout import OnnxModel, OnnxPath
from skipstone.models.limits import MOST_UPDATES
from skipstone.path import Path as TorchPath
from skipstone.path import Status
from skipstone.records import read_record, write_sealed

QUICK = ("driven", "RNN")
"""Exported in the ordinary tests; the others take some seconds each."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Model and folder by the name of the setting, each exported once."""
    known: dict[str, tuple[Any, Path]] = {}

    def get(name: str) -> tuple[Any, Path]:
        if name not in known:
            kind, options = SETTINGS[name]
            model = trained_like(kind, **options)
            known[name] = model, export_onnx(model, tmp_path_factory.mktemp("exported"))
        return known[name]

    return get


def both(
    model: Any, folder: Path, rows: int, **options: Any
) -> tuple[TorchPath, OnnxPath, torch.Tensor]:
    """The same rollout by torch and by onnxruntime, and times inside of it."""
    context = context_of(model, rows)
    end = context.ends + 6.1 + 0.1 * (torch.arange(rows) % 7)
    arrays: dict[str, Any] = {}
    controls = None
    if model.config.control:
        times = context.ends[:, None] + 0.45 * torch.arange(1, 9).double()
        later = torch.randn(rows, 8, model.config.control)
        assert context.controls is not None
        controls = times, later
        arrays = {"controls": context.controls.numpy(), "later": (times.numpy(), later.numpy())}
    with torch.inference_mode():
        path = model.rollout(context, end, controls, **options)
    given = context.times.numpy(), context.values.numpy(), end.numpy()
    ours = OnnxModel(folder).rollout(*given, **arrays, **options)
    shares = torch.linspace(0, 1, 6).double() ** 2
    return path, ours, path.start[:, None] + shares * (path.end - path.start)[:, None]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SETTINGS],
)
def test_rollouts_are_those_of_torch(name: str, exported: Any) -> None:
    model, folder = exported(name)
    size = torch.tensor(model.config.scale)
    for rows in (1, 2, 7, 256):
        path, ours, times = both(model, folder, rows)
        assert ours.num_updates.tolist() == path.num_updates.tolist()
        np.testing.assert_allclose(ours.knots, path.knots.numpy(), rtol=0, atol=1e-5)
        with torch.inference_mode():
            expected = path.evaluate(times)
        off = (torch.as_tensor(ours.evaluate(times.numpy())) - expected) / size
        assert float(off.abs().max()) <= 1e-5


@pytest.mark.parametrize("name", QUICK)
def test_steps_and_limits_are_those_of_torch(name: str, exported: Any) -> None:
    model, folder = exported(name)
    every: list[dict[str, Any]] = [{"step": 0.8}, {"max_updates": 2}]
    for options in every:
        path, ours, _ = both(model, folder, 3, **options)
        np.testing.assert_allclose(ours.knots, path.knots.numpy(), atol=1e-5)
        np.testing.assert_allclose(ours.end, path.end.numpy(), atol=1e-5)
        assert ours.status.tolist() == path.status.tolist()
        for side in ("left", "right"):
            # At the knots themselves, where the two sides differ.
            knots = path.knots.minimum(path.end[:, None])
            with torch.inference_mode():
                expected = path.evaluate(knots, side).numpy()
            mine = np.minimum(ours.knots, ours.end[:, None])
            np.testing.assert_allclose(ours.evaluate(mine, side), expected, rtol=1e-4, atol=1e-4)
    assert onnx_rollout.MAX_UPDATES == Status.MAX_UPDATES
    assert onnx_rollout.MOST_UPDATES == MOST_UPDATES
    assert onnx_rollout.FORMAT == exporter.FOLDER_FORMAT


def test_every_rollout_ends(exported: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless told, after as many updates as one by torch: times may be in another unit."""
    monkeypatch.setattr("skipstone.integrations.onnx_rollout.model.MOST_UPDATES", 20)
    loaded, far = OnnxModel(exported("RNN")[1]), {**CONTEXT, "until": [1e9, 2.0]}
    with pytest.warns(UserWarning, match="1 of 2 trajectories stopped after 20 updates, before"):
        path = loaded.rollout(**far)
    assert path.status.tolist() == [onnx_rollout.MAX_UPDATES, 0]
    assert path.num_updates[0] == 20
    with pytest.raises(ValueError, match="It stopped after 20 updates: raise max_updates"):
        path.evaluate(1e8)
    # No warning where somebody asked for it.
    assert loaded.rollout(**far, max_updates=30).num_updates[0] == 30


@pytest.mark.parametrize("name", QUICK)
def test_files_hold_plain_operators_and_nothing_of_this_machine(name: str, exported: Any) -> None:
    _, folder = exported(name)
    assert sorted(path.name for path in folder.iterdir()) == [
        "context.onnx",
        "query.onnx",
        "rollout.json",
        "step.onnx",
    ]
    import onnx

    for path in folder.glob("*.onnx"):
        graph = onnx.load(str(path), load_external_data=False)
        onnx.checker.check_model(graph)
        assert not {node.op_type for node in graph.graph.node} & {"GRU", "LSTM", "RNN", "Loop"}
        assert str(Path.home()).encode() not in path.read_bytes()
        assert b"skipstone/" not in path.read_bytes()
        # A first axis of any size has a name in place of a number.
        assert all(i.type.tensor_type.shape.dim[0].dim_param for i in graph.graph.input)


def test_it_runs_where_there_is_no_torch(exported: Any, tmp_path: Path) -> None:
    """The folder alone, copied, in an interpreter that can import neither torch nor skipstone."""
    model, folder = exported("driven")
    shutil.copytree(Path(inspect.getfile(onnx_rollout)).parent, tmp_path / "rollout")
    context = context_of(model, 3)
    assert context.controls is not None
    parts = context.times, context.values, context.controls
    arrays = dict(
        zip(("times", "values", "controls"), (part.numpy() for part in parts), strict=True)
    )
    np.savez(tmp_path / "context.npz", allow_pickle=False, **arrays)
    script = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['torch', 'skipstone', 'jaxtyping', 'narwhals'])\n"
        "import numpy as np\n"
        "from rollout import OnnxModel\n"
        f"path = OnnxModel({str(folder)!r}).rollout(**np.load('context.npz'), until=30.0)\n"
        "np.save('found.npy', path.evaluate([28.0, 30.0]))\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    with torch.inference_mode():
        expected = model.rollout(context, 30.0).evaluate([28.0, 30.0]).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, rtol=1e-4, atol=1e-5)


def test_an_export_that_is_wrong_is_refused(
    exported: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if the exporter had written other weights."""
    written = (exported("RNN")[1] / "context.onnx").read_bytes()
    monkeypatch.setattr(exporter, "_as_onnx", lambda graph, inputs: written)
    with pytest.raises(InvalidInput, match="'context' must agree with torch within 1e-05"):
        export_onnx(trained_like(SETTINGS["RNN"][0], seed=5), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_before_all_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse_the_last(name: str, *_: Any) -> None:
        assert list(tmp_path.iterdir()) == []
        if name == "query":
            raise InvalidInput("it is off")

    monkeypatch.setattr(exporter, "_as_onnx", lambda graph, inputs: b"")
    monkeypatch.setattr(exporter, "_require_agreement", refuse_the_last)
    with pytest.raises(InvalidInput, match="it is off"):
        export_onnx(trained_like(SETTINGS["RNN"][0]), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skipstone\[onnx\]'"):
        export_onnx(trained_like(SETTINGS["RNN"][0]), tmp_path)


def test_images_are_scaled_like_sequences(exported: Any) -> None:
    model, folder = exported("RNN")
    images = np.random.default_rng(0).integers(0, 256, (2, 2, 2)).astype(np.uint8)
    with torch.inference_mode():
        expected = model.rollout(Sequences.from_array(images), 5.0).evaluate(5.0).numpy()
    found = OnnxModel(folder).rollout(np.arange(2.0), images, 5.0).evaluate(5.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_large_offsets_lose_no_digits(exported: Any) -> None:
    """Values are scaled before they are rounded, and times are in double precision."""
    loaded = OnnxModel(exported("RNN")[1])
    values = 1.0 + 0.1 * np.random.default_rng(0).normal(size=(1, 2, 2))
    clock = 0.5 * np.arange(2.0)
    near = loaded.rollout(clock, values, 4.0)
    later = loaded.rollout(clock + 1.7e9, values, 1.7e9 + 4.0)
    np.testing.assert_allclose(later.evaluate(1.7e9 + 4.0), near.evaluate(4.0), rtol=1e-5)
    loaded.config["center"] = [center + 1e6 for center in loaded.config["center"]]
    moved = loaded.rollout(clock, values + 1e6, 4.0)
    for scaled, same in zip(*(path.segments["values"] for path in (moved, near)), strict=True):
        np.testing.assert_allclose(scaled, same, rtol=1e-5)


CONTEXT = {"times": np.arange(2.0), "values": np.zeros((2, 2, 2)), "until": 5.0}


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("RNN", {"values": np.zeros((2, 2))}, r"shape \(batch, time, 2\)"),
        ("RNN", {"values": np.full((2, 2, 2), "x")}, "must be numbers"),
        ("RNN", {"values": np.zeros((2, 1, 2))}, "must have 2 observations"),
        ("RNN", {"values": np.full((2, 2, 2), np.nan)}, "missing=True"),
        ("RNN", {"values": np.full((2, 2, 2), np.inf)}, "must be finite"),
        ("RNN", {"times": np.zeros(2)}, "times must be finite and increase"),
        ("RNN", {"until": 1.0}, "trajectory 0 ends at 1 and until is 1"),
        ("RNN", {"until": [5.0, np.nan]}, "trajectory 1 ends at 1 and until is nan"),
        ("RNN", {"times": np.arange(3.0)}, r"times must have shape .2, 2.*got .3,"),
        ("RNN", {"until": [5.0] * 3}, r"until must have shape .2,.*got .3,"),
        ("RNN", {"until": "soon"}, "until must be numbers that nest evenly; got others"),
        ("RNN", {"step": 0.0}, "step must be a finite number above 0; got 0.0"),
        ("RNN", {"step": "1"}, "step must be a finite number above 0; got '1'"),
        ("RNN", {"max_updates": 0}, "max_updates must be a whole number above 0; got 0"),
        ("RNN", {"max_updates": 2.5}, "max_updates must be a whole number above 0; got 2.5"),
        ("RNN", {"max_updates": True}, "max_updates must be a whole number above 0; got True"),
        ("RNN", {"controls": np.zeros((2, 2, 1))}, r"shape \(2, 2, 0\)"),
        ("RNN", {"later": ([4.0], np.zeros((1, 1)))}, "takes none"),
        ("driven", {}, r"shape \(2, 2, 2\)"),
        ("driven", {"controls": np.full((2, 2, 2), np.nan)}, "finite numbers"),
        ("driven", {"controls": np.full((2, 2, 2), "x")}, "finite numbers"),
        (
            "driven",
            {"controls": 1, "later": ([4.0], np.zeros((2, 1)))},
            r"later controls must have shape .2, 1, 2.*got .2, 1.",
        ),
        (
            "driven",
            {"controls": 1, "later": ([1.0], np.zeros((1, 2)))},
            "increase from the context",
        ),
    ],
)
def test_bad_input_is_answered_by_a_value_error(
    name: str,
    changed: dict[str, Any],
    message: str,
    exported: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Where it is used nobody checks annotations.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    given = {**CONTEXT, **changed}
    if isinstance(given.get("controls"), int):
        given["controls"] = np.zeros((2, 2, 2))
    with pytest.raises(ValueError, match=message):
        OnnxModel(exported(name)[1]).rollout(**given)


def test_a_path_answers_inside_its_range_alone(exported: Any) -> None:
    path = OnnxModel(exported("RNN")[1]).rollout(**CONTEXT)
    assert path.evaluate(4.2).shape == (2, 2)
    assert path.evaluate([3.0, 4.0, 5.0]).shape == (2, 3, 2)
    assert path.evaluate([]).shape == (2, 0, 2)
    assert repr(path).startswith("OnnxPath(batch=2, start=1, end=5, updates per row=")
    for times, message in [
        (5.1, "covers .1, 5. and was asked for 5.1"),
        (np.zeros((3, 1)), r"shape .2, 1.*got .3, 1."),
    ]:
        with pytest.raises(ValueError, match=message):
            path.evaluate(times)
    with pytest.raises(ValueError, match="side must be"):
        path.evaluate(4.0, side="both")


def test_a_longer_context_is_said(exported: Any) -> None:
    loaded = OnnxModel(exported("RNN")[1])
    values = np.random.default_rng(0).normal(size=(1, 6, 2))
    with pytest.warns(UserWarning, match="reads the last 2 of these 6"):
        longer = loaded.rollout(np.arange(6.0), values, 8.0)
    same = loaded.rollout(np.arange(4.0, 6.0), values[:, -2:], 8.0)
    np.testing.assert_array_equal(longer.evaluate(8.0), same.evaluate(8.0))


BAD_NUMBERS: list[dict[str, Any]] = [
    {"time_unit": np.nan},
    {"time_unit": 0.0},
    {"time_unit": 10**4000},
    {"min_step": np.inf},
    {"min_step": -1.0},
    {"scale": [0.0, 1.0]},
    {"scale": [1.0, 1.0, 1.0]},
    {"center": []},
    {"center": [np.nan, 0.0]},
    {"num_context": 0},
    {"dim": -1},
    {"dim": 2.0},
    {"same_time": True},
]


def test_other_folders_are_refused(exported: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no rollout\.json"):
        OnnxModel(tmp_path)
    content = json.loads((exported("RNN")[1] / "rollout.json").read_text())
    damaged: list[tuple[bytes, str]] = [
        (json.dumps({**content, "format": 99}).encode(), "must have format 3; it has 99"),
        (b"[]", "must have format 3; it has None"),
        (b"{", "must be JSON; it is not"),
        (b"\xff\xfe\x00", "must be JSON; it is not"),
        (b"[" * 100_000, "must be JSON; it is not"),
        (b'{"format": 3}', "must have dim, control, num_context"),
        (json.dumps({**content, "scale": 2.0}).encode(), "must have scale, as export_onnx"),
        (json.dumps({**content, "center": [None]}).encode(), "must have center, as export_onnx"),
        *(
            (
                json.dumps({**content, **bad}).encode(),
                f"must have {next(iter(bad))}, as export_onnx",
            )
            for bad in BAD_NUMBERS
        ),
        (json.dumps({**content, "time_unit": 2.0}).encode(), "its checksum differs"),
        (json.dumps({**content, "drives": True}).encode(), "its checksum differs"),
    ]
    for written, message in damaged:
        (tmp_path / "rollout.json").write_bytes(written)
        with pytest.raises(ValueError, match=message) as raised:
            OnnxModel(tmp_path)
        assert "\n" not in str(raised.value)


def test_graphs_are_those_that_were_written(exported: Any, tmp_path: Path) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(exported("RNN")[1], folder)
    whole = (folder / "step.onnx").read_bytes()
    for written in (whole[:-1], b"", (folder / "query.onnx").read_bytes()):
        (folder / "step.onnx").write_bytes(written)
        with pytest.raises(ValueError, match=r"step\.onnx is not the file that was written"):
            OnnxModel(folder)
    (folder / "step.onnx").write_bytes(whole)
    content = read_record(folder / "rollout.json", dict[str, Any])
    write_sealed(folder / "rollout.json", {**content, "num_context": 3})
    with pytest.raises(ValueError, match=r"values of shape \[3, 2\].*its graphs take \[2, 2\]"):
        OnnxModel(folder)
    write_sealed(folder / "rollout.json", content)
    (folder / "step.onnx").unlink()
    with pytest.raises(ValueError, match=r"must have step\.onnx; it has not"):
        OnnxModel(folder)
    with pytest.raises(ValueError, match="threads must be a whole number above 0; got 0"):
        OnnxModel(folder, threads=0)
