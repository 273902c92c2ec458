"""Files are whole or not there: after a crash, after a power loss, and while they are replaced."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from skipstone.errors import InvalidInput
from skipstone.files import (
    as_path,
    make_folder,
    read_bytes,
    remove_file,
    user_cache,
    write_bytes,
    write_text,
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What reaches the disk, in order: syncs and renames, by the file's or folder's name."""
    found: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        found.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        fsync(descriptor)

    def rename(source: Any, target: Any) -> None:
        found.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
def test_content_is_on_the_disk_before_its_name_is(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    """A rename that overtakes the content leaves an empty file after a power loss."""
    write_text(tmp_path / "new" / "inner" / "a.json", "{}")
    partial = calls[2][1]
    assert partial.startswith(".a.json.")
    assert calls == [
        ("sync", "new"),
        ("sync", tmp_path.name),
        ("sync", partial),
        ("rename", "a.json"),
        ("sync", "inner"),
    ]
    calls.clear()
    remove_file(tmp_path / "new" / "inner" / "a.json")
    assert calls == [("sync", "inner")]


def test_temporary_files_of_the_dead_are_removed_and_of_the_living_kept(tmp_path: Path) -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    here = socket.gethostname()
    left = tmp_path / f".checkpoint.safetensors.{done.pid}@{here}.0123abcd.partial"
    busy = tmp_path / f".checkpoint.safetensors.{os.getpid()}@{here}.0123abcd.partial"
    away = tmp_path / ".checkpoint.safetensors.1@elsewhere.0123abcd.partial"
    old = tmp_path / ".checkpoint.safetensors.2@elsewhere.0123abcd.partial"
    mine = tmp_path / ".notes.partial"
    for path in (left, busy, away, old, mine):
        path.touch()
    before = time.time() - 2 * 24 * 3600
    os.utime(old, (before, before))
    write_text(tmp_path / "a", "")
    assert {path for path in (left, busy, away, old, mine) if path.exists()} == {busy, away, mine}


def test_a_killed_write_leaves_the_old_file_and_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, "old")
    code = (
        "import os, pathlib, sys; from skipstone.files import replacing\n"
        "with replacing(pathlib.Path(sys.argv[1])) as beside:\n"
        "    beside.write_text('ne'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write_text(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_read_or_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for action in (
        lambda: make_folder(tmp_path / "file" / "inner"),
        lambda: write_bytes(tmp_path / "file" / "a", b""),
    ):
        with pytest.raises(InvalidInput, match="must be a place that can be written to; "):
            action()
    with pytest.raises(InvalidInput, match="must be a file that can be read; No such file"):
        read_bytes(tmp_path / "none")
    with pytest.raises(InvalidInput, match="must be a file that can be read; Is a directory"):
        read_bytes(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody will ever write into this pipe; a device may have no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InvalidInput, match="it is a pipe or a device"):
            read_bytes(path)


def test_a_path_is_a_text_that_the_system_can_take(tmp_path: Path) -> None:
    assert as_path("out", str(tmp_path)) == as_path("out", tmp_path) == tmp_path
    assert as_path("out", tmp_path / "none" / "there") == tmp_path / "none" / "there"
    for bad in (None, 3, b"bytes", ["a"], object()):
        with pytest.raises(InvalidInput, match="out must be a path, a text or a Path; got"):
            as_path("out", bad)
    for bad in ("a\0b", "x" * 5000, "x" * 300):
        with pytest.raises(InvalidInput, match="out must be a path that can be used; "):
            as_path("out", bad)
    with pytest.raises(InvalidInput, match="out must be a path; got an empty text"):
        as_path("out", "")


HOMELESS = """
import os, platformdirs
from skipstone.errors import InvalidInput
from skipstone.files import user_cache
if os.getuid() == 0:
    os.setuid(54321)
try:
    print(user_cache())
except InvalidInput as error:
    print(error)
"""


def test_a_user_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one that the system has never heard of: a container may run as any number."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "skipstone"
    if os.name != "posix" or os.getuid() != 0:
        pytest.skip("becomes another user")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOMELESS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "a user must have a home to keep files in; this one has none. Set" in done.stdout
    assert len(done.stdout.splitlines()) == 1
