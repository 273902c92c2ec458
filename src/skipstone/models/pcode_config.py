"""Everything a `PCODE` is built and tuned by."""

from __future__ import annotations

from dataclasses import dataclass

from skipstone.errors import InvalidInput, require_choice, require_flag, require_number
from skipstone.models.config import ModelConfig

STEP_LOSS_WEIGHTS = {"difference": 1e-5, "ratio": 4e-3}
"""Weights of the step-size losses beside the prediction loss; the first is the paper's (section 4).
The second was the better of two in short runs."""

CONTROL_EFFECTS = ("drive", "update")
"""How controls act; see `PCODEConfig.control_effect`."""


@dataclass(frozen=True, kw_only=True)
class PCODEConfig(ModelConfig):
    """Everything a `PCODE` is built and tuned by. The defaults are what we recommend; the paper's
    values are named beside them, and `skipstone train --preset paper` uses all of them."""

    tolerance: float = 1e-3
    """Squared error that a segment may reach, in scaled units: it trades error for longer steps.
    Start from the default, an error of about 3 % of the data's spread. Ten times less gives closer
    fits with more updates. The paper takes the final training loss of an RNN."""

    target_step: float | None = None
    """Mean step to train for, in the model's unit of time, instead of a tolerance: training lowers
    the tolerance as far as steps of this mean length allow. Choose it where you know how many
    updates you can afford; the error is then as small as they allow."""

    anneal_from: float = 0.02
    """Tolerance at the start of training. It falls geometrically to `tolerance`, or as
    `target_step` asks. 0 for a constant tolerance, as in the paper."""

    explore: float = 0.01
    """Probability with which a training segment goes on regardless of its error (appendix A.2): how
    a model that only ever took single steps gets to try longer ones."""

    overshoot: float = 0.3
    """Weight of the error one observation past each segment's end. It teaches lines to go a little
    further than they have to, so that the search finds longer steps earlier. The paper has 0."""

    own_steps: float = 0.8
    """Share of training segments that end where the model would end them, so that it learns to go
    on from there; it is still taught where the search would have ended them. The paper has 0."""

    step_loss: str = "ratio"
    """What is learned of step sizes: the `ratio` of predicted to found ones, by the step network
    alone; or their `difference`, as in the paper, which is dominated by the longest ones and also
    reaches the states."""

    step_layers: int = 3
    """Layers of the network that predicts step sizes. When a line will break, at the next collision
    say, is not a linear matter. The paper has 1."""

    min_step: float = 1.0
    """Shortest step, in the model's unit of time: with 1, one typical observation interval. For
    data that are observed more often than something can happen, a longer one bounds the cost."""

    max_step: float = 100.0
    """Longest step, in the model's unit of time. A bound on trust: no step can be longer than the
    sequences it was trained on, so set it near their length."""

    velocity_scale: float = 0.2
    """Latent velocity for a cell output of 1. A cell's output lies in [-1, 1], so this and the
    longest step bound how far a segment can move. 0.2 is the authors' value."""

    control_effect: str = "drive"
    """How controls act. `drive`: the latent motion between updates is affine in them, so that a
    change of control costs no update. `update`: only through the encoder, so that every change of
    control is an update."""

    whole_steps: bool = False
    """Whether rollouts round their steps to whole units of time. For images on a regular grid
    choose True: a decoded image between two observations is neither, and an update would read it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % 2:
            raise InvalidInput(
                f"hidden must be even, half position and half velocity; got {self.hidden}."
            )
        # Finite, since JSON has no infinity: a model that never has to stop has a large tolerance.
        for name in ("tolerance", "anneal_from", "overshoot"):
            require_number(name, getattr(self, name), 0)
        require_flag("whole_steps", self.whole_steps)
        for name in ("explore", "own_steps"):
            require_number(name, getattr(self, name), 0, most=1)
        for name in ("min_step", "max_step", "velocity_scale"):
            require_number(name, getattr(self, name), above=0)
        self._require_size("step_layers", 1)
        require_choice("step_loss", self.step_loss, STEP_LOSS_WEIGHTS)
        require_choice("control_effect", self.control_effect, CONTROL_EFFECTS)
        if self.target_step is not None:
            require_number("target_step", self.target_step, self.min_step, most=self.max_step)
            require_number("anneal_from, where a target_step begins,", self.anneal_from, above=0)
        if self.max_step < self.min_step:
            raise InvalidInput(
                f"max_step must not be below min_step; got {self.max_step} < {self.min_step}."
            )

    @property
    def steps_reach_states(self) -> bool:
        """Whether the gradient of predicted steps reaches the states, as in the paper. That of
        ratios would pull at what the states predict."""
        return self.step_loss == "difference"

    def tolerance_at(self, progress: float) -> float:
        """Tolerance, on its way from `anneal_from` to `tolerance`."""
        start = self.anneal_from
        if not 0 < self.tolerance < start:
            return self.tolerance
        return start * (self.tolerance / start) ** progress
