"""`python -m website [FOLDER]`: build the site with zensical; a warning is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from website.stage import ROOT, stage


def build(folder: Path) -> Path:
    """Build the site in a folder; returns its first page."""
    config = stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", config.name]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "site" / "index.html"


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
