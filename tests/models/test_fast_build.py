"""Building the library of the fast path: once, safely, and never as a requirement."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from helpers import random_batch, small_pcode
from skipstone.models.fast import build

QUICK = "('-O0', '-std=c++17', '-shared', '-fPIC')"
BUILD = f"""
import torch
from skipstone.models.fast import build
build.FLAGS = {QUICK}
assert build.library(torch.float64) is not None
"""


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and nothing remembered of what was built."""
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path)
    build.library.cache_clear()
    build._say.cache_clear()
    yield tmp_path
    build.library.cache_clear()
    build._say.cache_clear()


def said(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(record.getMessage() for record in caplog.records)


def test_without_a_compiler_everything_works_and_says_so_once(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv(build.SWITCH, raising=False)
    monkeypatch.setenv("PATH", str(fresh))
    model, batch = small_pcode(0), random_batch(0, [9, 6])
    for _ in range(2):
        model.loss(batch).total.backward()
        model.float().loss(batch)
        model.double()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    for words in ("no C++ compiler", "readable path", "install", build.SWITCH):
        assert words in said(caplog)


def test_a_compiler_that_fails_is_named(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(build.SWITCH, raising=False)
    broken = fresh / "broken"
    broken.write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    assert build.library(torch.float32) is None
    assert "no such option" in said(caplog)
    assert not list(fresh.glob("*.so"))


def test_without_a_place_for_it_everything_works_and_says_so_once(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(build.SWITCH, raising=False)
    monkeypatch.setenv("CXX", "true")
    (fresh / "file").touch()
    monkeypatch.setattr(build, "cache_folder", lambda: fresh / "file" / "native")
    model, batch = small_pcode(0), random_batch(0, [9, 6])
    for _ in range(2):
        model.rollout(batch.tail(4), float(batch.ends.max()) + 1)
        model.float().loss(batch)
        model.double()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    for words in ("native must be a place", "readable path", "XDG_CACHE_HOME", build.SWITCH):
        assert words in said(caplog)


def test_a_damaged_library_is_built_again(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = fresh / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    path = build._built("float")
    assert path.read_text() == "built\n"
    stamp = path.stat().st_ino
    assert build._built("float").stat().st_ino == stamp
    path.write_text("guilt\n")
    assert build._built("float").read_text() == "built\n"
    path.with_suffix(".sha256").unlink()  # Of a process that was killed, or of an older version.
    stamp = path.stat().st_ino
    assert build._built("float").stat().st_ino != stamp


def test_the_fast_path_can_be_turned_off(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(build.SWITCH, "0")
    caplog.set_level(logging.INFO, logger="skipstone")
    assert build.library(torch.float32) is None
    assert f"{build.SWITCH} is 0" in said(caplog)


@pytest.mark.usefixtures("fast_path")
def test_processes_that_build_at_once_build_once(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", BUILD]
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(list(tmp_path.rglob("*.so"))) == 1
    assert not list(tmp_path.rglob("*.partial"))


def test_sources_come_with_the_package() -> None:
    names = {path.name for path in Path(build.__file__).parent.iterdir()}
    assert {"native.cpp", "kernels.h", "networks.h", "records.h", "walk.h"} <= names
