"""`Path`: a predicted trajectory, to evaluate at any real time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from skipstone.calibration import Calibration
from skipstone.checking import as_array, as_times
from skipstone.errors import InvalidInput, require_choice
from skipstone.tables.about import About, Labelled
from skipstone.tables.clock import is_stamp
from skipstone.tables.frames import write_table

SegmentPredictor = Callable[
    [Int[Tensor, "batch time"], Float[Tensor, "batch time"]],
    tuple[Float[Tensor, "batch time dim"], int | Int[Tensor, " batch"]],
]
"""`predict(segment, offset) -> (values, evaluations)`: predictions inside the segments of a path.

`segment` is the index of the segment of each query, `offset` the time since its knot. `evaluations`
counts those of an ODE's right-hand side, for each row or alike for all.
"""

_SLACK = 1e-6
"""Share of the range by which a query may lie outside it: that is rounding."""

_COARSE = 1e-3
"""Largest distance of neighbouring single-precision times, as a share of the range."""

_SAME_TIME = 1e-10
"""Times this close, relative to the range, are the same."""

MOST_ROWS = 100_000_000
"""Rows of a table that `every` may ask for."""


class Status(IntEnum):
    """How a trajectory's rollout ended."""

    REACHED_END = 0
    """At `until`."""
    MAX_UPDATES = 1
    """Before, since it had used its updates: `max_updates`, or 10,000 if nobody said."""


class Path(Labelled):
    """Predicted trajectories x̂(t), one per row, in segments that begin at knots.

    A path starts at the last observation of its context and ends at `until`, or earlier for a
    row that used up its updates. Inside that range any time can be asked for; outside it is an
    error, never an extrapolation.
    """

    knots: Float[Tensor, "batch segments"]
    """Time of each cell update; rows with fewer updates are filled up with infinity."""

    start: Float[Tensor, " batch"]
    """First time of each row."""

    end: Float[Tensor, " batch"]
    """Last time of each row."""

    num_updates: Int[Tensor, " batch"]
    """Cell updates that made the path: one per segment, the first at the last observation of the
    context. Updates before that one are the context's, a fixed cost, and not counted."""

    num_evaluations: Int[Tensor, " batch"]
    """Evaluations of an ODE's right-hand side, by the rollout and by `evaluate` so far; 0 for
    models that integrate nothing."""

    status: Int[Tensor, " batch"]
    """A `Status` for each row."""

    def __init__(
        self,
        predict: SegmentPredictor,
        knots: Float[Tensor, "batch segments"],
        end: Float[Tensor, " batch"],
        status: Int[Tensor, " batch"] | None = None,
        num_evaluations: Int[Tensor, " batch"] | None = None,
        about: About | None = None,
        calibration: Calibration | None = None,
        members: Sequence[Path] = (),
    ):
        """`predict(segment, offset)` gives the values inside the segments between `knots`. Without
        `status` every row reached its end; without `num_evaluations` nothing was integrated.
        `about` is that of the context: its ids, names and clock, which `to_table` needs.
        `calibration` is the model's, which `interval` needs. `members` are the paths that this one
        is the mean of, for `spread`."""
        nothing = torch.zeros_like(end, dtype=torch.long)
        self._predict = predict
        self.num_evaluations = nothing if num_evaluations is None else num_evaluations
        self.knots = knots
        self.start = knots[:, 0]
        self.end = end
        self.status = nothing + int(Status.REACHED_END) if status is None else status
        self.num_updates = knots.isfinite().sum(1)
        self.about = About() if about is None else about
        self.calibration = calibration
        self.members = tuple(members)

    def __len__(self) -> int:
        return self.knots.shape[0]

    def facts(self) -> dict[str, Any]:
        """What its repr shows."""
        updates = f"{self.num_updates.double().mean().item():.3g}"
        span = self.about.span(self.start, self.end)
        return {"batch": len(self), **span, "updates per row": updates, **self.about.names()}

    def require_end(self) -> None:
        """Raise unless every row reached `until`: a table of its predictions would not show it."""
        early = (self.status != int(Status.REACHED_END)).nonzero()
        if len(early):
            row = int(early[0])
            name = f"trajectory {row}" if self.ids is None else f"id {self.ids[row]!r}"
            raise InvalidInput(
                f"a prediction must reach its end; {name} ended at "
                f"{self.about.moment(row, self.end[row].item())}. {self._how_to_extend(row)}"
            )

    @property
    def steps(self) -> Float[Tensor, "batch segments"]:
        """Time from each knot to the next, or to the end; 0 where a row has no more knots."""
        ends = torch.cat([self.knots[:, 1:], self.end[:, None]], dim=1)
        ends = ends.minimum(self.end[:, None])
        return torch.where(self.knots.isfinite(), ends - self.knots, 0.0)

    def evaluate(self, t: Any, side: str = "left") -> Float[Tensor, "batch *time dim"]:
        """The prediction at time `t`: one number, `(time,)` for all rows, or `(batch, time)`.

        Numbers are model time, as in the context's `times`. One stamp of the context's table, such
        as a datetime, or several, are the same moments for all rows.

        At a knot two segments meet. The left limit, the prediction made before the update, is
        the default; `side="right"` gives the one made after it.
        """
        require_choice("side", side, ("left", "right"))
        times = self._queries(t)
        # A time that differs from a knot by rounding is at the knot, on the side asked for.
        rounding = 4 * torch.finfo(self.end.dtype).eps * self.end.abs()
        nudge = (_SAME_TIME * (self.end - self.start) + rounding).detach()[:, None]
        nudged = times.detach() + (nudge if side == "right" else -nudge)
        segment = torch.searchsorted(self.knots.detach().contiguous(), nudged.contiguous())
        segment = (segment - 1).clamp(min=0)
        values, evaluations = self._predict(segment, times - self.knots.gather(1, segment))
        self.num_evaluations = self.num_evaluations + evaluations
        return values[:, 0] if np.ndim(t) == 0 else values

    def interval(
        self, t: Any, coverage: float = 0.9
    ) -> tuple[Float[Tensor, "batch *time dim"], Float[Tensor, "batch *time dim"]]:
        """Lower and upper bounds at times as in `evaluate`, if the model was calibrated.

        See `skipstone.calibrate` for what is promised: each observation lies inside with this
        probability, on average over trajectories.
        """
        if self.calibration is None:
            raise InvalidInput(
                "intervals come from errors on data that the model has not seen; this path has "
                "none. Before rolling out: skipstone.calibrate(model, sequences); on the command "
                "line, train with skipstone fit --intervals."
            )
        queries, values = self._queries(t), self.evaluate(t)
        radius = self.calibration.radius(queries - self.start[:, None], coverage).to(values)
        radius = radius[:, 0] if np.ndim(t) == 0 else radius
        return values - radius, values + radius

    def spread(self, t: Any) -> Float[Tensor, "batch *time dim"]:
        """Standard deviation over the members of an ensemble, at times as in `evaluate`."""
        if not self.members:
            raise InvalidInput(
                "a spread is that of several models; this path is of one. Roll out an ensemble: "
                "skipstone.Ensemble([model, ...])."
            )
        return torch.stack([member.evaluate(t) for member in self.members]).std(dim=0)

    def to_table(
        self,
        times: Any = None,
        *,
        every: Any = None,
        interval: float | None = None,
        like: Any = None,
    ) -> Any:
        """A frame of predictions: the context's ids, stamps like its own, a column per feature.

        With `interval`, a coverage such as 0.9, each feature also has its bounds, in columns that
        end in `_lower` and `_upper`.

        `every` is a length of time, a timedelta or a number in model time: each trajectory has a
        row that long after its start, and so on to its end. Or `times` says which, as in
        `evaluate`. `like` is a frame of the library to use or its name; by default the one that
        the context came from.
        """
        if (times is None) == (every is None):
            raise InvalidInput(
                "a table needs either `every`, a length of time, or `times`; got "
                + ("neither." if times is None else "both.")
            )
        if every is None:
            queries = self._queries(times)
            wanted = torch.ones_like(queries, dtype=torch.bool)
        else:
            queries, wanted = self._grid(self.clock.length("every", every))
        with torch.no_grad():
            columns = self.about.columns(self.evaluate(queries)[wanted])
            if interval is not None:
                columns |= self._bounds(queries, wanted, interval)
        row, at = (part.cpu().numpy() for part in wanted.nonzero().T)
        moments = queries.detach().cpu().numpy()[row, at]
        return write_table(self.about, row, moments, columns, like)

    def _bounds(self, queries: Tensor, wanted: Tensor, coverage: float) -> dict[str, np.ndarray]:
        """Columns of lower and upper bounds, those of a feature together."""
        sides = zip(("lower", "upper"), self.interval(queries, coverage), strict=True)
        named = {side: self.about.columns(bounds[wanted]) for side, bounds in sides}
        names = list(named["lower"])
        bounds = {f"{name}_{side}": named[side][name] for name in names for side in named}
        taken = [name for name in names if name in bounds]
        if taken:
            raise InvalidInput(
                f"bounds have columns of their own; {taken[0]!r} is a feature already. Rename it: "
                "sequences.named(features=...)."
            )
        return bounds

    def _grid(self, every: float) -> tuple[Float[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
        """Times `every` so long after the start of each row, and which of them it reaches."""
        low, high = self.start.detach()[:, None], self.end.detach()[:, None]
        counts = ((high - low) / every + _SLACK).floor()
        if bool((counts < 1).any()):
            row = int((counts < 1).nonzero()[0, 0])
            raise InvalidInput(
                f"every must fit into each trajectory; it is {every:g} in model time, and "
                f"trajectory {row} lasts {float((high - low)[row]):.13g}. "
                "Use a shorter one, or roll out with a later `until`."
            )
        if float(counts.max()) * len(self) > MOST_ROWS:
            raise InvalidInput(
                f"a table must have at most {MOST_ROWS:,} rows; every {every:g} in model time "
                f"would be {float(counts.max()):,.0f} for each trajectory. Use a longer one."
            )
        steps = torch.arange(1, int(counts.max()) + 1, device=counts.device)
        return (low + steps * every).minimum(high), steps <= counts

    def _queries(self, t: Any) -> Float[Tensor, "batch time"]:
        """The times asked for, one row per trajectory, checked against the range."""
        if not isinstance(t, Tensor) and is_stamp(t):
            t = self.model_times(t).reshape(len(self), -1)
        # Through numpy, which takes plain numbers as double precision.
        t = t if isinstance(t, Tensor) else as_array(t, "times")
        times = as_times(t).to(self.end)
        if times.ndim < 2:
            times = times.reshape(1, -1).expand(len(self), -1)
        if times.ndim != 2 or times.shape[0] != len(self):
            raise InvalidInput(
                "times must be a number or have shape (time,) or (batch, time) with batch "
                f"{len(self)}; got shape {tuple(times.shape)}."
            )
        low, high = self.start.detach()[:, None], self.end.detach()[:, None]
        slack = _SLACK * (high - low)
        if t.dtype in (torch.float32, np.float32):
            slack = slack + self._single_precision(low, high)
        outside = ~((times >= low - slack) & (times <= high + slack))
        if bool(outside.any()):
            row, index = (int(i) for i in outside.nonzero()[0])
            first, last, wanted = (
                self.about.moment(row, t.item()) for t in (low[row], high[row], times[row, index])
            )
            raise InvalidInput(
                f"a path can be asked for times inside its range; trajectory {row} covers "
                f"[{first}, {last}] and was asked for {wanted}. " + self._how_to_extend(row)
            )
        return times.clamp(low, high)

    def _single_precision(self, low: Tensor, high: Tensor) -> Float[Tensor, "batch 1"]:
        """Distance of neighbouring single-precision times in the range; raise if too coarse."""
        apart = torch.finfo(torch.float32).eps * torch.maximum(low.abs(), high.abs())
        if bool((apart > _COARSE * (high - low)).any()):
            raise InvalidInput(
                "times must tell moments of the range apart; in single precision they are up to "
                f"{float(apart.max()):.3g} apart here. Ask with dtype=torch.float64."
            )
        return apart

    def _how_to_extend(self, row: int) -> str:
        counted = ""
        if self.clock.kind == "integer" and self.clock.origins is not None:
            counted = " Numbers count from each sequence's first stamp: path.model_times(stamps)."
        if int(self.status[row]) == Status.MAX_UPDATES:
            count = int(self.num_updates[row])
            mean = float((self.end - self.start)[row]) / count
            unit = f" {self.clock.unit}" if self.clock.unit else ""
            return (
                f"It stopped after {count} updates, {mean:.3g}{unit} each: raise max_updates to go "
                "on, or check that the data's times are in the model's unit of time." + counted
            )
        return "Roll out with a later `until`, or start from an earlier context." + counted
