"""`python -m skipstone.paper.playground [FILE]`: write the playground with the shipped weights."""

from __future__ import annotations

import sys
from pathlib import Path

from skipstone.paper.playground.write import PLAYGROUND, find_players, write_playground
from skipstone.training.run import list_runs

if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results", "paper", PLAYGROUND)
    write_playground(file, find_players(list_runs(Path("weights"))))
    print(f"{file}, {file.stat().st_size / 1e6:.1f} MB")
