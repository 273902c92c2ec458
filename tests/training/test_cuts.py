"""Windows that a training draws: where they lie, and that chance is a function of seed and step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import lengths, random_batch, small_pcode
from skipstone import InvalidInput, Recipe, Sequences
from skipstone.training.cuts import Cuts, fixed_windows, keep_targets, split_ends
from skipstone.training.objective import Objective, share_of_mean


def counted(sizes: list[int]) -> Sequences:
    """Sequences whose values say which they are and which observation."""
    values = [
        torch.stack([torch.full((n,), float(i)), torch.arange(n) + 0.0], dim=1)
        for i, n in enumerate(sizes)
    ]
    return Sequences.from_lists(values)


def places(windows: Sequences) -> list[tuple[int, int, int]]:
    """Sequence, first observation and length of each window."""
    ends = zip(windows.values[:, 0].tolist(), windows.lengths.tolist(), strict=True)
    return [(int(which), int(first), length) for (which, first), length in ends]


@given(lengths(least=1, most=40), st.integers(1, 12), st.floats(0, 1, exclude_max=True))
def test_windows_lie_in_stretches_that_tile_their_sequence(
    sizes: list[int], width: int, chance: float
) -> None:
    cuts = Cuts.of(counted(sizes), width)
    found = places(cuts.take(np.arange(len(cuts)), np.full(len(cuts), chance)))
    assert len(found) == sum(max(1, n // width) for n in sizes)
    for row, size in enumerate(sizes):
        starts = [first for which, first, _ in found if which == row]
        assert starts == sorted(starts)
        count, room = len(starts), max(1, size - width + 1)
        for j, start in enumerate(starts):
            assert int(j * room / count) <= start <= (j + 1) * room / count
    assert all(length == min(width, sizes[which]) for which, _, length in found)
    assert all(first + length <= sizes[which] for which, first, length in found)


def test_every_window_can_be_drawn() -> None:
    cuts = Cuts.of(counted([23]), 5)
    chances = np.linspace(0, 1, 50, endpoint=False)
    seen = {
        first
        for chance in chances
        for _, first, _ in places(cuts.take(np.arange(len(cuts)), np.full(len(cuts), chance)))
    }
    assert seen == set(range(19))
    assert cuts.distinct == 19


def test_a_window_has_what_the_sequence_has_there() -> None:
    data = random_batch(0, [30, 4, 17], control=1).named(ids="abc")
    windows = fixed_windows(data, 6, most=100)
    assert list(windows.ids) == ["a"] * 5 + ["b"] + ["c"] * 2  # pyright: ignore
    for row in range(len(windows)):
        source = data["abc".index(windows.ids[row])]  # pyright: ignore
        length = int(windows.lengths[row])
        (start,) = (source.times[0] == windows.times[row, 0]).nonzero()[0].tolist()
        for part in ("times", "values", "controls"):
            cut = getattr(source, part)[0, start : start + length]
            assert torch.equal(getattr(windows, part)[row, :length], cut)


def test_fixed_windows_are_spread_over_all_sequences() -> None:
    found = places(fixed_windows(counted([50] * 8), 10, most=8))
    assert len(found) == 8
    assert {which for which, _, _ in found} == set(range(8))


@given(st.lists(st.integers(2, 60), min_size=1, max_size=4), st.integers(2, 12))
def test_split_ends_partition_each_sequence(sizes: list[int], width: int) -> None:
    if max(sizes) < 2 * width:
        with pytest.raises(InvalidInput, match="as long as two windows"):
            split_ends(counted(sizes), width)
        return
    early, late = split_ends(counted(sizes), width)
    kept = {which: (first, n) for which, first, n in places(late)}
    for which, first, n in places(early):
        start, more = kept.get(which, (n, 0))
        assert (first, start, n + more) == (0, n, sizes[which])
        assert more == 0 or (more >= width and n >= width)
        assert more <= max(width, 0.1 * sizes[which])


def test_windows_are_drawn_anew_each_epoch_and_alike_each_time() -> None:
    train = counted([100, 40])
    recipe = Recipe(batch_size=7, steps=100)
    goal, same, other = (Objective(train, recipe, seed, window=10) for seed in (0, 0, 1))
    epochs = [[w for s in (2 * e, 2 * e + 1) for w in places(goal.batch(s))] for e in range(2)]
    for found in epochs:
        # 10 windows of the long one and 4 of the short one, whatever the epoch.
        assert sorted(which for which, _, _ in found) == [0] * 10 + [1] * 4
    assert set(epochs[0]) != set(epochs[1])
    assert places(goal.batch(5)) == places(same.batch(5))
    assert places(goal.batch(5)) != places(other.batch(5))


def test_a_single_log_fills_a_batch() -> None:
    goal = Objective(counted([100]), Recipe(batch_size=32), 0, window=20)
    assert len(goal.batch(3)) == 32
    assert len(set(places(goal.batch(3)))) > 20


def test_shares_of_windows_add_up_to_the_whole_batch() -> None:
    train, model = random_batch(0, [40, 7, 25]), small_pcode(0, explore=0.2, own_steps=0.5)
    goal = Objective(train, Recipe(batch_size=7), 0, window=9)
    whole = goal.losses(model, 3).total
    parts = [goal.losses(model, 3, rank, 2) for rank in range(2)]
    counts = torch.tensor([sum(p.num_points for p in parts), sum(p.num_steps for p in parts)])
    shared = torch.stack([share_of_mean(p, counts, 2) for p in parts]).mean()
    torch.testing.assert_close(shared, whole, rtol=0, atol=1e-12)


def test_without_a_window_a_batch_is_of_whole_sequences() -> None:
    goal = Objective(counted([9, 4, 6]), Recipe(batch_size=3), 0)
    assert sorted(places(goal.batch(0))) == [(0, 0, 9), (1, 0, 4), (2, 0, 6)]


@given(lengths(least=1, most=40), st.integers(1, 5), st.integers(1, 8), st.floats(0.01, 0.9))
def test_targets_that_are_kept_apart_are_trained_on_by_nobody(
    sizes: list[int], context: int, horizon: int, share: float
) -> None:
    data = counted(sizes)
    train, kept = keep_targets(data, context, horizon, share)
    assert len(train) == len(sizes)
    trained = dict(zip(range(len(sizes)), train.lengths.tolist(), strict=True))
    long = [
        row for row, size in enumerate(sizes) if size > context + max(horizon, int(share * size))
    ]
    assert (kept is None) == (not long)
    for which, first, length in [] if kept is None else places(kept):
        # It begins with the last of what was trained on, and goes on to the end.
        assert first == trained[which] - context
        assert first + length == sizes[which]
        assert length - context == max(horizon, int(share * sizes[which]))
    assert [row for row, size in enumerate(sizes) if trained[row] < size] == long
