from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import random_batch
from skipstone import InvalidInput, Sequences


def test_from_array_is_regular() -> None:
    batch = Sequences.from_array(np.zeros((2, 3, 1)), spacing=0.5, start=10.0)
    assert batch.times.tolist() == [[10.0, 10.5, 11.0]] * 2
    assert batch.values.dtype == torch.float32
    assert batch.mask.all()
    assert batch.typical_spacing == 0.5


def test_from_lists_pads_with_zeros_and_holds_the_last_time() -> None:
    batch = Sequences.from_lists([[[1.0], [2.0]], [[3.0]]], [[0.0, 0.1], [5.0]])
    assert batch.values.tolist() == [[[1.0], [2.0]], [[3.0], [0.0]]]
    assert batch.times.tolist() == [[0.0, 0.1], [5.0, 5.0]]
    assert batch.mask.tolist() == [[True, True], [True, False]]
    assert batch.lengths.tolist() == [2, 1]
    assert batch.ends.tolist() == [0.1, 5.0]


def test_from_lists_without_times_counts_observations() -> None:
    batch = Sequences.from_lists([np.ones((3, 2)), np.ones((2, 2))])
    assert batch.times.tolist() == [[0, 1, 2], [0, 1, 1]]


def test_times_keep_milliseconds_of_time_stamps() -> None:
    batch = Sequences.from_lists(
        [torch.zeros(2, 1)], [np.array([1_763_000_000.001, 1_763_000_000.002])]
    )
    assert batch.typical_spacing == pytest.approx(0.001, rel=1e-3)


def test_what_was_in_the_padding_is_gone() -> None:
    values = torch.full((1, 3, 1), float("nan"))
    values[0, 0] = 1
    mask = torch.tensor([[True, False, False]])
    batch = Sequences(torch.tensor([[2.0, float("inf"), 0.0]]), values, mask=mask)
    assert batch.values.flatten().tolist() == [1, 0, 0]
    assert batch.times.flatten().tolist() == [2, 2, 2]


def test_images_become_floats_between_zero_and_one() -> None:
    batch = Sequences.from_array(np.array([[[0, 51, 255]]], dtype=np.uint8))
    assert batch.values.dtype == torch.uint8
    converted = batch.to(dtype=torch.float32)
    assert converted.values.flatten().tolist() == pytest.approx([0, 0.2, 1])
    assert batch[0].values.dtype == torch.uint8


def test_to_changes_values_and_controls_but_not_the_precision_of_times() -> None:
    batch = random_batch(0, [3], control=1).to("cpu", torch.float32)
    assert batch.values.dtype == torch.float32
    assert batch.controls is not None
    assert batch.controls.dtype == torch.float32
    assert batch.times.dtype == torch.float64


@pytest.mark.parametrize(
    "index",
    [1, np.int64(1), -2, slice(1, 2), [1], np.array([1]), torch.tensor([False, True, False])],
)
def test_indexing_gives_a_batch_without_needless_padding(index: object) -> None:
    batch = random_batch(0, [9, 4, 6], control=2)
    picked = batch[index]  # pyright: ignore[reportArgumentType]
    assert len(picked) == 1
    assert picked.values.shape == (1, 4, 2)
    assert torch.equal(picked.values[0], batch.values[1, :4])
    assert picked.controls is not None
    assert picked.controls.shape == (1, 4, 2)


def test_iteration_ends() -> None:
    assert [len(one) for one in random_batch(0, [3, 4])] == [1, 1]


@given(st.integers(0, 100), st.integers(10, 40))
def test_split_is_disjoint_and_complete(seed: int, rows: int) -> None:
    values = torch.arange(float(rows)).reshape(rows, 1, 1)
    parts = Sequences.from_array(values).split([0.8, 0.1, 0.1], seed=seed)
    found = torch.cat([part.values.flatten() for part in parts])
    assert sorted(found.tolist()) == list(range(rows))
    assert len(parts[0]) == round(0.8 * rows)


def test_split_without_seed_keeps_order_and_with_seed_repeats() -> None:
    batch = Sequences.from_array(torch.arange(10.0).reshape(10, 1, 1))
    assert batch.split([0.5, 0.5])[0].values.flatten().tolist() == [0, 1, 2, 3, 4]
    first, again = (batch.split([0.5, 0.5], seed=3)[0].values for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first.flatten(), torch.arange(5.0))


def test_head_and_tail() -> None:
    batch = Sequences.from_lists(
        [[[0.0], [1.0], [2.0]], [[3.0], [4.0]]], controls=[np.ones((3, 1)), np.ones((2, 1))]
    )
    assert batch.head(2).values.flatten(1).tolist() == [[0, 1], [3, 4]]
    assert batch.tail(2).values.flatten(1).tolist() == [[1, 2], [3, 4]]
    assert batch.tail(2).times.tolist() == [[1, 2], [0, 1]]
    assert batch.tail(2).mask.all()


def test_concat_makes_a_batch_of_mixed_lengths() -> None:
    short, long = random_batch(0, [3, 2], control=1), random_batch(1, [5], control=1)
    both = Sequences.concat([short, long])
    assert both.lengths.tolist() == [3, 2, 5]
    assert torch.equal(both[0].values, short[0].values)
    assert torch.equal(both[2].times, long.times)
    # Padding keeps its meaning: times hold, so nothing decreases.
    assert (both.times.diff(dim=1) >= 0).all()


@given(st.integers(0, 1000), st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_select_keeps_exactly_what_was_asked_for(seed: int, sizes: list[int]) -> None:
    batch = random_batch(seed, sizes, control=1)
    keep = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    keep[:, 0] = True
    kept = batch.select(keep)
    for row in range(len(batch)):
        wanted = keep[row] & batch.mask[row]
        assert torch.equal(kept.times[row][kept.mask[row]], batch.times[row][wanted])
        assert torch.equal(kept.values[row][kept.mask[row]], batch.values[row][wanted])


def test_repr_names_what_matters() -> None:
    assert repr(random_batch(0, [3, 5], control=1)) == (
        "Sequences(batch=2, observations=3 to 5, dim=2, control=1, dtype=torch.float64, device=cpu)"
    )


FLOATS = np.linspace(-1, 1, 12).reshape(2, 6, 1)


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "values",
    [
        FLOATS,
        FLOATS.tolist(),
        read_only(FLOATS),
        FLOATS.astype(">f8"),
        FLOATS[::-1, ::-1][::-1, ::-1],
        FLOATS.astype(np.longdouble),
        np.asfortranarray(FLOATS),
        np.broadcast_to(FLOATS, FLOATS.shape),
    ],
    ids=["plain", "list", "read-only", "big-endian", "reversed", "wide", "fortran", "broadcast"],
)
def test_arrays_of_any_layout_are_the_same_values(values: object) -> None:
    """Warnings are errors in tests, so torch has nothing to complain about either."""
    times = np.arange(12.0).reshape(2, 6)
    plain = Sequences(times, FLOATS, FLOATS)
    for clock in (times, read_only(times), times.astype(">f4"), times.astype(np.longdouble)):
        batch = Sequences(clock, values, values, mask=read_only(np.ones((2, 6), bool)))
        for name in ("times", "values", "controls"):
            assert torch.equal(getattr(batch, name), getattr(plain, name))
    assert torch.equal(Sequences.from_lists(values, times).values, plain.values)  # pyright: ignore


def test_a_reversed_view_is_read_in_its_own_order() -> None:
    assert Sequences.from_array(FLOATS[:, ::-1]).values[0, 0] == pytest.approx(FLOATS[0, -1])


@pytest.mark.parametrize("dtype", ["i1", "i2", ">i4", "i8", "u2", "u4"])
def test_integers_become_floating_point(dtype: str) -> None:
    counts = np.arange(6).reshape(1, 6, 1).astype(dtype)
    batch = Sequences.from_array(read_only(counts), controls=counts)
    assert batch.controls is not None
    assert batch.values.dtype == batch.controls.dtype == torch.float32
    assert batch.values.flatten().tolist() == batch.controls.flatten().tolist() == [*range(6)]
    assert Sequences.from_array(torch.arange(6).reshape(1, 6, 1)).values.dtype == torch.float32
    assert Sequences.from_lists([[[1], [2]]]).values.flatten().tolist() == [1, 2]
    wide = Sequences(np.arange(6)[None], counts, dtype=torch.float64)
    assert wide.values.dtype == torch.float64


def test_bytes_are_images_as_values_and_numbers_as_controls() -> None:
    bright = np.full((1, 2, 1), 255, dtype=np.uint8)
    for batch in (
        Sequences.from_array(read_only(bright), controls=bright),
        Sequences.from_lists(bright, controls=bright),
    ):
        assert batch.values.dtype == torch.uint8
        assert batch.controls is not None
        assert batch.controls.flatten().tolist() == [255.0, 255.0]
        assert batch.to(dtype=torch.float32).values.flatten().tolist() == [1.0, 1.0]


START = 1_700_000_000_000_000_001
MICRO = START + 1000 * np.arange(6).reshape(2, 3)


def test_what_a_mask_hides_is_missing() -> None:
    hidden = np.ma.array(np.arange(12.0).reshape(2, 3, 2), mask=False)
    hidden[1, 1, 0] = np.ma.masked
    for values in (hidden, list(hidden)):
        found = Sequences.from_array(values).values
        assert found.isnan().nonzero().tolist() == [[1, 1, 0]]


def test_integers_of_any_type_are_the_same_times() -> None:
    start, values = 1_700_000_000_000_000_000, np.zeros((1, 3, 1))
    usual = Sequences(start + np.arange(3)[None], values)
    for dtype in (object, np.ulonglong, np.longlong):
        found = Sequences((start + np.arange(3)[None]).astype(dtype), values)
        assert torch.equal(found.times, usual.times), dtype
        assert found.clock.origins.tolist() == [start]  # pyright: ignore
    counts = Sequences.from_array(np.arange(3).astype(np.ulonglong)[None, :, None])
    assert counts.values.flatten().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("times", "per_unit"),
    [
        (MICRO, 1.0),
        (torch.as_tensor(MICRO), 1.0),
        (MICRO.tolist(), 1.0),
        (MICRO.astype("uint64"), 1.0),
        (MICRO.astype(">i8"), 1.0),
        (MICRO.astype("datetime64[ns]"), 1e9),
        (MICRO.astype("timedelta64[ns]"), 1e9),
        (MICRO.astype("datetime64[ns]").astype("datetime64[us]").astype(object), 1e9),
    ],
    ids=["int64", "tensor", "list", "uint64", "big-endian", "datetime64", "timedelta64", "objects"],
)
def test_microseconds_since_1970_survive(times: Any, per_unit: float) -> None:
    """A float64 has steps of 256 there: the start is subtracted before anything becomes one."""
    values = np.zeros((2, 3, 1))
    expected = [[0.0, 1000 / per_unit, 2000 / per_unit]] * 2
    for batch in (Sequences(times, values), Sequences.from_lists(list(values), list(times))):
        assert batch.times.tolist() == expected
        assert batch.typical_spacing == 1000 / per_unit
        ns = MICRO if not isinstance(times, np.ndarray) or times.dtype != object else MICRO - 1
        back = batch.clock.stamps(batch.times[1].numpy(), np.array([1, 1, 1]))
        if batch.clock.tick == "us":
            back = back.astype("datetime64[ns]")
        assert back.astype(np.int64).tolist() == ns[1].tolist()
    assert batch.tail(2).clock.origins is not None


def test_whole_starts_and_spacings_stay_whole() -> None:
    batch = Sequences.from_array(np.zeros((1, 3, 1)), spacing=1000, start=START)
    assert batch.times.tolist() == [[0, 1000, 2000]]
    assert batch.clock.origins is not None
    assert batch.clock.origins.tolist() == [START]


def test_small_integers_are_times_as_they_are() -> None:
    batch = Sequences(np.array([[3, 5]]), np.zeros((1, 2, 1)))
    assert batch.times.tolist() == [[3, 5]]
    assert batch.clock.origins is None


def test_whole_numbers_are_exact_in_single_precision() -> None:
    times = torch.arange(1e6, 1e6 + 3)[None]
    assert Sequences(times, np.zeros((1, 3, 1))).times.tolist() == [[1e6, 1e6 + 1, 1e6 + 2]]


def test_what_lies_in_the_padding_of_stamps_does_not_matter() -> None:
    times = np.array([[START, START + 5, -(2**63)]])
    batch = Sequences(times, np.zeros((1, 3, 1)), mask=[[True, True, False]])
    assert batch.times.tolist() == [[0, 5, 5]]


def test_times_of_one_batch_are_of_one_kind() -> None:
    times = [MICRO[0], np.array([0.0, 1.0, 2.0])]
    with pytest.raises(InvalidInput, match="times must be of one kind in all sequences"):
        Sequences.from_lists(np.zeros((2, 3, 1)), times)  # pyright: ignore
