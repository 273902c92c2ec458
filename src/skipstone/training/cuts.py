"""Windows that a training draws from long sequences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from skipstone.errors import InvalidInput
from skipstone.sequences import Sequences

KEPT = 0.1
"""Share of the data that is kept for validation."""

FEW = 10
"""With fewer sequences than this, their ends are kept instead of whole ones."""


@dataclass(frozen=True)
class Cuts:
    """Windows of sequences: as many of each as fit side by side, one from each stretch of it.

    Where in its stretch a window begins is left to chance. A sequence that is no longer than a
    window is used whole.
    """

    sequences: Sequences
    """What is cut."""

    width: int
    """Observations of a window."""

    sequence: Int[np.ndarray, " windows"]
    """The sequence of each window."""

    low: Float[np.ndarray, " windows"]
    """Where its stretch begins, as the number of an observation."""

    room: Float[np.ndarray, " windows"]
    """How many observations the stretch has to begin at."""

    distinct: int
    """How many different windows there are."""

    @classmethod
    def of(cls, sequences: Sequences, width: int | None) -> Cuts:
        """The windows of some sequences; without a width each sequence is one."""
        lengths = sequences.lengths.cpu().numpy()
        width = int(lengths.max()) if width is None else width
        starts = np.maximum(lengths - width + 1, 1)
        counts = np.maximum(lengths // width, 1)
        sequence = np.repeat(np.arange(len(lengths)), counts)
        within = np.arange(len(sequence)) - np.repeat(counts.cumsum() - counts, counts)
        room = (starts / counts)[sequence]
        return cls(sequences, width, sequence, within * room, room, int(starts.sum()))

    def __len__(self) -> int:
        return len(self.sequence)

    def take(
        self, which: Int[np.ndarray, " taken"], chance: Float[np.ndarray, " taken"]
    ) -> Sequences:
        """Some windows, each begun after this share of its stretch."""
        # Rounding must not carry a start into the next stretch.
        start = np.floor(self.low[which] + chance * self.room[which] * (1 - 1e-12))
        rows = torch.as_tensor(self.sequence[which])
        length = self.sequences.lengths.cpu()[rows]
        index = torch.as_tensor(start).long()[:, None] + torch.arange(self.width)
        index = index[:, : int(length.max())]
        device = self.sequences.times.device
        last = length[:, None] - 1
        return self.sequences.gather(
            rows.to(device), index.minimum(last).to(device), (index <= last).to(device)
        )


def fixed_windows(sequences: Sequences, width: int, most: int) -> Sequences:
    """Windows in the middle of their stretches, at most so many, spread over all sequences."""
    cuts = Cuts.of(sequences, width)
    which = np.linspace(0, len(cuts) - 1, min(most, len(cuts))).round().astype(np.int64)
    return cuts.take(which, np.full(len(which), 0.5))


def keep_apart(
    sequences: Sequences, width: int | None, seed: int, share: float = KEPT
) -> tuple[Sequences, Sequences]:
    """Most of the data, and a share to validate, calibrate or test with.

    That is a share of the sequences; of fewer than 10 it is the end of each, if training is on
    windows.
    """
    if len(sequences) >= FEW:
        most, rest = sequences.split([1 - share, share], seed=seed)
        return most, rest
    if width is not None:
        return split_ends(sequences, width, share)
    raise InvalidInput(
        f"a part of the sequences is kept for validation, so there must be at least {FEW}; got "
        f"{len(sequences)}. Bring more, or pass your own: fit(model, train, validation). For a few "
        "long ones give a horizon, and the end of each is kept: fit(..., horizon=24)."
    )


def split_ends(
    sequences: Sequences, width: int, share: float = KEPT
) -> tuple[Sequences, Sequences]:
    """All but the last share of each sequence, at least a window, and these ends.

    Sequences too short for two windows stay whole, in the first part.
    """
    lengths = sequences.lengths
    late = (share * lengths).long().clamp(min=width)
    late = torch.where(lengths - late >= width, late, 0)
    if not bool(late.any()):
        raise InvalidInput(
            "the end of each sequence is kept for validation, so one must be as long as two "
            f"windows, {2 * width} observations; the longest has {int(lengths.max())}. Use a "
            "shorter horizon, or pass your own validation data: fit(model, train, validation)."
        )
    at = torch.arange(sequences.times.shape[1], device=lengths.device)
    early = at < (lengths - late)[:, None]
    return sequences.select(early), sequences[late > 0].select(~early[late > 0])


def keep_targets(
    sequences: Sequences, context: int, horizon: int, share: float
) -> tuple[Sequences, Sequences | None]:
    """All but the last share of each sequence, at least `horizon` observations, and these ends,
    each after `context` observations to predict it from, which both parts have.

    Sequences too short for that stay whole, in the first part; None if all are.
    """
    lengths = sequences.lengths
    late = (share * lengths).long().clamp(min=horizon)
    late = torch.where(lengths - late > context, late, 0)
    if not bool(late.any()):
        return sequences, None
    at = torch.arange(sequences.times.shape[1], device=lengths.device)
    first = (lengths - late)[:, None]
    cut = late > 0
    return sequences.select(at < first), sequences[cut].select((at >= first - context)[cut])
