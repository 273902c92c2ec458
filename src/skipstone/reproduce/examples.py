"""`Example`: one trajectory of a task, beside what each model makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from skipstone.evaluation.rollouts import predict


from skipstone.errors import InvalidInput
