"""The planning experiment: exact where it can be, and from run folders to files."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from helpers import Said, run_cli
from skipstone import PCODE, RNN, InvalidInput
from skipstone.paper.figures.planning import draw_success
from skipstone.paper.jobs import Job, run_job
from skipstone.paper.pool import experiment
from skipstone.paper.pool.experiment import SIMULATOR, Experiment, Settings, best_of, run_experiment
from skipstone.paper.pool.results import find_runs, report_experiment, results_table
from skipstone.paper.pool.schemas import read_planning
from skipstone.planning import GradientDescent

SHAPE: dict[str, Any] = {"dim": 4, "control": 2, "hidden": 8, "time_unit": 0.05}
SMALL = Settings(tables=6, rollouts=100)


def models() -> dict[str, Any]:
    torch.manual_seed(0)
    return {"PC-ODE": [PCODE.from_config(SHAPE).eval()], "RNN": [RNN.from_config(SHAPE).eval()]}


@pytest.fixture(autouse=True, scope="module")
def small_experiments() -> Iterator[None]:
    """Few shots are timed, and few gradient steps taken, so that few rollouts are enough."""
    few_steps = functools.partial(GradientDescent, steps=3)
    with (
        mock.patch.object(experiment, "REPEATS", 2),
        mock.patch.object(experiment, "GradientDescent", few_steps),
    ):
        yield


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    return run_experiment(models(), SMALL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for model in ("rnn", "pcode"):
        job = Job(task="shots", model=model, preset="smoke", steps=2)
        run_job(job, root, device="cpu", progress=False)
    return root


def test_best_of_n_is_the_mean_over_all_choices_of_n() -> None:
    rng = np.random.default_rng(0)
    scores, won = rng.random((3, 7)), rng.random((3, 7)) < 0.4
    scores[0, 2] = np.nan
    for count in range(1, 8):
        expected = [
            np.mean(
                [
                    row_won[min(chosen, key=lambda i: (np.isnan(row[i]), row[i]))]
                    for chosen in itertools.combinations(range(7), count)
                ]
            )
            for row, row_won in zip(scores, won, strict=True)
        ]
        np.testing.assert_allclose(best_of(scores, won, [count])[:, 0], expected)


def test_one_rollout_is_a_random_shot_for_everyone(content: dict[str, Any]) -> None:
    curves = [r for r in content["results"] if r["planner"] == "random"]
    assert len(curves) == 5
    first = [curve["success"][0]["value"] for curve in curves]
    np.testing.assert_allclose(first, first[0])
    assert {curve["rollouts"][0] for curve in curves} == {1}
    assert {curve["rollouts"][-1] for curve in curves} == {100}


def test_nobody_beats_the_simulator(content: dict[str, Any]) -> None:
    best = next(r for r in content["results"] if r["contestant"] == SIMULATOR)
    values = [point["value"] for point in best["success"]]
    assert values == sorted(values)
    for result in content["results"]:
        for count, point in zip(result["rollouts"], result["success"], strict=True):
            if result["planner"] == "random":
                assert point["value"] <= values[best["rollouts"].index(count)] + 1e-12
            assert point["low"] <= point["value"] <= point["high"]


def test_costs_are_those_of_the_models(content: dict[str, Any]) -> None:
    costs = {(r["contestant"], r["planner"]): r["updates"] for r in content["results"]}
    assert costs["RNN", "random"] == costs["RNN", "cross-entropy"] == 35
    assert 1 < costs["PC-ODE", "random"] <= 35
    assert costs[SIMULATOR, "random"] == 0
    assert set(content["seconds_per_shot"]) == {SIMULATOR, "PC-ODE", "RNN"}
    assert all(wall["value"] > 0 for wall in content["seconds_per_shot"].values())
    # Gradient descent is for models, and says what it scored.
    searched = [r for r in content["results"] if r["planner"] == "gradient"]
    assert [r["contestant"] for r in searched] == ["PC-ODE", "RNN"]
    # Every planner gets as many rollouts, also where a candidate costs several.
    assert {tuple(r["rollouts"][-1:]) for r in content["results"]} == {(100,)}
    assert costs["RNN", "mirrored"] == 35


def test_several_seeds_have_their_mean_and_play_together(tmp_path: Path) -> None:
    for seed in (1, 0):
        job = Job(task="shots", model="pcode", preset="smoke", steps=1, seed=seed)
        run_job(job, tmp_path, device="cpu", progress=False)
    folders = sorted(tmp_path.iterdir())
    runs = find_runs(folders[::-1], ())
    assert {name: [run.config["seed"] for run in group] for name, group in runs.items()} == {
        "PC-ODE": [0, 1]
    }
    out = tmp_path / "out"
    report_experiment(runs, SMALL, out)
    found = read_planning(out / "planning.json")
    assert list(found["models"]) == ["PC-ODE", "2 PC-ODEs"]
    assert [found["models"][name]["together"] for name in found["models"]] == [False, True]

    def success(results: list[dict[str, Any]], name: str) -> list[float]:
        mine = [result for result in results if result["contestant"] == name]
        return [point["value"] for result in mine for point in result["success"]]

    alone = [
        success(run_experiment({"PC-ODE": [run.load()]}, SMALL)["results"], "PC-ODE")
        for run in runs["PC-ODE"]
    ]
    assert alone[0] != alone[1]
    np.testing.assert_allclose(success(found["results"], "PC-ODE"), np.mean(alone, axis=0))
    # An ensemble's updates are those of its members together.
    updates = {r["contestant"]: r["updates"] for r in found["results"] if r["planner"] == "random"}
    assert updates["2 PC-ODEs"] == pytest.approx(2 * updates["PC-ODE"])
    assert {tuple(result["rollouts"][-1:]) for result in found["results"]} == {(100,)}


def test_the_same_seed_gives_the_same_tables_and_results(content: dict[str, Any]) -> None:
    again = Experiment(models(), SMALL).curves(SIMULATOR)
    assert [point.value for point in again[0].success] == [
        point["value"] for point in content["results"][0]["success"]
    ]
    other = Experiment(models(), Settings(tables=6, rollouts=100, seed=1))
    assert not np.array_equal(other.tables, Experiment(models(), SMALL).tables)


def test_results_are_plain_and_can_be_drawn(content: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(content, allow_nan=False))
    assert results_table(plain).row_count == len(content["results"])
    axes = draw_success(plain).axes[0]
    assert len(axes.collections) == 3
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tables": 1}, "tables must be at least 2"),
        ({"rollouts": 0}, "rollouts must be at least 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Settings(**settings)


def test_runs_are_found_by_name_and_in_places(runs: Path, tmp_path: Path) -> None:
    found = find_runs([], (tmp_path, runs))
    assert list(found) == ["PC-ODE", "RNN"]
    [pcode] = [run.folder for run in found["PC-ODE"]]
    assert list(find_runs([pcode], ())) == ["PC-ODE"]
    assert list(find_runs([pcode, pcode], ())) == ["PC-ODE"]
    with pytest.raises(InvalidInput, match="there must be a finished run on shots"):
        find_runs([], (tmp_path,))


def plan(*arguments: str) -> Said:
    return run_cli("plan", *arguments)


def test_the_command_writes_results_and_pictures(runs: Path, tmp_path: Path) -> None:
    folders = sorted(str(path) for path in runs.iterdir())
    size = ["--tables", "3", "--rollouts", "50", "--out", str(tmp_path)]
    said = plan(*folders, *size)
    assert said.code == 0
    content = json.loads((tmp_path / "planning.json").read_text())
    assert {"commit", "machine", "models", "settings", "wall_seconds"} <= set(content)
    assert content["models"]["RNN"]["runs"][0].startswith("shots-rnn")
    assert (tmp_path / "planning.png").stat().st_size > 10_000
    assert "cross-entropy" in said.out
    assert f"wrote {tmp_path / 'planning.json'}" in said.out


def test_an_interrupted_experiment_goes_on_with_who_has_not_played(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = sorted(str(path) for path in runs.iterdir())
    size = ["--tables", "3", "--rollouts", "50", "--out", str(tmp_path)]
    played, search, stop = [], Experiment.searches, {"RNN"}

    def searches(self: Experiment, name: str) -> Any:
        played.append(name)
        if name in stop:
            stop.remove(name)
            raise KeyboardInterrupt
        return search(self, name)

    def results() -> dict[str, Any]:
        return json.loads((tmp_path / "planning.json").read_text())

    monkeypatch.setattr(Experiment, "searches", searches)
    stopped = plan(*folders, *size)
    assert stopped.code != 0
    assert "stopped; PC-ODE had finished" in stopped.err
    assert not (tmp_path / "planning.json").exists()
    # Another one in between does not disturb it.
    assert plan(folders[1], "--tables", "2", *size[2:]).code == 0
    played.clear()
    resumed = plan(*folders, *size)
    assert resumed.code == 0
    assert played == [SIMULATOR, "RNN"]
    assert "PC-ODE: taken over from" in resumed.err
    assert list(tmp_path.glob("planning-unfinished*")) == []
    # As if it had never been interrupted.
    first = results()
    assert plan(*folders, *size).code == 0
    assert played[2:] == [SIMULATOR, "PC-ODE", "RNN"]
    assert results()["results"] == first["results"]


def test_only_new_weights_play_if_told_so(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcode, rnn = (
        next(path for path in runs.iterdir() if name in path.name) for name in ("pcode", "rnn")
    )
    size = ["--tables", "3", "--rollouts", "50", "--out", str(tmp_path)]
    assert plan(str(pcode), str(rnn), *size).code == 0
    first = json.loads((tmp_path / "planning.json").read_text())
    first["models"]["RNN"]["weights_sha256"] = ["of other weights"]
    first["models"]["PC-ODE"]["commit"] = "c0ffee"
    (tmp_path / "planning.json").write_text(json.dumps(first))
    played, search = [], Experiment.searches
    monkeypatch.setattr(
        Experiment, "searches", lambda self, name: played.append(name) or search(self, name)
    )
    again = tmp_path / "again"
    shutil.copytree(pcode, again)
    arguments = [str(again), str(rnn), *size, "--only-new"]
    assert plan(*arguments).code == 0
    assert played == [SIMULATOR, "RNN"]
    second = json.loads((tmp_path / "planning.json").read_text())
    assert second["results"] == first["results"]
    assert second["models"]["PC-ODE"]["commit"] == "c0ffee"
    assert second["models"]["RNN"]["commit"] != "c0ffee"


def test_show_draws_and_animates_one_shot(runs: Path, tmp_path: Path) -> None:
    import imageio.v3 as iio

    size = ["--rollouts", "60", "--out", str(tmp_path), "--show"]
    pcode = next(str(path) for path in runs.iterdir() if "pcode" in path.name)
    said = plan(pcode, *size)
    assert said.code == 0
    assert iio.imread(tmp_path / "shot.png").std() > 10
    frames = iio.imread(tmp_path / "shot.gif")
    assert len(frames) >= 36
    assert (frames[0] != frames[30]).any()
    assert "PC-ODE imagined that the target comes within" in said.out
    refused = plan(pcode, *size, "--seed", "-1")
    assert refused.code == 2
    assert "seed" in refused.err


def test_runs_of_one_name_are_told_apart(runs: Path, tmp_path: Path) -> None:
    pcode = next(path for path in runs.iterdir() if "pcode" in path.name)
    again = tmp_path / pcode.name
    shutil.copytree(pcode, again)
    assert list(find_runs([pcode, again], [])) == [str(pcode), str(again)]


def test_a_run_on_something_else_is_an_error_of_one_line(tmp_path: Path) -> None:
    circles = Path(__file__).parents[3] / "weights" / "circles-pcode-cpu-seed0"
    refused = plan(str(circles), "--out", str(tmp_path))
    assert refused.code == 2
    said = refused.err.splitlines()
    assert len(said) == 1
    assert "must have been trained on shots" in said[0]
    assert "was trained on circles" in said[0]
