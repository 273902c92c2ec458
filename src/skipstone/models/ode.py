"""Neural ODEs in a latent space, integrated by torchdiffeq, each row over its own times."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from skipstone.errors import InvalidInput, require_choice, require_number
from skipstone.extras import require_installed
from skipstone.models.config import ModelConfig
from skipstone.models.limits import MOST_STEPS
from skipstone.models.typing import State

SOLVERS = ("rk4", "dopri5")
"""Methods of integration; see `ODEConfig.solver`."""

NEEDS = ("torchdiffeq",)
"""What models that integrate need besides."""


@dataclass(frozen=True, kw_only=True)
class ODEConfig(ModelConfig):
    """What models that integrate a neural ODE need besides."""

    solver: str = "rk4"
    """`rk4` takes steps of at most one unit of time, four evaluations each. `dopri5` adapts its
    steps to the tolerances, as in the paper: as many as the stiffest row of a batch needs."""

    rtol: float = 1e-3
    """Relative tolerance of dopri5. Smaller is more accurate and takes more evaluations."""

    atol: float = 1e-4
    """Absolute tolerance of dopri5, in units of the latent state, which is of order 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("solver", self.solver, SOLVERS)
        require_number("rtol", self.rtol, above=0)
        require_number("atol", self.atol, above=0)


class Dynamics(nn.Module):
    """The right-hand side dh/dt = f(h): two layers with tanh, the same at all times."""

    def __init__(self, hidden: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, hidden))

    def forward(self, state: State) -> State:
        """Change of the state per unit of time."""
        return self.net(state)


def integrate(
    dynamics: Dynamics, state: State, offsets: Float[Tensor, "rows time"], config: ODEConfig
) -> tuple[Float[Tensor, "rows time state"], int]:
    """States after the given times, which must not decrease along a row; and the evaluations.

    Rows have different times and a solver has one clock. So the clock counts queries: from tick
    i to tick i + 1 each row covers its own gap, which scales its right-hand side.
    """
    if offsets.numel() == 0:
        return state.new_zeros(*offsets.shape, state.shape[1]), 0
    if torch.is_inference_mode_enabled():
        # torchdiffeq keeps tensors from its first call; made in inference mode, they would spoil
        # every later training.
        with torch.inference_mode(False), torch.no_grad():
            return integrate(dynamics, state, offsets, config)
    odeint = _odeint()
    gaps = offsets.diff(dim=1, prepend=torch.zeros_like(offsets[:, :1]))
    ticks = torch.arange(offsets.shape[1] + 1, dtype=state.dtype, device=state.device)
    calls = 0

    def scaled(tick: Tensor, current: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        interval = min(int(tick), gaps.shape[1] - 1)
        return dynamics(current) * gaps[:, interval, None]

    if config.solver == "rk4":
        # perturb: at a tick, where the gap changes, take the side that the step is on.
        options = {"step_size": 1 / _substeps(gaps.detach(), config), "perturb": True}
        states = odeint(scaled, state, ticks, method="rk4", options=options)
    else:
        tolerances = {"rtol": config.rtol, "atol": config.atol}
        options = {"max_num_steps": MOST_STEPS // 10}
        try:
            states = odeint(scaled, state, ticks, **tolerances, method="dopri5", options=options)
        except AssertionError as error:  # How torchdiffeq says that it gives up.
            raise InvalidInput(
                f"dopri5 must find its way; it gave up with {error!s:.60}. The state is not finite "
                f"or changes too fast. Use solver='rk4' or larger tolerances, and check that the "
                f"data's times are in the model's unit of time, {config.time_unit:g}."
            ) from None
    assert isinstance(states, Tensor)
    return states[1:].transpose(0, 1), calls


def _substeps(gaps: Float[Tensor, "rows time"], config: ODEConfig) -> int:
    """Steps of rk4 for each gap, at most one unit of time long; raise if they would be too many."""
    longest = float(gaps.max())
    if not longest * gaps.shape[1] <= MOST_STEPS:
        raise InvalidInput(
            f"an integration must take at most {MOST_STEPS:,} steps; this one has "
            f"{gaps.shape[1]} intervals of up to {longest:.3g} units of time. Check that the "
            f"data's times are in the model's unit of time, {config.time_unit:g}."
        )
    return max(1, math.ceil(longest - 1e-6))


def _odeint():
    require_installed(*NEEDS)
    from torchdiffeq import odeint

    return odeint
