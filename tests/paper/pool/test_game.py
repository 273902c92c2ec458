"""Scores of shots: imagined paths are those of the data, and closest means closest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from skipstone import ODERNN, PCODE, RNN, InvalidInput, load_task
from skipstone.evaluation.rollouts import predict
from skipstone.paper.pool import ImaginedScore, MirroredScore, ShotSpace, TrueScore
from skipstone.paper.pool.game import closest_approach, closest_observation, imagine
from skipstone.paper.tasks.shots import POCKET, SHOT, SPEEDS, random_tables
from skipstone.planning import GradientDescent, scores
from skipstone.planning.scores import Measure

DATA = load_task("shots", trajectories=30, cache=False)
SHAPE: dict[str, Any] = {"dim": 4, "control": 2, "hidden": 8, "time_unit": 0.05}


def small(kind: Any, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    model = kind.from_config({**SHAPE, **options}).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    return model


def tables_and_shots(count: int, candidates: int = 1) -> tuple[np.ndarray, torch.Tensor]:
    tables = random_tables(np.random.default_rng(3), count)
    return tables, ShotSpace().sample(np.random.default_rng(4), count, candidates).double()


each_measure = pytest.mark.parametrize("measure", [closest_observation, closest_approach])
each_model = pytest.mark.parametrize("kind", [PCODE, RNN, ODERNN])


@each_model
def test_imagined_shots_are_those_of_the_data(kind: Any) -> None:
    """The same rollout as from a recorded trajectory's own context and controls."""
    model, batch = small(kind), DATA.train
    recorded, values = predict(model, batch)
    tables = batch.values[:, SHOT].reshape(-1, 2, 2).numpy()
    assert batch.controls is not None
    imagined = imagine(model, tables, batch.controls[:, SHOT])
    torch.testing.assert_close(imagined.evaluate(batch.times[:, SHOT + 1 :]), values)
    torch.testing.assert_close(imagined.knots, recorded.knots)


@each_model
def test_closest_approach_is_what_dense_sampling_finds(kind: Any) -> None:
    tables, shots = tables_and_shots(40)
    with torch.no_grad():
        path = imagine(small(kind), tables, shots[:, 0])
    share = torch.linspace(0, 1, 4001, dtype=torch.float64)
    dense = path.evaluate(path.start[:, None] + (path.end - path.start)[:, None] * share)
    dense = (dense[..., 2:] - torch.tensor(POCKET)).norm(dim=-1).amin(1)
    found = closest_approach(path)
    assert bool(((found - dense).abs() < 2e-2).all())
    if kind is RNN:
        # Its path is straight between updates: chords are exact, and samples may miss the point.
        assert bool(((found <= dense + 1e-9) & (found > dense - 1e-3)).all())
    assert bool((closest_observation(path) >= dense - 1e-3).all())


def test_a_fast_ball_is_seen_between_observations() -> None:
    """Rolling past the pocket in one interval: observations miss it, continuous time does not."""
    model = small(RNN)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        # Every interval moves the target 0.8 to the right, along a line 0.2 above the pocket.
        model.decoder.last.bias.copy_(torch.tensor([0, 0, 0.8, 0.0]))
    with torch.no_grad():
        path = imagine(model, np.array([[[0.2, 0.8], [0.6, 0.2]]]), torch.tensor([[1.0, 0.0]]))
    assert float(closest_approach(path)) == pytest.approx(0.2)
    assert float(closest_observation(path)) == pytest.approx(np.hypot(0.4, 0.2))


@each_measure
def test_batches_do_not_change_scores(monkeypatch: pytest.MonkeyPatch, measure: Measure) -> None:
    tables, shots = tables_and_shots(3, 5)
    model = small(PCODE)
    whole = ImaginedScore(model, tables, measure)
    together = whole(shots)
    monkeypatch.setattr(scores, "ROWS", 4)
    apart = ImaginedScore(model, tables, measure)
    torch.testing.assert_close(together, apart(shots))
    assert (whole.cost.rollouts, whole.cost.updates) == (apart.cost.rollouts, apart.cost.updates)
    assert whole.cost.rollouts == 15
    assert whole.cost.updates > 15


@each_measure
def test_score_can_be_differentiated_by_the_shot(measure: Measure) -> None:
    tables, shots = tables_and_shots(2, 2)
    model = small(PCODE)
    # A point that jumps from one observation to another has no derivative: keep steps fixed.
    with torch.no_grad():
        model.step_size.last.weight.zero_()
    score = ImaginedScore(model, tables, measure)
    # Along a random direction of all shots: one coordinate after the other takes much longer.
    assert torch.autograd.gradcheck(score, shots.requires_grad_(), atol=1e-6, fast_mode=True)


@each_model
def test_mirror_images_count_as_much_as_the_table(kind: Any) -> None:
    """Turned over the diagonal through the pocket it is the same table; a model's own view of it
    is another, the mean of all views is not."""
    tables, shots = tables_and_shots(20, 2)
    turned, turned_shots = 1 - tables[..., ::-1], -shots.flip(-1)
    model = small(kind, seed=1)
    own = ImaginedScore(model, tables, closest_approach)(shots)
    assert (ImaginedScore(model, turned, closest_approach)(turned_shots) - own).abs().max() > 1e-3
    score = MirroredScore(model, tables)
    mean = score(shots)
    torch.testing.assert_close(MirroredScore(model, turned)(turned_shots), mean)
    assert score.cost.rollouts == 8 * 40


def test_mirror_images_agree_when_nothing_moves() -> None:
    tables, shots = tables_and_shots(3, 4)
    model = small(RNN)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    apart = np.linalg.norm(tables[:, 1] - POCKET, axis=1)
    expected = torch.as_tensor(apart)[:, None].expand(-1, 4)
    torch.testing.assert_close(MirroredScore(model, tables)(shots), expected)


def test_shots_of_another_shape_are_refused() -> None:
    tables, shots = tables_and_shots(2, 3)
    for score in (TrueScore(tables), ImaginedScore(small(RNN), tables)):
        for wrong in (shots[:, 0], shots.repeat(1, 1, 2)):
            with pytest.raises(InvalidInput, match=r"shape \(2, candidates, 2\)"):
                score(wrong)


def test_gradient_descent_says_that_the_simulator_has_no_gradient() -> None:
    tables, _ = tables_and_shots(2)
    planner = GradientDescent(rollouts=20, starts=2, steps=2)
    with pytest.raises(InvalidInput, match="can be differentiated"):
        planner.plan(TrueScore(tables), ShotSpace(), 2, np.random.default_rng(0))


def test_the_true_score_counts_rollouts_and_no_updates() -> None:
    tables, shots = tables_and_shots(4, 3)
    score = TrueScore(tables)
    assert score(shots).shape == (4, 3)
    assert (score.cost.rollouts, score.cost.updates, score.cost.evaluations) == (12, 0, 0)


def test_projected_shots_keep_their_direction_and_their_speed_within_bounds() -> None:
    generator = torch.Generator().manual_seed(0)
    actions = 3 * torch.randn(50, 4, 2, generator=generator, dtype=torch.float64)
    actions[0, 0] = 0
    projected = ShotSpace().project(actions)
    speed = projected.norm(dim=-1)
    assert bool(((speed >= SPEEDS[0] - 1e-12) & (speed <= SPEEDS[1] + 1e-12)).all())
    cross = actions[..., 0] * projected[..., 1] - actions[..., 1] * projected[..., 0]
    assert cross.abs().max() < 1e-12
    allowed = (actions.norm(dim=-1) >= SPEEDS[0]) & (actions.norm(dim=-1) <= SPEEDS[1])
    torch.testing.assert_close(projected[allowed], actions[allowed])
    torch.testing.assert_close(ShotSpace().project(projected), projected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: PCODE.from_config({**SHAPE, "dim": 2}), "2 features and 2 controls"),
        (lambda: RNN.from_config({**SHAPE, "control": 0}), "4 features and 0 controls"),
        (lambda: PCODE.from_config({**SHAPE, "time_unit": 1.0}), "unit of time is 1"),
        (lambda: "a model", "got a str"),
    ],
)
def test_a_model_of_something_else_is_an_error(model: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"trained on shots.*{message}"):
        ImaginedScore(model(), random_tables(np.random.default_rng(0), 1))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([[[0.3, 0.3], [0.35, 0.3]]], "balls 0 and 1 of table 0 overlap"),
        ([[[0.05, 0.3], [0.5, 0.3]]], "within the box"),
        ([[0.3, 0.3], [0.5, 0.5]], r"Give table\[None\]"),
        ([[[0.3, np.nan], [0.5, 0.5]]], "finite"),
    ],
)
def test_impossible_tables_are_errors(tables: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TrueScore(tables)


def test_candidates_must_be_for_these_tables() -> None:
    tables, shots = tables_and_shots(3)
    with pytest.raises(InvalidInput, match=r"each of the 3 problems; got \(2, 1, 2\)"):
        TrueScore(tables)(shots[:2])
