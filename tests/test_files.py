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
from skipstone.files import make_folder, read_bytes, remove_file, write_bytes, write_text


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
