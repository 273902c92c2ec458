"""Kinds of tensors, each named once."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

State = Float[Tensor, "rows state"]
"""State of a model, one row per sequence."""

Values = Float[Tensor, "rows dim"]
"""One observation per row."""

Lengths = Float[Tensor, " rows"]
"""A length of time per row, in the model's unit."""

Rows = Int[Tensor, " rows"]
"""An index per row: of a sequence, an observation or a place in a flattened batch."""

Inputs = Float[Tensor, "*rows input"]
"""Encoder input."""

Controls = Float[Tensor, "*rows control"]
"""Known inputs, such as actions."""

Elapsed = Float[Tensor, "*rows"]
"""Time since the knot before, in the model's unit."""

Encoded = Float[Tensor, "*rows encoded"]
"""The cell's input."""

BatchValues = Float[Tensor, "batch time dim"]
"""Observations of a batch, or predictions for it."""

BatchTimes = Float[Tensor, "batch time"]
"""A time, offset or error for each observation of a batch."""

BatchIndex = Int[Tensor, "batch time"]
"""An index for each observation of a batch."""

BatchMask = Bool[Tensor, "batch time"]
"""Which observations of a batch something is true of."""
