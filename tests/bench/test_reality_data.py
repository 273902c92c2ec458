"""Real data: poses, distances and splits are exact, and no part sees another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.reality import cube, logs, problems
from benchmarks.reality.problem import MissingData, Parts, by_columns
from skipstone import Sequences
from tosses import simulated_tosses

TOSSES = simulated_tosses(10, frames=70)


def about_axis(degrees: float) -> np.ndarray:
    """A rotation about x as a quaternion."""
    half = np.radians(degrees) / 2
    return np.array([[np.cos(half), np.sin(half), 0.0, 0.0]])


def test_a_simulated_toss_falls_and_comes_to_rest_on_the_table() -> None:
    lowest = cube.tosses_of(TOSSES).values[..., 2::3].amin(2)
    assert float(lowest.min()) > -0.3
    last = TOSSES.groupby("toss").tail(1)
    assert (last.z < 1.8).all()
    early = TOSSES[TOSSES.toss == 0].z.to_numpy()[:5]
    expected = -(9.81 / 0.0524) / 148**2
    assert np.diff(early, 2) == pytest.approx(np.full(3, expected), rel=1e-6)


def test_corners_and_pose_are_the_same_thing() -> None:
    rng = np.random.default_rng(0)
    position, rotation = rng.normal(size=(20, 3)), cube.rotations_of(rng.normal(size=(20, 4)))
    again = cube.pose_of(cube.corners_of(position, rotation))
    assert np.allclose(again[0], position)
    assert np.allclose(again[1], rotation)
    assert np.allclose(np.linalg.det(again[1]), 1)


def test_errors_of_a_pose_are_in_millimetres_and_degrees() -> None:
    here = np.zeros((1, 3))
    still, turned = (
        cube.corners_of(here + shift, cube.rotations_of(about_axis(degrees)))
        for shift, degrees in ((0, 0), ([3.0, 0, 4.0], 30))
    )
    assert cube.position_error(turned, still) == pytest.approx([5 * 52.4])
    assert cube.rotation_error(turned, still) == pytest.approx([30])
    # A cube that is predicted too large is where it is.
    assert cube.rotation_error(2 * still, still) == pytest.approx([0], abs=1e-5)


def test_a_cube_has_24_symmetries_that_are_rotations() -> None:
    symmetries = cube.cube_symmetries()
    assert len({tuple(each) for each in symmetries.tolist()}) == 24
    for order in symmetries:
        rotation = cube.pose_of(cube.CORNERS[order].reshape(1, -1))[1]
        assert np.allclose(rotation[0] @ cube.CORNERS.T, cube.CORNERS[order].T)


def test_a_turned_toss_is_the_same_toss() -> None:
    tosses = cube.tosses_of(TOSSES)
    turned = cube.turn_tosses(tosses, seed=1)
    for part in (tosses, turned):
        assert part.times.equal(tosses.times)
    before, after = (cube.pose_of(part.values[3].double().numpy())[0] for part in (tosses, turned))
    assert np.allclose(before[:, 2], after[:, 2], atol=1e-5)
    ways = [np.linalg.norm(np.diff(each[:, :2], axis=0), axis=1) for each in (before, after)]
    assert np.allclose(*ways, atol=1e-5)
    assert not np.allclose(before[:, :2], after[:, :2], atol=0.1)


def test_tosses_are_split_by_toss() -> None:
    parts = cube.split_tosses(TOSSES, copies=3)
    train, validation, test = (set(part.ids) for part in parts if part.ids is not None)
    assert len(parts.train) == 3 * len(train)
    assert not train & validation | train & test | validation & test
    assert train | validation | test == set(range(10))


def test_a_table_that_is_not_here_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="DAIRLab/contact-nets"):
        cube.load_cube(tmp_path / "none.parquet")


def test_distances_on_the_earth() -> None:
    equator, pole = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 90.0], [90.0, 17.0]])
    quarter = logs.EARTH * np.pi / 2
    assert logs.great_circle(equator, pole) == pytest.approx([quarter, quarter])
    assert by_columns(1, 2, scale=2.0)(np.array([[9.0, 3, 4]]), np.zeros((1, 3))) == [10]


def test_forecasts_look_so_far_ahead_and_no_further() -> None:
    times = [np.array([0.0, 6, 12, 18, 21, 24, 30, 36, 42, 48, 54, 60])]
    log = Sequences.from_lists([np.arange(12.0)[:, None]], times)
    found = logs.forecasts_of(log, 4, 24.0, max_gap=12.5, stride=1)
    ahead = found.ends - found.times[:, 3]
    assert ahead.tolist() == [24, 21, 24]
    assert found.lengths.tolist() == [9, 8, 8]


def test_readings_are_cut_at_gaps_and_split_by_time() -> None:
    minutes = np.concatenate([np.arange(0, 5000, 5), np.arange(5100, 10000, 5)])
    stamps = pd.to_datetime("2010-03-24") + pd.to_timedelta(minutes, unit="m")
    frame = pd.DataFrame({"glucose": np.arange(len(minutes)), "isig": "nil"}, index=stamps)
    parts = logs.split_readings(frame)
    assert len(parts.train) == 2
    last = [float(part.times.max()) for part in parts]
    first = [float(part.times[:, 0].min()) for part in parts]
    assert last[0] < first[1] < last[1] < first[2]
    assert float(parts.train.times.diff(dim=1).max()) <= logs.GLUCOSE_GAP
    ahead = parts.test.ends - parts.test.times[:, logs.GLUCOSE_CONTEXT - 1]
    assert float(ahead.min()) == float(ahead.max()) == logs.GLUCOSE_AHEAD


def test_slow_data_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def load(file: Path | None) -> Parts:
        made.append(file)
        lists = [np.ones((n, 2), np.float32) * n for n in (5, 7)]
        return Parts(*(Sequences.from_lists(lists, None, lists) for _ in range(3)))

    problem = problems.Problem(name="slow", title="", about="", load=load, num_context=2)
    monkeypatch.setattr(problems, "CACHED", ("slow",))
    one, other = (problems.load_parts(problem, None, tmp_path) for _ in range(2))
    assert made == [None]
    for before, after in zip(one, other, strict=True):
        for kind in ("times", "values", "controls", "mask"):
            assert getattr(before, kind).equal(getattr(after, kind))


@pytest.mark.slow
@pytest.mark.parametrize("env_name", ["Hopper-v5", "Walker2d-v5"])
def test_walkers_fall(env_name: str) -> None:
    pytest.importorskip("mujoco")
    from benchmarks.reality.simulators import load_walker

    parts = load_walker(env_name, hold=0, counts=(4, 2, 2), length=60)
    assert parts.train.controls is None
    height = parts.train.values[..., 0]
    assert bool((height[:, -1] < height[:, 0]).all())
    assert not np.allclose(parts.train.values[:2], parts.test.values)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pool_balls_stay_on_the_table() -> None:
    pytest.importorskip("pooltool")
    from benchmarks.reality.simulators import SHOT_LENGTH, load_pool

    parts = load_pool(counts=(3, 1, 1))
    assert parts.train.values.shape == (4 * 3, SHOT_LENGTH, 4)
    assert parts.test.values.shape == (1, SHOT_LENGTH, 4)
    # Along, across and both ways: what turns them over keeps every distance between the balls.
    shot, along, across, both = parts.train.values[0::3]
    assert bool((across[:, 1::2] == shot[:, 1::2]).all())
    assert bool((along[:, 0::2] == shot[:, 0::2]).all())
    assert not bool((both == shot).any())
    for other in (across, along, both):
        apart, before = (each[:, :2] - each[:, 2:] for each in (other, shot))
        assert bool((apart.norm(dim=1) - before.norm(dim=1)).abs().max() < 1e-6)
    assert float(parts.train.values.min()) > 0
    assert float(parts.train.values[..., 1::2].max()) < 1.99
    # The cue ball moves at once, and friction slows it down.
    way = parts.train.values[..., :2].diff(dim=1).norm(dim=2)
    assert bool((way[:, 0] > way[:, -1]).all())
