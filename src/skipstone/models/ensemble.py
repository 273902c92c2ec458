"""Several models as one: their mean, and how far they disagree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from skipstone.checking import as_entries
from skipstone.errors import InvalidInput
from skipstone.models.base import Model, require_model, require_sequences
from skipstone.models.config import ModelConfig
from skipstone.models.learning import Draws, Losses
from skipstone.path import Path, Status
from skipstone.sequences import Sequences

_SAME_KNOT = 1e-9
"""Knots this close, relative to the path's length, are one."""


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(ModelConfig):
    """Configuration of an `Ensemble`: what its models share, and all of each."""

    members: tuple[dict[str, Any], ...] = ()
    """Kind and configuration of each model."""


class Ensemble(Model[EnsembleConfig]):
    """The mean of several models, trained from different seeds, say; `path.spread(t)` is how far
    they disagree.

    `path.num_updates` counts the moments at which any of them updates.
    """

    Config: ClassVar[type[EnsembleConfig]] = EnsembleConfig
    title: ClassVar[str] = "ensemble"

    def __init__(self, models: Iterable[Any]):
        """An ensemble of two models or more, for data with the same features and controls."""
        from skipstone.models.storage import describe_model  # It knows all models, also this one.

        models = as_entries("models", models)
        _check(models)
        first = models[0].config
        described = [json.loads(json.dumps(describe_model(model))) for model in models]
        shared = {name: getattr(first, name) for name in _shared_fields()}
        shared["num_context"] = max(model.config.num_context for model in models)
        shared["missing"] = all(model.config.missing for model in models)
        super().__init__(EnsembleConfig(**shared, members=tuple(described)))
        self.members = nn.ModuleList(models)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Ensemble:
        """Models with fresh weights from their descriptions, as one."""
        from skipstone.models.storage import model_from

        if not config.get("members"):
            raise InvalidInput(
                "an ensemble is made of models that exist; got only options. Build it with "
                "Ensemble([model, other])."
            )
        return cls(model_from(member) for member in config["members"])

    @property
    def models(self) -> list[Model[Any]]:
        """Its members."""
        return list(self.members)  # pyright: ignore[reportReturnType]

    def rollout(
        self,
        context: Sequences,
        until: Any,
        controls: Any = None,
        *,
        step: float | None = None,
        max_updates: int | None = None,
    ) -> Path:
        """The mean of the members' rollouts; `max_updates` is for each of them."""
        options = {"step": step, "max_updates": max_updates}
        require_sequences(context)
        context.require_length(self.config.num_context)
        paths = []
        for model in self.models:
            exact = context.times.shape[1] == self.config.num_context
            read = context.tail(model.config.num_context) if exact else context
            paths.append(model.rollout(read, until, controls, **options))
        end = torch.stack([path.end for path in paths]).amin(dim=0)
        knots = _all_knots([path.knots for path in paths], end)

        def predict(segment: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
            """The mean at these times; right of a knot where a segment begins there."""
            before = _evaluations(paths)
            times = knots.gather(1, segment) + offset
            values = torch.stack([path.evaluate(times) for path in paths]).mean(dim=0)
            begins = offset <= _SAME_KNOT * (end - knots[:, 0])[:, None]
            if bool(begins.any()):
                after = [path.evaluate(times, side="right") for path in paths]
                values = torch.where(begins[..., None], torch.stack(after).mean(dim=0), values)
            return values, _evaluations(paths) - before

        return Path(
            predict,
            knots,
            end,
            _worst([path.status for path in paths]),
            _evaluations(paths),
            paths[0].about,
            self.calibration,
            paths,
        )

    def loss(self, batch: Sequences, draws: Draws | None = None) -> Losses:
        """The mean of the members' losses, so that they can be trained together."""
        parts = [model.loss(batch, draws) for model in self.models]
        count = len(parts)
        # Each model has its own scale.
        predicted = [
            self.values_scaler.into(model.values_scaler.back(part.predicted))
            for model, part in zip(self.models, parts, strict=True)
        ]
        return Losses(
            total=torch.stack([part.total for part in parts]).mean(),
            prediction=torch.stack([part.prediction for part in parts]).mean(),
            predicted=torch.stack(predicted).mean(dim=0),
            num_points=sum(part.num_points for part in parts) // count,
            mean_step=sum(part.mean_step for part in parts) / count,
            num_updates=sum(part.num_updates for part in parts),
            step=sum(part.step_weight * part.step for part in parts) / count,
            step_weight=1.0,
            num_steps=sum(part.num_steps for part in parts) // count,
        )

    def adapt(self, losses: Losses) -> None:
        """Every member adapts, by the mean step of all."""
        for model in self.models:
            model.adapt(losses)


def _check(models: list[Any]) -> None:
    """Raise unless these are models for the same data."""
    for model in models:
        require_model(model)
    if len(models) < 2:
        raise InvalidInput(f"an ensemble must have at least two models; got {len(models)}.")
    shapes = {(model.config.dim, model.config.control) for model in models}
    if len(shapes) > 1:
        raise InvalidInput(
            "the models of an ensemble must have the same features and controls; got (dim, "
            f"control) of {sorted(shapes)}."
        )
    if len({id(model) for model in models}) < len(models):
        raise InvalidInput("each model of an ensemble must be another one; one is there twice.")


def _shared_fields() -> list[str]:
    return list(ModelConfig.__dataclass_fields__)


def _all_knots(
    parts: list[Float[Tensor, "batch _"]], end: Float[Tensor, " batch"]
) -> Float[Tensor, "batch segments"]:
    """The knots of all members in order, each once, filled up with infinity."""
    knots = torch.cat(parts, dim=1).sort(dim=1).values
    apart = _SAME_KNOT * (end - knots[:, 0])[:, None]
    again = torch.nn.functional.pad(knots.diff(dim=1).nan_to_num(0.0) <= apart, (1, 0))
    late = knots >= end[:, None]
    late[:, 0] = False
    knots = torch.where(again | late, torch.inf, knots).sort(dim=1).values
    return knots[:, : int(knots.isfinite().sum(1).max())]


def _evaluations(paths: list[Path]) -> Int[Tensor, " batch"]:
    """Evaluations of right-hand sides so far, of all members."""
    return torch.stack([path.num_evaluations for path in paths]).sum(dim=0)


def _worst(statuses: list[Tensor]) -> Tensor:
    """A row has reached its end if it has in all members."""
    reached = torch.stack([status == int(Status.REACHED_END) for status in statuses]).all(dim=0)
    return torch.where(reached, int(Status.REACHED_END), int(Status.MAX_UPDATES))
