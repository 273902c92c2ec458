"""Whom the PC-ODE is compared with, and the settings of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.reality.event_ode import EventODE
from benchmarks.reality.problem import Problem
from skipstone import ODERNN, PCODE, RNN, Sequences
from skipstone.models.base import Model
from skipstone.models.cfc import CfC
from skipstone.models.gru_d import GRUD
from skipstone.models.state_space import StateSpace
from skipstone.models.time_aware import TimeAware

LARGE_STEPS = (2, 4, 8)
"""Steps, in observations, that the time-aware GRU is also rolled out with."""


@dataclass(frozen=True)
class Peer:
    """A model, and how long its training step takes beside the RNN's, to tell the hours."""

    kind: type[Model[Any]]
    cost: float
    seeds: int = 3
    """How often it is trained, at most: one that takes long is trained once."""

    @property
    def title(self) -> str:
        """Its name in tables."""
        return self.kind.title


PEERS: dict[str, Peer] = {
    "pcode": Peer(PCODE, 0.5),
    "rnn": Peer(RNN, 1.0),
    "odernn": Peer(ODERNN, 4.5, seeds=1),
    "cfc": Peer(CfC, 1.5),
    "grud": Peer(GRUD, 1.3),
    "timeaware": Peer(TimeAware, 1.1),
    "statespace": Peer(StateSpace, 1.3),
    "event": Peer(EventODE, 16.0, seeds=1),
}
"""All that are trained, by name."""

OURS = PEERS["pcode"].title

IN_TORCH = f"{OURS} in PyTorch"
"""The name under which its rollouts are also timed: without its C++, as its peers run."""

KEPT = ("pcode", "event")
"""Peers whose rollouts take as long as what they have learned says. Their weights are recorded, so
that they can be timed later. All others do the same operations whatever their weights are."""

NAIVE = "naive"
"""The name of the trial that trains nothing: persistence and constant velocity."""

ONLY_SOMEWHERE = ("event",)
"""Peers that take part only where a problem names them."""


def peers_of(problem: Problem) -> list[str]:
    """Everybody who takes part, the naive forecasts first."""
    usual = [name for name in PEERS if name not in ONLY_SOMEWHERE]
    return [NAIVE, *(problem.only or usual)]


def build(problem: Problem, peer: str, train: Sequences) -> Model[Any]:
    """A new model: the same sizes for all, and for the PC-ODE how far to step."""
    options: dict[str, Any] = {"hidden": problem.hidden, "num_context": problem.num_context}
    if peer == "pcode":
        options |= {"target_step": problem.target_step, "max_step": problem.max_step}
    if problem.scale_changes:
        options["scale"] = typical_changes(train, problem.horizon or 1)
    return PEERS[peer].kind.for_data(train, **options)


def typical_changes(train: Sequences, lag: int) -> tuple[float, ...]:
    """Root mean square of each feature's change over so many observations."""
    both = train.mask[:, lag:]
    changes = (train.values[:, lag:] - train.values[:, :-lag])[both].double()
    return tuple(changes.square().nanmean(0).sqrt().clamp(min=1e-12).tolist())
