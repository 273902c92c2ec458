"""What is not installed is said before the work that needs it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from helpers import run_cli
from skipstone.errors import InvalidInput, MissingExtra
from skipstone.extras import EXTRAS, require_installed


def without(*names: str) -> pytest.MonkeyPatch:
    """As if these were not installed."""
    patch = pytest.MonkeyPatch()
    for name in names:
        patch.setitem(sys.modules, name, None)
    return patch


def test_an_extra_brings_what_it_is_asked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for module, extra in EXTRAS.items():
        brought = project["optional-dependencies"][extra]
        assert any(re.match(r"[\w-]+", one)[0].replace("-", "_") == module for one in brought)  # pyright: ignore


def test_several_are_named_at_once() -> None:
    patch = without("torchdiffeq", "matplotlib", "imageio")
    try:
        with pytest.raises(
            MissingExtra, match=r"torchdiffeq and matplotlib and imageio, which are"
        ):
            require_installed("torchdiffeq", "lightning", "matplotlib", "imageio")
        with pytest.raises(InvalidInput, match=r"pip install 'skipstone\[ode,plot\]'"):
            require_installed("torchdiffeq", "matplotlib", "imageio")
    finally:
        patch.undo()


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("fit t.csv --time t --values x --out o", "lightning"),
        ("fit t.csv --time t --values x --out o --model odernn", "torchdiffeq"),
        ("compare t.csv --time t --values x --out o", "lightning"),
        ("train lines rnn --runs o", "lightning"),
        ("train lines odernn --runs o", "torchdiffeq"),
        ("train lines cfc --runs o", "ncps"),
        ("fit t.csv --time t --values x --out o --model cfc", "ncps"),
        ("grid --task lines --model rnn --model latentode --runs o", "torchdiffeq"),
        ("grid --task lines --model rnn --runs o --ray localhost:1", "ray"),
        ("show circles --out o.png", "matplotlib"),
        ("show circles --out o.png --video o.mp4", "imageio_ffmpeg"),
        ("plan --out o", "matplotlib"),
        ("plan --show --out o", "imageio"),
        ("reproduce --out o", "matplotlib"),
        ("reproduce --from-scratch --runs o --out o", "imageio"),
    ],
)
def test_every_command_says_what_it_lacks(
    command: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("t,x\n1,2\n")
    patch = without(missing)
    try:
        said = run_cli(*command.split())
    finally:
        patch.undo()
    assert said.code == 2
    assert said.err == (
        f"error: this needs {missing}, which is not installed. Run: pip install "
        f"'skipstone[{EXTRAS[missing]}]'\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
