"""From a table to a trained run, and from a run to a forecast."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skipstone.errors import InvalidInput, require_number, require_seed
from skipstone.evaluation.calibrate import calibrate
from skipstone.evaluation.estimate import Bootstrap
from skipstone.evaluation.own_units import ForecastErrors, forecast_errors
from skipstone.extras import require_installed
from skipstone.models.base import Model
from skipstone.models.registry import MODELS, RECOMMENDED
from skipstone.own_data.tablefiles import TableColumns
from skipstone.sequences import Sequences
from skipstone.training.cuts import fixed_windows, keep_apart
from skipstone.training.fit import fit
from skipstone.training.recipe import Recipe
from skipstone.training.run import Run

MEASURED = 1_000
"""Windows that errors are measured on at most."""

CALIBRATED = 0.2
"""Share of the data that is kept for intervals."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTraining:
    """What to train on a table: everything that decides the numbers."""

    model: str | None = None
    """Name of the model; the one we recommend if there is none."""
    steps: int | None = None
    """Gradient steps; None for the recommended number."""
    horizon: int | None = None
    """Observations to predict; None to train on whole sequences."""
    seed: int = 0
    """Of weights, splits, data order and exploration."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the model."""

    @property
    def kind(self) -> type[Model[Any]]:
        """The model's class."""
        return MODELS.find(self.model or RECOMMENDED)

    @property
    def recipe(self) -> Recipe:
        """The recommended one, with as many steps as were asked for."""
        recipe = Recipe()
        if self.steps is None:
            return recipe
        often = {
            name: max(1, min(getattr(recipe, name), self.steps // 4))
            for name in ("validate_every", "checkpoint_every")
        }
        return dataclasses.replace(recipe, steps=self.steps, **often)

    def check(self) -> None:
        """Raise for what cannot be trained, before any data is read."""
        self.kind.config_from({"dim": 1, **self.options})
        self.recipe  # noqa: B018 - it checks its numbers.
        require_seed(self.seed)
        if self.horizon is not None:
            require_number("horizon, the observations to predict,", self.horizon, 1, whole=True)
        require_installed("lightning", *self.kind.needs)

    def for_table(self, data: Sequences) -> TableTraining:
        """The same for a table some of whose values are missing: any part of it may have gaps."""
        if data.complete:
            return self
        return dataclasses.replace(self, options={"missing": True, **self.options})

    @property
    def window(self) -> int | None:
        """Observations of a window; None for whole sequences."""
        if self.horizon is None:
            return None
        usual = self.kind.Config.num_context
        return self.options.get("num_context", usual) + self.horizon

    def cut(self, sequences: Sequences) -> Sequences:
        """Sequences to measure on: windows if training is on windows."""
        if self.window is None:
            return sequences
        return fixed_windows(sequences, self.window, MEASURED)

    def train(
        self,
        train: Sequences,
        validation: Sequences | None,
        folder: Path,
        columns: TableColumns,
        **settings: Any,
    ) -> Run:
        """Train in a folder that remembers the columns; `settings` are those of `fit`."""
        names = {"values": train.features, "controls": train.control_names or ()}
        columns = dataclasses.replace(columns, **names)  # pyright: ignore[reportArgumentType]
        torch.manual_seed(self.seed)
        model = self.kind.for_data(train, **self.options)
        return fit(
            model,
            train,
            validation,
            folder=folder,
            horizon=self.horizon,
            recipe=self.recipe,
            seed=self.seed,
            data={"columns": columns.to_dict(), "times": train.clock.kind},
            **settings,
        )


def train_and_measure(
    plan: TableTraining,
    data: Sequences,
    columns: TableColumns,
    folder: Path,
    intervals: bool,
    **settings: Any,
) -> tuple[Run, ForecastErrors]:
    """Train a model, calibrate it with data kept apart if asked for, and measure it on its
    validation data, which chose its weights."""
    plan, kept = plan.for_table(data), None
    if intervals:
        data, kept = keep_apart(data, plan.window, plan.seed, CALIBRATED)
    train, validation = keep_apart(data, plan.window, plan.seed)
    run = plan.train(train, validation, folder, columns, **settings)
    model = run.load()
    if kept is not None and model.calibration is None:
        calibrate(model, plan.cut(kept)).save(folder)
    measured = plan.cut(validation)
    bootstrap = Bootstrap(len(measured), np.random.default_rng(plan.seed))
    return run, forecast_errors(model, measured, bootstrap)


def columns_of(run: Run) -> TableColumns:
    """The columns of the table that a run was trained on."""
    described = run.config["data"].get("columns")
    if described is None:
        raise InvalidInput(
            f"{run.folder} must have been trained on a table, by `skipstone fit`; its columns are "
            "not known. In Python: skipstone.load(folder).rollout(...)."
        )
    return TableColumns.from_dict(described)


def forecast_context(run: Run, path: Path) -> Sequences:
    """The sequences to predict from, whose columns are those that the run was trained on."""
    context = columns_of(run).read(path)
    trained = run.config["data"]["times"]
    if context.clock.kind != trained:
        raise InvalidInput(
            f"{path}: times must be {trained}s, as in the table of the run; they are "
            f"{context.clock.kind}s."
        )
    return context


def end_of_forecast(context: Sequences, until: str) -> float | Tensor:
    """When a forecast ends: `+24h` after the last row of each id, or a moment of the table."""
    clock = context.clock
    if until.startswith("+"):
        return context.ends + clock.length("--until", until[1:])
    if clock.unit:
        return context.model_times(until)
    try:
        return context.model_times(float(until))
    except ValueError:
        raise InvalidInput(
            f"--until must be a time such as 120, or a length after the last row such as +24; got "
            f"{until!r}."
        ) from None
