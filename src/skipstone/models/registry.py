"""All models by name. A user's own joins with `skipstone.register`."""

from __future__ import annotations

import sys
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.models.base import MODELS, Model, is_model
from skipstone.models.cfc import CfC
from skipstone.models.ensemble import Ensemble
from skipstone.models.gru_d import GRUD
from skipstone.models.latent_ode import LatentODE
from skipstone.models.ode_rnn import ODERNN
from skipstone.models.pcode import PCODE
from skipstone.models.rnn import RNN
from skipstone.models.state_space import StateSpace
from skipstone.models.time_aware import TimeAware

for _name, _model in (
    ("pcode", PCODE),
    ("rnn", RNN),
    ("odernn", ODERNN),
    ("latentode", LatentODE),
    ("cfc", CfC),
    ("grud", GRUD),
    ("timeaware", TimeAware),
    ("statespace", StateSpace),
):
    MODELS.add(_model, _name)

RECOMMENDED, BASELINE = "pcode", "rnn"
"""What to train if nothing is said, and what to compare it with."""

_ENSEMBLE = "ensemble"
"""Not in the list: it is made of models, and cannot be chosen by name to be trained."""


def title_of(model: type[Model[Any]]) -> str:
    """A model's name for people."""
    return model.title or model.__name__


def kind_of(model: Model[Any]) -> str:
    """What a folder says about a model's class: its registered name, or its module and name."""
    if type(model) is Ensemble:
        return _ENSEMBLE
    for name, known in MODELS.items():
        if type(model) is known:
            return name
    return f"{type(model).__module__}:{type(model).__qualname__}"


def find_kind(kind: str) -> type[Model[Any]]:
    """The class of a registered name or of a class path.

    A class path is never imported: a folder from a stranger must not decide which code runs.
    """
    if kind == _ENSEMBLE:
        return Ensemble
    module, _, name = kind.partition(":")
    if not name:
        return MODELS.find(kind)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not is_model(found):
        raise InvalidInput(
            f"a folder's model must be one that is known here; {kind} is not. Import {module} "
            f"first, or register the model: skipstone.register({name})."
        )
    return found
