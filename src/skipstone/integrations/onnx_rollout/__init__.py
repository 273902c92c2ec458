"""Rollouts of an exported model with NumPy and onnxruntime alone.

    model = OnnxModel("exported")
    path = model.rollout(times, values, until=12.0)
    path.evaluate([10.0, 11.5])

This folder imports nothing else: copy it to where torch is not installed. `onnx.py` writes the
files that it reads. It keeps the rules of `Model.rollout` and `Path`: times in double precision,
left limits at knots, no extrapolation, and an end to every rollout.
"""

from .folder import FORMAT
from .model import OnnxModel
from .path import MAX_UPDATES, OnnxPath
from .walk import MOST_UPDATES

__all__ = ["FORMAT", "MAX_UPDATES", "MOST_UPDATES", "OnnxModel", "OnnxPath"]
