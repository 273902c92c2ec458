"""Places that results go to are checked before the work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skipstone import InvalidInput
from skipstone.files import write_text
from skipstone.outputs import require_writable, require_writable_file


def test_a_good_place_is_left_as_it_was(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "folder")
    require_writable_file(tmp_path / "new" / "file.csv")
    (tmp_path / "old.csv").write_text("old")
    require_writable_file(tmp_path / "old.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for place, reason in [
        (tmp_path / "file", "file is a file"),
        (tmp_path / "file" / "run", "file is a file"),
        (tmp_path / "link" / "run", "is a link to nowhere"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "/".join(["x" * 200] * 50), "File name too long"),
        (Path("/proc/none/run"), "No such file"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(reason)):
            require_writable(place)


def test_files_need_a_name_that_leaves_room_for_a_longer_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="File name too long"):
        require_writable_file(tmp_path / f"{'x' * 248}.csv")
    fits = 0
    for length in range(150, 250):
        for path in (tmp_path / f"{'x' * length}.csv", tmp_path / "new" / f"{'x' * length}.csv"):
            try:
                require_writable_file(path)
            except InvalidInput:
                with pytest.raises(InvalidInput, match="File name too long"):
                    write_text(path, "")
            else:
                write_text(path, "")
                fits += 1
    assert 0 < fits < 200
    with pytest.raises(InvalidInput, match="it is a folder"):
        require_writable_file(tmp_path)


def test_what_a_killed_probe_leaves_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from skipstone.outputs import require_writable\n"
        "pathlib.Path.unlink = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        "require_writable(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    write_text(tmp_path / "a", "")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(os.getuid() == 0, reason="permissions do not stop this user")
def test_permissions_count(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(InvalidInput, match="Permission denied"):
        require_writable(tmp_path)
