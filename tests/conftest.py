"""Test set-up: shapes checked at run time, one thread per process, a quiet hypothesis."""

import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before anything imports skipstone: every annotated shape and type is checked while tests run.
install_import_hook("skipstone", "shape_checks.check")

torch.set_num_threads(1)
settings.register_profile(
    "skipstone", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("skipstone")
