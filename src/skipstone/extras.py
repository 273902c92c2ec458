"""Optional dependencies: which extra brings them, and what to say before work that needs them."""

from __future__ import annotations

import importlib.util

from skipstone.errors import MissingExtra

EXTRAS = {
    "lightning": "train",
    "torchdiffeq": "ode",
    "gymnasium": "plan",
    "matplotlib": "plot",
    "imageio": "plot",
    "imageio_ffmpeg": "plot",
    "ray": "ray",
    "ncps": "peers",
}
"""Modules that only some of the package needs, and the extra that installs each."""


def require_installed(*modules: str) -> None:
    """Raise unless these modules of `EXTRAS` can be imported; nothing is."""
    missing = [name for name in dict.fromkeys(modules) if importlib.util.find_spec(name) is None]
    if missing:
        extras = ",".join(dict.fromkeys(EXTRAS[name] for name in missing))
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtra(
            f"this needs {' and '.join(missing)}, which {are} not installed. Run: pip install "
            f"'skipstone[{extras}]'"
        )
