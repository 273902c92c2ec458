"""The commit on record is the package's own, or none."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skipstone.training.run import provenance

SOURCE = Path(__file__).parents[2]
ASK = "from skipstone.training.run import provenance; print(provenance()['commit'])"


def commit_all(folder: Path) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "-f", "."], [*identity, "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of a user, to stand in."""
    (tmp_path / "notes.txt").write_text("mine")
    commit_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_where_one_stands_does_not_matter(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = provenance()["commit"]
    if (SOURCE / ".git").exists():
        ask = ["git", "-C", str(SOURCE), "rev-parse", "HEAD"]
        head = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        assert own is not None
        assert own.removesuffix("-changed") == head
    # As inside a hook of git.
    monkeypatch.setenv("GIT_DIR", str(foreign / ".git"))
    assert provenance()["commit"] == own


@pytest.mark.parametrize("place", [".venv/lib/site-packages/skipstone", "vendored/src/skipstone"])
def test_a_package_inside_a_repository_of_the_users_has_none(place: str, foreign: Path) -> None:
    package = foreign / place
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "src" / "skipstone", package, ignore=ignored)
    commit_all(foreign)
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"PYTHONPATH": str(package.parent), "PATH": "/usr/bin:/bin", "HOME": "/"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "None\n", done.stderr


def test_source_that_git_does_not_know_counts_as_a_change(tmp_path: Path) -> None:
    package = tmp_path / "src" / "skipstone"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "src" / "skipstone", package, ignore=ignored)
    commit_all(tmp_path)

    def asked() -> str:
        return subprocess.run(
            [sys.executable, "-c", ASK],
            env={"PYTHONPATH": str(package.parent), "PATH": "/usr/bin:/bin", "HOME": "/"},
            capture_output=True,
            text=True,
        ).stdout

    assert re.fullmatch(r"[0-9a-f]{40}\n", asked())
    (package / "models" / "mine.py").touch()
    assert re.fullmatch(r"[0-9a-f]{40}-changed\n", asked())
