"""How well a model predicts, what it costs, and whether it updates where something happens."""

from skipstone.evaluation.alignment import Alignment
from skipstone.evaluation.estimate import Estimate
from skipstone.evaluation.metrics import ConstantStep, Evaluation, evaluate
from skipstone.evaluation.timing import WallTime

__all__ = ["Alignment", "ConstantStep", "Estimate", "Evaluation", "WallTime", "evaluate"]
