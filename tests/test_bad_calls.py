"""What breaks a rule is answered by `InvalidInput`, whatever its type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_bad_call_is_explained() -> None:
    script = Path(__file__).parent / "bad_calls.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
