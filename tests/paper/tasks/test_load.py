"""From a name and options to parts, times and errors."""

from typing import Any

import numpy as np
import pytest
import torch

import skipstone
from skipstone.errors import InvalidInput
from skipstone.paper.tasks import TASKS, find_task, record, task_options
from skipstone.paper.tasks.balls import place_balls


def load(name: str = "billiards2d", **options: Any) -> Any:
    return skipstone.load_task(name, cache=False, **{"trajectories": 50, **options})


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_its_default_shapes(name: str) -> None:
    data = load(name, trajectories=20)
    dims = {"lines": 2, "circles": 2, "billiards1d": 2, "billiards2d": 4, "shots": 4}
    lengths = {"lines": 21, "circles": 25, "shots": 39}
    for part in ("train", "validation", "test"):
        sequences = getattr(data, part)
        assert sequences.dim == dims.get(name, 784)
        assert (sequences.lengths == lengths.get(name, 45)).all()
        assert sequences.control_dim == (2 if name == "shots" else 0)
        assert data.events[part].batch == len(sequences)
    assert data.train.values.dtype == (torch.uint8 if "pixels" in name else torch.float32)


def test_parts_are_ninety_to_ten_and_ten_percent_of_the_rest() -> None:
    data = load("lines", trajectories=10_000)
    assert (len(data.train), len(data.validation), len(data.test)) == (8100, 900, 1000)
    heights = [getattr(data, part).values[:, 0, 1] for part in ("train", "validation", "test")]
    assert len(torch.cat(heights).unique()) > 9990


def test_the_seed_decides_everything() -> None:
    one, same, other = load(), load(), load(seed=1)
    assert torch.equal(one.train.values, same.train.values)
    assert not torch.isclose(one.train.values, other.train.values).all(-1).any()
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(one.events[part].times, same.events[part].times)


def test_each_part_has_its_own_events() -> None:
    data = load("billiards1d")
    for part, events in data.events.items():
        sequences = getattr(data, part)
        for row in range(len(sequences)):
            # Between two observations without an event nothing accelerates.
            x, times = sequences.values[row].double(), sequences.times[row]
            turns = (x.diff(dim=0).diff(dim=0).abs() > 1e-4).any(-1)
            for left, right in zip(times[:-2][turns], times[2:][turns], strict=True):
                inside = (events[row].times >= float(left)) & (events[row].times <= float(right))
                assert inside.any()


@pytest.mark.parametrize("axes", ["1d", "2d"])
def test_pixels_show_the_same_trajectories(axes: int) -> None:
    coordinates, images = load(f"billiards{axes}"), load(f"pixels{axes}")
    np.testing.assert_array_equal(coordinates.events["test"].times, images.events["test"].times)
    frames = images.test.values.double().reshape(5, 45, 28, 28)
    weight = frames / frames.sum((-1, -2), keepdim=True)
    height = (weight.sum(-1) * (27.5 - torch.arange(28)) / 28).sum(-1)
    positions = coordinates.test.values.reshape(5, 45, 2, -1)
    assert (height - positions[..., -1].mean(-1)).abs().max() < 0.01
    if axes == "1d":
        assert torch.equal(frames, frames.flip(-1))


def test_jitter_moves_times_and_keeps_their_order() -> None:
    data = load(jitter=0.8)
    times = data.train.times
    regular = 0.05 * torch.arange(45)
    assert (times[:, 0] == 0).all()
    shift = (times - regular)[:, 1:].abs()
    assert 0.018 < shift.max() <= 0.02
    assert (times.diff(dim=1) > 0).all()
    # The same trajectories, seen at other times.
    assert torch.equal(data.train.values[:, 0], load().train.values[:, 0])


def test_events_end_with_the_last_observation() -> None:
    task = find_task("billiards2d")
    recording = record(task, task_options(task, trajectories=100, jitter=0.9))
    last = [recording.events[row].times.max() for row in range(100)]
    assert (last <= recording.times[:, -1]).all()
    # Not only because nothing happens: the batch was simulated until its latest observation.
    assert np.ptp(recording.times[:, -1]) > 0.03


def test_dropping_leaves_gaps_and_never_touches_the_context() -> None:
    whole, gappy = load(trajectories=200).train, load(trajectories=200, drop=0.4).train
    assert gappy.lengths.min() < gappy.lengths.max() < 45
    assert abs(gappy.lengths.double().mean() - (4 + 0.6 * 41)) < 1
    assert torch.equal(gappy.times[:, :4], whole.times[:, :4])
    for row in range(10):
        kept = torch.isin(whole.times[row], gappy.times[row])
        assert torch.equal(whole.values[row, kept], gappy.values[row, gappy.mask[row]])


@pytest.mark.parametrize(
    ("name", "balls", "radius", "dim"),
    [("billiards1d", 1, 0.1, 1), ("billiards1d", 5, 0.05, 5), ("billiards2d", 9, 0.1, 18)],
)
def test_any_number_of_balls(name: str, balls: int, radius: Any, dim: Any) -> None:
    data = load(name, balls=balls, radius=radius, observations=10, spacing=0.1)
    assert data.train.values.shape[1:] == (10, dim)
    assert data.options.spacing == 0.1


def test_balls_start_anywhere_with_room_in_any_order() -> None:
    """Two balls on a line: uniform over the two triangles of placements without overlap."""
    y = place_balls(np.random.default_rng(0), 20_000, 2, 1)[..., 0]
    assert abs((y[:, 0] < y[:, 1]).mean() - 0.5) < 0.02
    gap = np.abs(y[:, 0] - y[:, 1]) - 0.2
    # The free length 0.6 is cut at two uniform places, so the gap is 0.2 on average.
    assert gap.min() > 0
    assert abs(gap.mean() - 0.2) < 0.005
    assert 0.1 < y.min() < 0.101
    assert 0.899 < y.max() < 0.9
    x = place_balls(np.random.default_rng(0), 20_000, 2, 2)
    assert np.linalg.norm(x[:, 0] - x[:, 1], axis=-1).min() > 0.2
    np.testing.assert_allclose(x.mean(axis=0), 0.5, atol=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trajectories": 0}, "trajectories must be at least 1; got 0"),
        ({"trajectories": 2}, "each of train, validation and test"),
        ({"trajectories": 2.5}, "trajectories must be a whole number; got 2.5"),
        ({"observations": 4}, "observations must be at least 5"),
        ({"spacing": 0}, "spacing must be above 0; got 0"),
        ({"spacing": "wide"}, "spacing must be a number; got 'wide'"),
        ({"jitter": 1}, "jitter must be at least 0 and below 1; got 1"),
        ({"drop": float("nan")}, "drop must be"),
        ({"test": 1.0}, "test must be"),
        ({"balls": 0}, "balls must be"),
        ({"balls": 40}, "fewer or smaller"),
        ({"ball": 3}, "no option 'ball'. Did you mean balls"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load(**options)


def test_full_lines_of_balls_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"5 of radius 0\.1 do not"):
        load("billiards1d", balls=5)


def test_unknown_tasks_name_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no task 'billiard2d'\. Did you mean billiards2d"):
        load("billiard2d")
    with pytest.raises(InvalidInput, match="Use lines, circles"):
        load("chess")
