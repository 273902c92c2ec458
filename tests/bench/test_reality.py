"""Trials, tables and figures on real data: resumable, and made from what was recorded."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.reality import figures, problems, report, run, times, trial
from benchmarks.reality.peers import IN_TORCH, NAIVE, PEERS, build, peers_of, typical_changes
from benchmarks.reality.problem import Parts, Problem, by_columns
from benchmarks.report import read_json
from skipstone import PCODE, Sequences, load
from skipstone.records import json_text, write_json
from skipstone.training.objective import Objective
from tosses import simulated_tosses

SPACING = 0.5


def straight(count: int, seed: int) -> Sequences:
    """Points that move on straight lines."""
    generator = torch.Generator().manual_seed(seed)
    start, speed = torch.randn(2, count, 1, 2, generator=generator)
    return Sequences.from_array(start + speed * torch.arange(12)[:, None], spacing=SPACING)


LINES = Problem(
    name="lines",
    title="straight lines",
    about="Points that move on straight lines.",
    load=lambda file: Parts(straight(20, 0), straight(6, 1), straight(6, 2)),
    num_context=3,
    horizon=5,
    hidden=4,
    batch_size=4,
    steps=4,
    seconds=1e-3,
    target_step=2.0,
    max_step=9.0,
    distances={"way": by_columns(0, 1)},
)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Problem:
    monkeypatch.setitem(problems.PROBLEMS, "lines", LINES)
    return LINES


def test_naive_forecasts_have_the_errors_that_they_must_have(lines: Problem) -> None:
    parts = lines.load(None)
    found = trial.measure(trial.Trial("lines", NAIVE, 0, "steps"), parts, Path("unused"))
    still, moving = found["forecasts"]
    assert (still["name"], moving["name"]) == ("persistence", "constant velocity")
    assert moving["error"] == pytest.approx(0, abs=1e-5)
    way = parts.test.values[:, 3:] - parts.test.values[:, 2:3]
    assert still["own"]["way"] == pytest.approx(float(way.norm(dim=2).mean()), rel=1e-5)
    scaled = way.double().numpy() / trial.spread_of(parts.train)
    assert still["error"] == pytest.approx(float(np.sqrt((scaled**2).mean())), rel=1e-5)
    assert still["elapsed"][-1] == 9 * SPACING
    assert np.all(np.diff(still["by_elapsed"]) > 0)


def test_a_forecast_that_is_not_finite_is_no_good_one(lines: Problem) -> None:
    test = lines.load(None).test

    def broken(batch: Sequences) -> torch.Tensor:
        predicted = batch.values[:, 3:].clone()
        predicted[0, 0] = torch.nan
        return predicted

    found = trial.errors_of(broken, test, lines, np.ones(2))
    assert (found["error"], found["own"], found["elapsed"]) == (None, {"way": None}, [])
    # It can be written down, and is the last in its table.
    one = recorded("glucose", "GRU-D", 1.0, 25.0)
    one["forecasts"][0] |= {"error": None, "own": {"glucose, mg/dl": None}}
    assert json_text(one, "trial")
    rows = report.rows_of([one, *TRIALS], {}, "steps")["glucose"]
    assert (rows[-1].name, rows[-1].error) == ("GRU-D", np.inf)
    assert len(figures.draw_problem("glucose", [one]).axes[1].lines) == 0


@pytest.mark.filterwarnings("ignore")
def test_a_finished_trial_is_kept_and_a_changed_one_is_done_again(
    lines: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trial.Trial("lines", "timeaware", 0, "steps")
    content = trial.run_trial(one, tmp_path, tmp_path / "runs", None)
    assert [each["name"] for each in content["forecasts"]] == [
        "time-aware GRU",
        "time-aware GRU, steps of 2",
        "time-aware GRU, steps of 4",
        "time-aware GRU, steps of 8",
    ]
    assert [each["updates"] for each in content["forecasts"]] == [9, 5, 3, 2]
    assert content["steps"] == 4
    assert trial.is_done(one, tmp_path)
    assert trial.run_trial(one, tmp_path, tmp_path / "nowhere", None) == content
    monkeypatch.setitem(problems.PROBLEMS, "lines", replace(lines, steps=5))
    assert not trial.is_done(one, tmp_path)
    assert trial.run_trial(one, tmp_path, tmp_path / "runs", None)["steps"] == 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", ["pcode", "event"])
def test_a_model_whose_time_depends_on_its_weights_is_recorded(
    peer: str, lines: Problem, tmp_path: Path
) -> None:
    one = trial.Trial("lines", peer, 0, "steps")
    trial.run_trial(one, tmp_path, tmp_path / "runs", None)
    trained = load(tmp_path / "runs" / one.name / "training")
    shutil.rmtree(tmp_path / "runs")
    assert trial.is_done(one, tmp_path)
    train = lines.load(None).train
    (kept, step), *_ = times.contenders([one], train, tmp_path).values()
    assert step is None
    for weight, other in zip(kept.parameters(), trained.parameters(), strict=True):
        assert weight.equal(other)
    shutil.rmtree(one.model_folder(tmp_path))
    assert not trial.is_done(one, tmp_path)


def test_a_budget_of_seconds_is_measured_on_a_copy(lines: Problem) -> None:
    """Its steps grow to those that it is asked for, which changes how long a training step takes;
    the model that is trained afterwards has seen nothing of it."""
    parts = lines.load(None)
    model, same = (build(lines, "pcode", parts.train) for _ in range(2))
    same.load_state_dict(model.state_dict())
    assert trial.allowed_steps(trial.Trial("lines", "pcode", 0, "seconds"), model, parts) >= 1
    for name, value in model.state_dict().items():
        assert value.equal(same.state_dict()[name])
    objective = Objective(parts.train, trial.recipe_of(lines, 8), 0, 8)
    assert trial.step_seconds(same, objective, 0.0) > 0
    assert not same.get_buffer("found_tolerance").equal(model.get_buffer("found_tolerance"))


@pytest.mark.filterwarnings("ignore")
def test_a_stopped_trial_goes_on(
    lines: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of a budget of seconds are decided once, and the checkpoint is used."""
    one = trial.Trial("lines", "rnn", 0, "seconds")
    parts = lines.load(None)

    def stop(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trial, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            trial.train(one, parts, tmp_path)
    planned = read_json(tmp_path / "plan.json")
    assert planned["steps"] >= trial.FEWEST_STEPS
    write_json(tmp_path / "plan.json", {**planned, "steps": 3})
    model, steps, _ = trial.train(one, parts, tmp_path)
    assert steps == 3
    again, _, _ = trial.train(one, parts, tmp_path)
    for weight, other in zip(model.parameters(), again.parameters(), strict=True):
        assert weight.equal(other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", [name for name in PEERS if name != "timeaware"])
def test_every_peer_is_trained_and_measured(peer: str, lines: Problem, tmp_path: Path) -> None:
    found = trial.measure(trial.Trial("lines", peer, 0, "steps"), lines.load(None), tmp_path)
    (forecast,) = found["forecasts"]
    assert forecast["name"] == PEERS[peer].title
    assert np.isfinite(forecast["error"])
    assert (forecast["updates"] == 9) == (peer not in ("pcode", "event"))
    assert (forecast["evaluations"] > 0) == (peer == "odernn")


def test_the_plan_has_everybody_with_the_first_seed_first() -> None:
    trials = run.plan(["cube", "billiards1d"], seeds=3)
    assert [each.seed for each in trials] == sorted(each.seed for each in trials)
    names = [each.name for each in trials]
    assert len(set(names)) == len(names)
    assert sum(each.data == "cube" and each.peer == "pcode" for each in trials) == 4
    assert sum(each.peer == NAIVE for each in trials) == 2
    assert {each.data for each in trials if each.peer == "event"} == {"billiards1d"}
    assert set(peers_of(problems.PROBLEMS["cube"])) == {NAIVE, *PEERS} - {"event"}


def test_everything_takes_about_eight_hours(tmp_path: Path) -> None:
    """The hours that the page and the Makefile state."""
    assert run.remaining_hours(run.plan(), tmp_path) == pytest.approx(8, abs=1)


def test_hours_follow_the_pace_of_what_is_done(lines: Problem, tmp_path: Path) -> None:
    done, left = trial.Trial("lines", "rnn", 0, "steps"), trial.Trial("lines", "rnn", 1, "steps")
    before = run.remaining_hours([left], tmp_path)
    # It was stopped in between: `seconds` are those of its last process.
    slow = {"settings": done.settings(), "seconds": 1.0}
    slow["training_seconds"] = 3 * run.expected_seconds(done)
    write_json(tmp_path / "trials" / f"{done.name}.json", slow)
    assert run.remaining_hours([done, left], tmp_path) == pytest.approx(3 * before)
    assert run.remaining_hours([done], tmp_path) == 0


def test_features_can_be_scaled_by_their_changes(lines: Problem) -> None:
    train = lines.load(None).train
    speed = train.values[:, 1] - train.values[:, 0]
    expected = 5 * speed.double().square().mean(0).sqrt()
    assert typical_changes(train, 5) == pytest.approx(expected.tolist(), rel=1e-5)
    model = build(replace(lines, scale_changes=True), "pcode", train)
    assert model.config.scale == typical_changes(train, 5)


def recorded(data: str, peer: str, error: float, updates: float, **more: Any) -> dict[str, Any]:
    unit = next(iter(problems.PROBLEMS[data].distances))
    forecast = {"name": peer, "error": 1.0, "own": {unit: error}, "updates": updates}
    forecast |= {"elapsed": [1.0, 2.0], "by_elapsed": [error, 2 * error]}
    about = {"data": data, "budget": "steps", "steps": 100, "training_seconds": 9.0, **more}
    return {**about, "forecasts": [forecast]}


TRIALS = [
    recorded("glucose", "PC-ODE", 10.0, 4.0),
    recorded("glucose", "PC-ODE", 12.0, 6.0),
    recorded("glucose", "RNN", 22.0, 25.0),
    recorded("glucose", "CfC", 33.0, 25.0),
    recorded("glucose", "persistence", 44.0, 0.0, steps=0),
    recorded("pool", "PC-ODE", 3.0, 10.0),
    recorded("pool", "RNN", 2.0, 50.0),
]


def test_the_table_is_what_was_recorded() -> None:
    measured = {"PC-ODE": 1.0, IN_TORCH: 2.0, "RNN": 3.0}
    tables = report.rows_of(TRIALS, {"glucose": measured}, "steps")
    assert [row.name for row in tables["glucose"]] == ["PC-ODE", "RNN", "CfC", "persistence"]
    table = report.table_markdown(tables).splitlines()
    assert "| **PC-ODE** | 11 (10 to 12) | 5 | 1 (2 in PyTorch) | 100 |" in table[4]
    assert table[7] == "|  | persistence | 44 |  |  |  |"
    worse, better = report.compare(tables)
    assert (better.best, better.error, better.fewer, better.faster) == ("RNN", 0.5, 5, 3)
    assert better.reached
    assert not worse.reached
    verdict = report.verdict_markdown(tables)
    assert verdict.index("Use it") < verdict.index("glucose") < verdict.index("Take the peer")
    assert verdict.index("Take the peer") < verdict.index("pool")
    summary = report.summary_markdown(tables).splitlines()
    assert summary[0].startswith("| data | PC-ODE | RNN | ODE-RNN | CfC |")
    assert "| **11** / 5 / 1 | 22 / 25 / 3 |  | 33 / 25 / – |" in summary[3]
    assert summary[3].endswith("| 44 |")


def test_a_naive_forecast_that_is_best_is_the_advice() -> None:
    still = recorded("pool", "persistence", 1.0, 0.0, steps=0)
    verdict = report.verdict_markdown(report.rows_of([*TRIALS, still], {}, "steps"))
    assert verdict.count("pool") == 1
    assert "**Take a naive forecast**" in verdict.partition("pool")[0]


def test_nobody_is_faster_before_it_is_measured() -> None:
    (_, better) = report.compare(report.rows_of(TRIALS, {}, "steps"))
    assert (better.error, better.fewer, better.faster) == (0.5, 5, None)
    assert not better.reached


def test_the_page_says_what_is_recorded_and_what_is_not() -> None:
    text = report.recorded_markdown(report.rows_of(TRIALS, {}, "steps"))
    twice, once, missing = text.split(". ")
    assert (twice, once) == ("Recorded with 2 seeds: glucose", "Recorded with 1 seed: pool")
    assert "cube tosses" in missing
    assert "of pool ODE-RNN, CfC, GRU-D" in missing
    assert "of glucose ODE-RNN, GRU-D" in missing


def test_nothing_is_said_of_what_nobody_measured(tmp_path: Path) -> None:
    parts = report.generated(tmp_path)
    assert {parts[name] for name in ("summary", "steps", "seconds", "verdict")} == {report.NOT_YET}


def test_the_page_shows_what_is_recorded() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert report.filled_in(page, report.generated(report.RESULTS)) == page
    with pytest.raises(ValueError, match="the page must have"):
        report.filled_in("no marks", {"steps": ""})


def test_a_figure_is_drawn_of_each_data_set(tmp_path: Path) -> None:
    figure = figures.draw_problem("glucose", [each for each in TRIALS if each["data"] == "glucose"])
    left, right = figure.axes
    assert len(left.collections) == 3
    assert len(right.lines) == 4
    assert figures.colour_of("time-aware GRU, steps of 4") == figures.colour_of("time-aware GRU")


def test_the_video_shows_truth_and_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.reality.cube import tosses_of

    tosses = tosses_of(simulated_tosses(3, frames=16))
    torch.manual_seed(0)
    model = PCODE.for_data(tosses, hidden=8, num_context=4).eval()
    toss = figures.typical_toss(model, tosses)
    assert toss.predicted(0.0) is None
    begin = toss.predicted(toss.start)
    assert begin is not None
    assert np.allclose(begin, toss.truth(toss.start), atol=1e-4)
    assert len(figures.EDGES) == 12
    monkeypatch.setattr(figures, "FRAMES_PER_SECOND", 1)
    frames = list(figures.play_toss(toss))
    assert len(frames) == 16 + 1
    assert (frames[0] != frames[-1]).any()


@pytest.mark.filterwarnings("ignore")
def test_rollouts_are_timed_in_turns(
    lines: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trial.Trial("lines", "pcode", 0, "steps")
    for peer in ("pcode", "timeaware"):
        trial.run_trial(replace(one, peer=peer), tmp_path, tmp_path / "runs", None)
    train, _, test = lines.load(None)
    trials = times.recorded(lines, tmp_path)
    models = times.contenders(trials, train, tmp_path)
    large = [f"time-aware GRU, steps of {count}" for count in (2, 4, 8)]
    assert list(models) == ["PC-ODE", "time-aware GRU", *large]
    monkeypatch.setattr(times, "ROUNDS", 2)
    monkeypatch.setattr(times, "TURN_SECONDS", 0.0)
    found = times.rollout_seconds(models, test, rows=8)
    assert set(found) == {*models, IN_TORCH}
    assert 0 < found["PC-ODE"].low <= found["PC-ODE"].high


@pytest.mark.filterwarnings("ignore")
def test_times_are_kept_until_all_can_be_measured_again(
    lines: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "ROUNDS", 1)
    monkeypatch.setattr(times, "TURN_SECONDS", 0.0)
    one = trial.Trial("lines", "rnn", 0, "steps")
    trial.run_trial(one, tmp_path, tmp_path / "runs", None)
    path, runs = tmp_path / "times" / "lines.json", tmp_path / "runs"
    rows = {"1": {"RNN": {"median": 1.0}, "PC-ODE": {"median": 2.0}}}
    write_json(path, {"data": "lines", "rows": rows})
    times.main(["lines"], results=tmp_path, runs=runs)
    assert read_json(path)["rows"] == rows
    trial.run_trial(replace(one, peer="pcode"), tmp_path, runs, None)
    times.main(["lines"], results=tmp_path, runs=runs)
    assert set(read_json(path)["rows"]["64"]) == {"RNN", "PC-ODE", IN_TORCH}
