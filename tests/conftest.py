"""Test set-up: shapes checked at run time, one thread per process, a quiet hypothesis."""

import functools
import signal
from typing import Any

import jaxtyping
import torch
from hypothesis import HealthCheck, settings

import shape_checks

shape_checks.install()

torch.set_num_threads(1)

# Background jobs of a shell ignore Ctrl-C, and so would their children, to which tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile(
    "skipstone", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("skipstone")

_export = torch.export.export


@functools.wraps(_export)
def _export_unchecked(*args: Any, **options: Any) -> Any:
    """Export without checks: while a program is traced, sizes are symbols and no numbers."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        return _export(*args, **options)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


torch.export.export = _export_unchecked


def pytest_runtest_setup() -> None:
    """What was checked in one test is checked again in the next."""
    shape_checks.checks.clear()
