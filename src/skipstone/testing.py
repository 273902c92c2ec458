"""`check_model`: does a model keep the contract of `skipstone.Model`? For models of your own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from skipstone.errors import InvalidInput
from skipstone.models.base import Model
from skipstone.models.learning import Draws
from skipstone.path import Path
from skipstone.sequences import Sequences

AHEAD = 5.3
"""How far checks roll out, in typical observation intervals."""


class BrokenContract(AssertionError):
    """A model that breaks a law of the contract; the message says which, and what was found."""


def check_model(model: type[Model[Any]], within: float = 1e-6, **options: Any) -> list[str]:
    """Check a model class on small data; return the laws it keeps, or raise `BrokenContract`.

    `options` are those of its config, for example `hidden=8` to make the check fast. Models are
    built in double precision, and numbers that should be equal may differ by `within`.
    """
    kept = []
    for control in (0, 2):
        case = Case(model, control, within, options)
        for law in LAWS:
            try:
                law(case)
            except BrokenContract:
                raise
            except Exception as error:
                raise BrokenContract(
                    f"{model.__name__} must not fail when this is checked: {law.__doc__} It raised "
                    f"{type(error).__name__}: {error}"
                ) from error
            kept.append(f"{law.__name__.replace('_', ' ')}, {control} controls")
    return kept


class Case:
    """A model of a class, and small data for it: ragged, irregular, moving."""

    def __init__(self, kind: type[Model[Any]], control: int, within: float, options: Any):
        self.kind, self.control, self.within = kind, control, within
        count = options.get("num_context", kind.Config.num_context)
        self.batch = example_data([count + more for more in (5, 3, 8, 4)], control=control)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.model = kind.for_data(self.batch, **options).double()
        self.count = self.model.config.num_context
        self.context = self.batch.head(self.count)

    def roll_out(self, context: Sequences, model: Model[Any] | None = None) -> Path:
        """Predict a few intervals past a context, the controls held."""
        until = context.ends + AHEAD * self.model.config.time_unit
        return (model or self.model).rollout(context, until)

    def predictions(self, context: Sequences, model: Model[Any] | None = None) -> Tensor:
        """Predictions at times between, at and beyond observations."""
        share = torch.tensor([0.0, 0.1, 0.45, 0.8, 1.0], dtype=torch.float64)
        span = AHEAD * self.model.config.time_unit
        return self.roll_out(context, model).evaluate(context.ends[:, None] + share * span)

    def require(self, holds: bool, law: str, found: Any = "it does not") -> None:
        """Raise unless a law holds."""
        if not holds:
            raise BrokenContract(f"{self.kind.__name__}: {law}; {found}.")

    def require_close(self, one: Tensor, other: Tensor, law: str) -> None:
        """Raise unless two tensors are equal within rounding."""
        self.require(one.shape == other.shape, law, f"shapes are {one.shape} and {other.shape}")
        apart = float((one - other).detach().abs().max()) if one.numel() else 0.0
        self.require(apart <= self.within, law, f"they differ by {apart:.3g}")


def example_data(lengths: list[int], control: int = 0, dim: int = 2, seed: int = 0) -> Sequences:
    """Smooth random walks at irregular times, with controls that hold for a few observations."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    times, values, controls = [], [], []
    for length in lengths:
        times.append((0.5 + torch.rand(length, generator=generator, dtype=torch.float64)).cumsum(0))
        values.append(normal(1, dim) + 0.3 * normal(length, dim).cumsum(0))
        controls.append(normal(length, control)[torch.arange(length) // 3])
    return Sequences.from_lists(values, times, controls if control else None)


def a_config_survives_json(case: Case) -> None:
    """A config is plain data: what JSON gives back builds the same config."""
    config = json.loads(json.dumps(asdict(case.model.config)))
    again = case.kind.from_config(config).config
    case.require(again == case.model.config, "its config must survive JSON", f"got {again}")


def a_loss_is_a_finite_number(case: Case) -> None:
    """A loss has a finite total, and predictions only where there is an observation."""
    losses = case.model.loss(case.batch)
    case.require(bool(losses.total.isfinite()), "its loss must be finite", losses.total)
    predicted, mask = losses.predicted, case.batch.mask[..., None]
    shape = case.batch.values.shape
    case.require(predicted.shape == shape, "predictions are laid out like the batch")
    stray = predicted.isfinite() & ~mask
    case.require(not bool(stray.any()), "padding is not predicted")
    covered = (predicted.isfinite() | ~mask)[:, case.count :]
    case.require(bool(covered.all()), "every observation after the context is predicted")


def a_loss_does_not_depend_on_order_or_padding(case: Case) -> None:
    """The same sequences in another order, or padded further, are predicted the same."""
    errors = case.model.loss(case.batch).predicted
    order = torch.arange(len(case.batch)).flip(0)
    turned = case.model.loss(case.batch[order]).predicted[order]
    longer = Sequences.concat([case.batch, example_data([20], case.control)])[: len(case.batch)]
    padded = Sequences(
        torch.nn.functional.pad(longer.times, (0, 3)),
        torch.nn.functional.pad(longer.values, (0, 0, 0, 3)),
        None if longer.controls is None else torch.nn.functional.pad(longer.controls, (0, 0, 0, 3)),
        torch.nn.functional.pad(longer.mask, (0, 3)),
    )
    more = case.model.loss(padded).predicted[:, : errors.shape[1]]
    for other, law in ((turned, "order"), (more, "padding")):
        case.require_close(
            errors.nan_to_num(),
            other.nan_to_num(),
            f"what a loss predicts must not depend on {law}",
        )


def a_path_does_not_depend_on_its_company(case: Case) -> None:
    """A trajectory is predicted alone as it is in a batch."""
    together = case.predictions(case.context)
    for row in range(len(case.context)):
        alone = case.predictions(case.context[row])
        case.require_close(alone[0], together[row], "a path must not depend on its company")


def a_path_answers_any_time_in_its_range(case: Case) -> None:
    """Queries work at any time in range, on both sides of a knot, in any order and number."""
    path = case.roll_out(case.context)
    case.require_close(path.start, case.context.ends, "a path must start where its context ends")
    middle = (path.start + path.end) / 2
    times = torch.stack([path.end, path.start, middle], dim=1)
    answers = path.evaluate(times)
    shape = (len(case.context), 3, case.batch.dim)
    case.require(answers.shape == shape, f"predictions must have shape {shape}", answers.shape)
    case.require(bool(answers.isfinite().all()), "predictions must be finite")
    single = path.evaluate(times[:, 2:])
    case.require_close(single[:, 0], answers[:, 2], "a query must not depend on other queries")
    empty = path.evaluate(times[:, :0]).shape
    case.require(empty == (shape[0], 0, shape[2]), "no query must give no answer", empty)
    knots = path.knots.minimum(path.end[:, None])
    for side in ("left", "right"):
        at = path.evaluate(knots, side=side)
        case.require(bool(at.isfinite().all()), f"predictions must be finite {side} of a knot")
    _must_refuse(case, lambda: path.evaluate(path.end[:, None] + 1), "a time after the end")


def a_rollout_ends_where_it_is_told(case: Case) -> None:
    """A path ends at `until`, or says that its updates were used up."""
    until = case.context.ends + AHEAD * case.model.config.time_unit
    path = case.model.rollout(case.context, until)
    case.require_close(path.end, until, "a path must end at `until`")
    path = case.model.rollout(case.context, until, max_updates=1)
    case.require(int(path.num_updates.max()) <= 1, "max_updates must bound the updates")
    early = path.end < until - 1e-9
    case.require(
        bool((path.status[early] != 0).all()), "a path that ends early must say so in its status"
    )


def later_controls_do_not_change_the_past(case: Case) -> None:
    """The value of a control has no effect before its time."""
    if not case.control:
        return
    ends, unit = case.context.ends[:, None], case.model.config.time_unit
    before = ends + unit * torch.tensor([0.5, 1.7, 2.9], dtype=torch.float64)
    predicted = []
    for level in (3.0, 5.0):
        controls = torch.full((len(ends), 1, case.control), level, dtype=torch.float64)
        until = case.context.ends + AHEAD * unit
        path = case.model.rollout(case.context, until, (ends + 3 * unit, controls))
        predicted.append(path.evaluate(before))
    one, other = predicted
    case.require_close(one, other, "a control must not act before its time")


def every_weight_can_learn(case: Case) -> None:
    """Every weight has a finite gradient of the loss, and a rollout is differentiable."""
    case.model.loss(case.batch).total.backward()
    for name, weight in case.model.named_parameters():
        law = f"every weight must get a finite gradient from the loss; {name}"
        case.require(weight.grad is not None, law, "has none")
        assert weight.grad is not None
        case.require(bool(weight.grad.isfinite().all()), law, "has one that is not finite")
    case.model.zero_grad()
    context = Sequences(
        case.context.times, case.context.values.clone().requires_grad_(), case.context.controls
    )
    (slope,) = torch.autograd.grad(case.predictions(context).sum(), context.values)
    case.require(bool((slope != 0).any()), "a rollout must be differentiable in its context")


def the_same_draws_give_the_same_loss(case: Case) -> None:
    """A loss is a function of batch and draws, and a rollout of its context: nothing is hidden."""
    draws = Draws.seeded(case.batch, 3, progress=0.5)
    one, other = (case.model.loss(case.batch, draws).total for _ in range(2))
    case.require(bool(one == other), "the same draws must give the same loss", f"{one}, {other}")
    first, second = (case.predictions(case.context) for _ in range(2))
    case.require(torch.equal(first, second), "a rollout must not depend on chance")


def a_model_comes_back_from_disk(case: Case) -> None:
    """Saved and loaded, a model predicts the same, bit for bit."""
    model = case.kind.from_config(asdict(case.model.config))
    model.load_state_dict(case.model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        again = case.kind.load(folder)
    one, other = (
        case.predictions(case.context.to(dtype=torch.float32), each) for each in (model, again)
    )
    case.require(torch.equal(one, other), "a model must be the same after save and load")


def bad_input_is_explained(case: Case) -> None:
    """Data that do not fit the model raise InvalidInput."""
    model, wide = case.model, example_data([6, 6], case.control, dim=5)
    _must_refuse(case, lambda: model.loss(wide), "a batch with another number of features")
    _must_refuse(case, lambda: case.roll_out(wide), "a context with another number of features")
    early = case.context.ends - 1
    _must_refuse(case, lambda: model.rollout(case.context, early), "an end before the context's")
    _must_refuse(case, lambda: case.kind.from_config({"no_such_option": 1}), "an unknown option")
    if case.count > 1:
        short = case.batch.head(case.count - 1)
        _must_refuse(case, lambda: case.roll_out(short), "a context that is too short")


def _must_refuse(case: Case, act: Callable[[], Any], what: str) -> None:
    try:
        act()
    except InvalidInput:
        return
    except Exception as error:
        found = f"it raised {type(error).__name__}: {error}"
    else:
        found = "it was accepted"
    case.require(False, f"{what} must be refused with InvalidInput", found)


LAWS = (
    a_config_survives_json,
    a_loss_is_a_finite_number,
    a_loss_does_not_depend_on_order_or_padding,
    a_path_does_not_depend_on_its_company,
    a_path_answers_any_time_in_its_range,
    a_rollout_ends_where_it_is_told,
    later_controls_do_not_change_the_past,
    every_weight_can_learn,
    the_same_draws_give_the_same_loss,
    a_model_comes_back_from_disk,
    bad_input_is_explained,
)
"""What `check_model` checks, in this order."""
