"""`About`: what sequences are called: ids, names of columns, and the clock of their table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from skipstone.checking import as_entries
from skipstone.errors import InvalidInput, require_choice, require_kind, shortened
from skipstone.tables.clock import Clock, joined
from skipstone.tables.summary import html_table, listed


@dataclass(frozen=True, eq=False)
class About:
    """Names that `Sequences` and `Path` carry along. No model reads them."""

    ids: Shaped[np.ndarray, " batch"] | None = None
    """One per sequence, any hashable, as an array of objects. The windows of a log share its id."""
    features: tuple[str, ...] | None = None
    """Names of the features."""
    control_names: tuple[str, ...] | None = None
    """Names of the controls."""
    clock: Clock = field(default_factory=Clock)
    """How times map to the stamps of the table."""
    id_name: str | None = "id"
    """Column of ids; None for a table that had none."""
    time_name: str = "time"
    """Column of times."""
    library: str | None = None
    """The library whose frame came in: `pandas`, `polars` or `pyarrow`."""
    id_dtype: Any = None
    """The dtype of that column."""

    @classmethod
    def of(cls, given: Any) -> About:
        """What is given as such; nothing is known if that is None."""
        if given is not None:
            require_kind("about must be that of other sequences", given, cls)
        return cls() if given is None else given

    def pick(self, index: Any) -> About:
        """What is known about some of the sequences."""
        if self.ids is None and self.clock.origins is None:
            return self
        ids = None if self.ids is None else self.ids[index]
        return replace(self, ids=ids, clock=self.clock.pick(index))

    def clocked(self, clock: Clock | None) -> About:
        """The same with another clock; None keeps the one there is."""
        return self if clock is None else replace(self, clock=clock)

    def named(
        self,
        ids: Iterable[Any] | None = None,
        features: Iterable[str] | None = None,
        control_names: Iterable[str] | None = None,
    ) -> About:
        """The same with other names; None keeps those there are."""
        return replace(
            self,
            ids=self.ids if ids is None else as_ids(as_entries("ids", ids)),
            features=self.features if features is None else as_names("features", features),
            control_names=self.control_names
            if control_names is None
            else as_names("control_names", control_names),
        )

    def check(self, batch: int, dim: int, control_dim: int) -> None:
        """Raise unless there is one id for each sequence and one name for each column."""
        for name, things, count in (
            ("ids", self.ids, batch),
            ("features", self.features, dim),
            ("control_names", self.control_names, control_dim),
            ("the clock's origins", self.clock.origins, batch),
        ):
            if things is not None and len(things) != count:
                raise InvalidInput(f"{name} must be {count} here, one each; got {len(things)}.")
        names = [*(self.features or ()), *(self.control_names or ())]
        if len(set(names)) < len(names):
            raise InvalidInput(f"each column must have a name of its own; got {names}.")
        for one in () if self.ids is None else self.ids:
            try:
                hash(one)
            except TypeError:
                raise InvalidInput(f"ids must be hashable; got {one!r}. Use text.") from None

    def feature_indices(self, wanted: Any) -> tuple[int, ...]:
        """Features by name or index, as indices."""
        wanted = [wanted] if isinstance(wanted, str | int) else as_entries("targets", wanted)
        names = self.features or ()
        for name in wanted:
            if isinstance(name, str):
                require_choice("a feature", name, names)
        return tuple(names.index(name) if isinstance(name, str) else name for name in wanted)

    def columns(self, values: Shaped[Tensor, "rows dim"]) -> dict[str, np.ndarray]:
        """Values by the names of their features, `x0`, `x1` and so on if they have none."""
        names = self.features or [f"x{i}" for i in range(values.shape[1])]
        return dict(zip(names, values.detach().cpu().numpy().T, strict=True))

    def control_columns(self, controls: Shaped[Tensor, "rows control"]) -> dict[str, np.ndarray]:
        """Controls by their names, `u0`, `u1` and so on if they have none."""
        names = self.control_names or [f"u{i}" for i in range(controls.shape[1])]
        return dict(zip(names, controls.detach().cpu().numpy().T, strict=True))

    def names(self) -> dict[str, str]:
        """Ids and columns for a repr, those that are known."""
        known: dict[str, str] = {}
        if self.ids is not None:
            known["ids"] = f"[{listed(dict.fromkeys(self.ids))}]"
        if self.features is not None:
            known["features"] = f"[{listed(self.features)}]"
        if self.control_names is not None:
            known["controls"] = f"[{listed(self.control_names)}]"
        return known

    def span(self, first: Tensor, last: Tensor) -> dict[str, str]:
        """The earliest and the latest time for a repr, as stamps where the table had stamps."""
        low, high = (times.detach().cpu().numpy() for times in (first, last))
        if self.clock.origins is None:
            return {"times": f"[{low.min():.13g}, {high.max():.13g}]"}
        rows = np.arange(len(low))
        low, high = self.clock.stamps(low, rows).min(), self.clock.stamps(high, rows).max()
        return {"times": f"[{low}, {high}]" + (" UTC" if self.clock.zone else "")}

    def moment(self, row: int, time: float) -> str:
        """A model time of one sequence for people: a stamp where the table had stamps."""
        if not self.clock.reaches(row, time):
            return f"{time:.13g}"
        return str(self.clock.stamps(np.array([time]), np.array([row]))[0])


class Labelled(ABC):
    """What `Sequences` and `Path` share: names, and reprs that fit a line or a notebook cell."""

    about: About
    """Ids, names of columns, and the clock."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What its repr shows."""

    @property
    def ids(self) -> Shaped[np.ndarray, " batch"] | None:
        """One per sequence, if there are any. The windows of a log share its id."""
        return self.about.ids

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return self.about.features

    @property
    def control_names(self) -> tuple[str, ...] | None:
        """Names of the controls, if they have any."""
        return self.about.control_names

    @property
    def clock(self) -> Clock:
        """How times map to the stamps of the table that they came from."""
        return self.about.clock

    def plot(self, **options: Any) -> Any:
        """A figure of the first few over time, a line per feature; see `drawing.plots.plot`."""
        # The one import upwards: drawing needs matplotlib, and reading data must not.
        from skipstone.drawing.plots import plot

        return plot(self, **options)

    def model_times(self, stamps: Any) -> Tensor:
        """Model times of one stamp, `(batch,)`, or of several, `(batch, time)`.

        Each sequence has its own origin, so one stamp has a model time for each. For example the
        end of a rollout: `until=context.model_times(datetime(2026, 6, 1))`.
        """
        times = torch.as_tensor(self.clock.to_model(stamps))
        return times.expand(len(self), *times.shape[1:])

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={fact}" for name, fact in self.facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.facts())


def as_names(what: str, names: Any) -> tuple[str, ...]:
    """Names of columns; one text would be a name for each of its letters."""
    found = () if isinstance(names, str) else tuple(as_entries(what, names))
    if isinstance(names, str) or not all(isinstance(name, str) for name in found):
        raise InvalidInput(f"{what} must be a list of texts; got {shortened(names)}.")
    return found


def as_ids(ids: Iterable[Any]) -> Shaped[np.ndarray, " batch"]:
    """Ids as an array of objects, tuples too."""
    return np.fromiter(ids, dtype=object)


def merged(parts: Sequence[About]) -> About:
    """What is known about sequences that are put together."""
    first = parts[0]
    with_ids = [part.ids for part in parts if part.ids is not None]
    if with_ids and len(with_ids) < len(parts):
        raise InvalidInput(
            "batches to join must all have ids, or none; some here have none. Give them some: "
            "sequences.named(ids=...)."
        )
    return replace(
        first,
        ids=np.concatenate(with_ids) if with_ids else None,
        features=_agreed("features", [part.features for part in parts]),
        control_names=_agreed("control_names", [part.control_names for part in parts]),
        clock=joined([part.clock for part in parts]),
    )


def _agreed(what: str, names: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    known = list(dict.fromkeys(name for name in names if name is not None))
    if len(known) > 1:
        raise InvalidInput(
            f"batches to join must have the same {what}; got {list(known[0])} and "
            f"{list(known[1])}. Bring the columns into one order."
        )
    return known[0] if known else None
