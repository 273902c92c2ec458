"""`SkipstoneForecaster`: the models of this library as a forecaster of sktime."""

from .forecaster import SkipstoneForecaster
from .series import sequences_of

__all__ = ["SkipstoneForecaster", "sequences_of"]
