"""What was found, for the first screen of the report: a few sentences and one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skipstone.console import short_number
from skipstone.paper.groups import OURS, measure
from skipstone.paper.measured import Measured
from skipstone.paper.page import TableCard
from skipstone.paper.published import Reported
from skipstone.paper.table import mean_text, milliseconds, reported_for, rows_of

_BASELINE = "RNN"
"""What the PC-ODE is compared with: an update at every observation."""

_GROUPS = [("", 1), ("error", 3), ("updates", 3), ("seconds for 1,000 rollouts", 2)]
_COLUMNS = ["task", *[OURS, _BASELINE, "paper"] * 2, OURS, _BASELINE]
"""Columns of the table, and the groups that they belong to."""

_CAPTION = (
    "The mean squared error of rollouts on test data, how often a model updates in one, and how "
    "long 1,000 of them take on this machine, 256 at a time. Smaller is better everywhere. The "
    "columns “paper” are the paper's PC-ODE; it gives no seconds."
)

_INTRODUCTION = (
    "A piecewise-constant neural ODE (PC-ODE) is a recurrent model that updates only where "
    "something happens, and moves on a straight line in between."
)
_SOURCE = (
    "The method is from Piecewise-constant Neural ODEs by Sam Greydanus, Stefan Lee and Alan Fern "
    "(2021, arXiv:2106.06621). The models were trained anew."
)


@dataclass(frozen=True)
class Finding:
    """A PC-ODE beside the RNN of its task; several seeds each."""

    name: str
    """The task, and what is special about this PC-ODE."""
    ours: Sequence[Measured]
    theirs: Sequence[Measured]

    @property
    def reported(self) -> Reported | None:
        """The paper's PC-ODE."""
        return reported_for(self.ours[0])

    @property
    def reported_updates(self) -> float | None:
        """Updates that the paper's mean step makes on as many observations."""
        horizon = len(self.ours[0].evaluation["horizon_mse"])
        return max(1.0, horizon / self.reported.mean_step) if self.reported else None

    def ratio(self, name: str) -> float:
        """The PC-ODE's number over the RNN's."""
        return measure(self.ours, name).value / measure(self.theirs, name).value

    @property
    def beats_paper(self) -> bool | None:
        """Whether the error is below the paper's; None where it has none."""
        reported = self.reported
        return reported and measure(self.ours, "sample_mse").value < reported.sample_mse

    def row(self) -> list[str]:
        """The row of the table."""
        both, reported = (self.ours, self.theirs), self.reported
        return [
            self.name,
            *(short_number(measure(runs, "sample_mse").value) for runs in both),
            short_number(reported.sample_mse) if reported else "–",
            *(short_number(measure(runs, "updates").value) for runs in both),
            short_number(self.reported_updates) or "–",
            *(_seconds(runs) or "–" for runs in both),
        ]


def findings_of(measured: Sequence[Measured]) -> list[Finding]:
    """The PC-ODEs that have an RNN beside them, and finite errors both."""
    rows = list(rows_of(measured))
    baselines = {task: runs for task, title, runs in rows if title == _BASELINE}
    found = [
        Finding(task + title.removeprefix(OURS), runs, baselines[task])
        for task, title, runs in rows
        if runs[0].model == OURS and task in baselines
    ]
    return [one for one in found if math.isfinite(one.ratio("sample_mse"))]


def summary_of(findings: Sequence[Finding]) -> list[str]:
    """The report's first sentences: what a PC-ODE is, what was found, and whose idea it is."""
    if not findings:
        return [_INTRODUCTION, _SOURCE]
    fewer = [1 / one.ratio("updates") for one in findings]
    errors = [one.ratio("sample_mse") for one in findings]
    alike = "trained as long" if _sizes(findings) else "of the same size and budget"
    said = (
        f"It takes {_range(fewer)} times fewer updates than an RNN {alike}. "
        f"Its error is {_range(errors)} times the RNN's"
    )
    beaten = [one.beats_paper for one in findings if one.beats_paper is not None]
    said += f", and below the paper's in {sum(beaten)} of {len(beaten)} rows." if beaten else "."
    return [f"{_INTRODUCTION} {said}", _SOURCE]


def findings_table(findings: Sequence[Finding]) -> TableCard | None:
    """The PC-ODE beside the RNN and the paper: error, updates and seconds."""
    rows = [one.row() for one in findings]
    caption = _CAPTION + _sizes(findings)
    return TableCard("What was found", caption, _COLUMNS, rows, _GROUPS) if rows else None


def _sizes(findings: Sequence[Finding]) -> str:
    """Where a PC-ODE has other units than the RNN, and how many; nothing where none has."""
    tasks: dict[tuple[int, int], dict[str, None]] = {}
    for one in findings:
        sizes = one.ours[0].hidden, one.theirs[0].hidden
        if len(set(sizes)) > 1:
            tasks.setdefault(sizes, {})[one.ours[0].task] = None
    return "".join(
        f" On {' and '.join(', '.join(named).rsplit(', ', 1))} the PC-ODE has {ours} units, the "
        f"RNN {theirs}."
        for (ours, theirs), named in tasks.items()
    )


def _seconds(runs: Sequence[Measured]) -> str:
    """Seconds for 1,000 rollouts: as many as the milliseconds for one, in batches."""
    times = [milliseconds(run, 256) for run in runs]
    return mean_text([time / 256 for time in times if time is not None])


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.3g}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
