"""Places that results go to are checked before the work."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from skipstone import InvalidInput
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
    with pytest.raises(InvalidInput, match="it is a folder"):
        require_writable_file(tmp_path)


@pytest.mark.skipif(os.getuid() == 0, reason="permissions do not stop this user")
def test_permissions_count(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(InvalidInput, match="Permission denied"):
        require_writable(tmp_path)
