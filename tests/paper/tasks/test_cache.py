import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import numpy as np
import platformdirs
import pytest
import torch

import skipstone
from skipstone.paper.tasks import find_task, load, task_options
from skipstone.paper.tasks.load import cache_path


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "skipstone" / "tasks"


def small(**options: Any) -> Any:
    return skipstone.load_task("shots", **{"trajectories": 30, **options})


def refuse(*_: Any) -> Never:
    raise AssertionError("made anew")


def test_the_second_time_is_read_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small(drop=0.3)
    monkeypatch.setattr(load, "record", refuse)
    read = small(drop=0.3)
    for part in ("train", "validation", "test"):
        one, two = getattr(made, part), getattr(read, part)
        for name in ("times", "values", "controls", "mask"):
            assert torch.equal(getattr(one, name), getattr(two, name))
        for name in ["offsets", *type(made.events[part]).column_names()]:
            expected = getattr(made.events[part], name)
            np.testing.assert_array_equal(getattr(read.events[part], name), expected)


def test_every_option_and_the_version_are_part_of_the_key() -> None:
    task = find_task("billiards2d")
    changes = [
        *({"trajectories": 9}, {"observations": 9}, {"spacing": 0.1}, {"jitter": 0.1}),
        *({"drop": 0.1}, {"test": 0.2}, {"validation": 0.2}, {"seed": 1}, {"balls": 3}),
        {"radius": 0.05},
    ]
    paths = {cache_path(task, task_options(task, **change)) for change in [{}, *changes]}
    paths.add(cache_path(replace(task, version=2), task.options))
    paths.add(cache_path(find_task("pixels2d"), task.options))
    assert len(paths) == len(changes) + 3


def test_numpy_numbers_are_the_same_options() -> None:
    task = find_task("lines")
    plain = task_options(task, seed=3, spacing=1.0)
    numpy = task_options(task, seed=np.int64(3), spacing=np.float32(1))
    assert cache_path(task, plain) == cache_path(task, numpy)


PLACES = {"method": (10, 0x40), "encrypted": (8, 0x01), "newer": (6, 0x80)}
"""Bits in the entry of a zip file that say how to read it."""
DAMAGES = ["truncated", "flipped", "empty", "other", "edited", *PLACES]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew_with_a_warning(directory: Any, damage: Any) -> None:
    made = small()
    (path,) = directory.glob("*.npz")
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    elif damage in PLACES:
        at, bit = PLACES[damage]
        content[content.index(b"PK\x01\x02") + at] ^= bit
        path.write_bytes(content)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "edited":  # A whole archive, with one value that is another.
        with np.load(path) as file:
            arrays = dict(file)
        arrays["values"][0, 0, 0] += 1e-3
        np.savez_compressed(path, **arrays)
    else:
        small(seed=1)
        (other,) = set(directory.glob("*.npz")) - {path}
        os.replace(other, path)
    with pytest.warns(UserWarning, match="is damaged"):
        again = small()
    assert torch.equal(made.train.values, again.train.values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small()


def sealed(path: Path, **changed: Any) -> None:
    """Other arrays in a cached file, under a checksum that is right, as a stranger could write."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    identity = arrays.pop("identity")
    del arrays["sha256"]
    arrays |= changed
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez_compressed(path, identity=identity, sha256=load._checksum(arrays), **arrays)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("keep", np.array("text")),
        ("keep", np.ones(3, bool)),
        ("times", np.array([["a", "b"]])),
        ("times", np.zeros((0, 0))),
        ("values", np.zeros((30, 2, 4))),
        ("values", np.zeros((30, 45))),
        ("controls", np.zeros((30, 44, 2))),
        ("events.times", np.array("text")),
        ("events.times", np.zeros(3)),
        ("events.kinds", np.zeros(3)),
        ("events.offsets", np.zeros(31, np.int64)),
        ("events.offsets", np.arange(31)[::-1]),
        ("events.positions", None),
    ],
)
def test_arrays_that_no_recording_has_are_made_anew(directory: Any, name: str, array: Any) -> None:
    made = small()
    (path,) = directory.glob("*.npz")
    sealed(path, **{name: array})
    with pytest.warns(UserWarning, match=r"is damaged \(.*\); making it anew"):
        again = small()
    assert torch.equal(made.train.values, again.train.values)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(directory: Any) -> None:
    made = small()
    (path,) = directory.glob("*.npz")
    path.unlink()
    os.mkfifo(path)
    with pytest.warns(UserWarning, match="is damaged.*it is a pipe"):
        again = small()
    assert torch.equal(made.train.values, again.train.values)
    assert path.is_file()


def test_without_a_home_nothing_is_kept_but_everything_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: Path("~") / name)
    with pytest.warns(UserWarning, match="cannot keep shots: a user must have a home"):
        assert len(small().train) == 28


def test_an_interrupted_write_leaves_nothing_behind(
    directory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(file: Any, **_: Any) -> Never:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small()
    assert list(directory.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_only_a_warning(directory: Any) -> None:
    directory.parent.mkdir(parents=True)
    directory.write_text("in the way")
    with pytest.warns(UserWarning, match="cannot keep shots"):
        assert len(small().train) == 28


def test_no_cache_writes_nothing(directory: Any) -> None:
    skipstone.load_task("lines", trajectories=10, cache=False)
    assert not directory.exists()


def test_progress_appears_only_when_it_takes_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small(trajectories=10)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(load, "PATIENCE", -1.0)
    small(trajectories=1200)
    assert "making shots" in capsys.readouterr().err
