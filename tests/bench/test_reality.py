"""Trials, tables and figures on real data: resumable, and made from what was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.reality import figures, problems, report, run, times, trial
from benchmarks.reality.event_ode import EventODE
from benchmarks.reality.peers import NAIVE, PEERS, build, peers_of, typical_changes
from benchmarks.reality.problem import Parts, Problem, by_columns
from benchmarks.report import read_json
from skipstone import PCODE, Sequences
from skipstone.records import write_json
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
    assert found["error"] == np.inf


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
    slow = {"settings": done.settings(), "seconds": 3 * run.expected_seconds(done)}
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
    tables = report.rows_of(TRIALS, {"glucose": {"PC-ODE": 1.0, "RNN": 3.0}}, "steps")
    assert [row.name for row in tables["glucose"]] == ["PC-ODE", "RNN", "CfC", "persistence"]
    table = report.table_markdown(tables).splitlines()
    assert "| **PC-ODE** | 11 (10 to 12) | 5 | 1 | 100 |" in table[4]
    assert table[7] == "|  | persistence | 44 |  |  |  |"
    worse, better = report.compare(tables)
    assert (better.best, better.error, better.fewer, better.faster) == ("RNN", 0.5, 5, 3)
    assert better.reached
    assert not worse.reached
    verdict = report.verdict_markdown(tables)
    assert verdict.index("Use it") < verdict.index("glucose") < verdict.index("Take the peer")
    assert verdict.index("Take the peer") < verdict.index("pool")
    summary = report.summary_markdown(tables).splitlines()
    assert "| 11 | 22, RNN | 5 against 25 | 1 against 3 |" in summary[3]


def test_the_page_says_what_is_recorded_and_what_is_not() -> None:
    text = report.recorded_markdown(report.rows_of(TRIALS, {}, "steps"))
    twice, once, missing = text.split(". ")
    assert (twice, once) == ("Recorded with 2 seeds: glucose", "Recorded with 1 seed: pool")
    assert "cube tosses" in missing
    assert "pool" not in missing


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
    trial.train(one, lines.load(None), tmp_path / one.name)
    models = times.contenders(lines, tmp_path)
    assert list(models) == ["PC-ODE"]
    monkeypatch.setattr(times, "ROUNDS", 2)
    monkeypatch.setattr(times, "TURN_SECONDS", 0.0)
    found = times.rollout_seconds(models, lines.load(None).test, rows=8)
    assert 0 < found["PC-ODE"].low <= found["PC-ODE"].high


def bouncing() -> EventODE:
    """A ball that moves freely and bounces off 0: x' = v, and v becomes -v."""
    options = {"dim": 1, "hidden": 1, "num_context": 2, "surfaces": 1}
    model = EventODE.from_config(options).double()
    small = 1e-3
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.surface.weight[0, 0] = 1.0
        # In its linear range tanh(small·v) · (-2 / small) is -2v.
        first, _, last = model.jump
        first.weight[0, 1] = small  # pyright: ignore
        last.weight[0, 0] = -2 / small  # pyright: ignore
    return model


def test_an_event_ode_bounces_when_and_where_it_must() -> None:
    context = Sequences([[0.0, 1.0]], torch.tensor([[[3.0], [2.0]]], dtype=torch.float64))
    path = bouncing().rollout(context, 9.0)
    assert path.num_updates.tolist() == [2]
    assert path.knots[0].tolist() == pytest.approx([1.0, 3.0], abs=1e-4)
    when = torch.tensor([[9.0, 1.0, 2.5, 3.0, 5.0, 5.0]], dtype=torch.float64)
    expected = [6.0, 2.0, 0.5, 0.0, 2.0, 2.0]
    assert path.evaluate(when)[0, :, 0].tolist() == pytest.approx(expected, abs=1e-3)


def test_an_event_ode_learns_when_to_bounce() -> None:
    """The gradient through the time of a jump: a wall that is too far away comes nearer."""
    model = bouncing()
    with torch.no_grad():
        model.surface.bias[0] = 0.5  # A wall at -0.5.
    values = torch.tensor([[[3.0], [2.0], [1.0], [0.0], [1.0], [2.0]]], dtype=torch.float64)
    batch = Sequences.from_array(values)
    loss = model.loss(batch).total
    # With a wall at -b, two of four observations are missed by 2b.
    assert loss.item() == pytest.approx(2 * 0.5**2, abs=1e-3)
    loss.backward()
    assert model.surface.bias.grad is not None
    assert model.surface.bias.grad.item() == pytest.approx(4 * 0.5, abs=1e-2)
