"""Models, physics and planning in JavaScript give the numbers that Python gives.

Sums in the page are double precision, so PyTorch is asked in double precision, too. Billiards is
chaotic: in single precision rounding alone grows a thousandfold over a whole rollout, which
`test_single_precision_agrees_as_long_as_rounding_allows` is about.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from playwright.sync_api import Page

import skipstone
from pages import ROOT
from skipstone import PCODE, RNN, Sequences
from skipstone.models.base import Model
from skipstone.paper.playground.write import embedded_model
from skipstone.paper.pool.game import closest_approach, imagine
from skipstone.paper.tasks.balls import BILLIARDS_2D, place_balls, random_directions
from skipstone.paper.tasks.base import CONTEXT
from skipstone.paper.tasks.billiards import RADIUS, simulate
from skipstone.paper.tasks.shots import SPEEDS, play, pocket_distance, random_shots, random_tables

CONTEXTS = 20

ROLL_OUT = """({ name, game, contexts, until, later, times }) => {
    const models = game ? playground[game].models ?? [playground[game].model] : null;
    const model = models ? models.find((one) => one.title === name) : window.made;
    return contexts.map((context) => {
        const rollout = model.rollout(context, until, later);
        while (!rollout.done) rollout.step();
        return { knots: rollout.knots, values: times.map((time) => rollout.at(time)) };
    });
}"""


def in_page(
    page: Page, context: Sequences, times: torch.Tensor, later: Any = None, **of: str
) -> tuple[np.ndarray, list[list[float]]]:
    """Predictions and knots of each row, by the page."""
    rows = []
    for i in range(len(context)):
        row = {"times": context.times[i].tolist(), "values": context.values[i].tolist()}
        if context.controls is not None:
            row["controls"] = context.controls[i].tolist()
        rows.append(row)
    asked = {"contexts": rows, "until": float(times[-1]), "times": times.tolist(), "later": later}
    found = page.evaluate(ROLL_OUT, {**asked, **of})
    return np.array([one["values"] for one in found]), [one["knots"] for one in found]


def in_torch(
    model: Model[Any], context: Sequences, times: torch.Tensor, later: Any = None
) -> tuple[np.ndarray, list[list[float]]]:
    """The same by the library, on its readable path and on its compiled one."""
    controls = None
    if later is not None:
        values = torch.tensor(later["values"], dtype=context.values.dtype)
        controls = (later["times"], values.expand(len(context), -1, -1))
    with torch.inference_mode():
        path = model.rollout(context, float(times[-1]), controls=controls)
        values = path.evaluate(times.expand(len(context), -1)).double().numpy()
    return values, [[t for t in row if t < float("inf")] for row in path.knots.tolist()]


def fixed_contexts(dtype: torch.dtype) -> tuple[Sequences, torch.Tensor]:
    """The first observations of twenty trajectories, and the times of the other 41."""
    times = BILLIARDS_2D.options.spacing * np.arange(BILLIARDS_2D.options.observations)
    every = np.tile(times, (CONTEXTS, 1))
    seen = BILLIARDS_2D.observe(BILLIARDS_2D.options, every, np.random.default_rng(41)).values
    sequences = Sequences(every, seen).to(dtype=dtype)
    return sequences.head(CONTEXT), torch.as_tensor(times[CONTEXT:])


@pytest.mark.parametrize("kind", ["pcode", "rnn"])
def test_41_predictions_from_20_contexts_agree_with_pytorch(calculator: Page, kind: str) -> None:
    model = skipstone.load(ROOT / "weights" / f"billiards2d-{kind}-cpu-seed0")
    context, times = fixed_contexts(torch.float64)
    assert len(times) == 41
    wanted, knots = in_torch(model.double(), context, times)
    found, found_knots = in_page(calculator, context, times, name=model.title, game="arena")
    np.testing.assert_allclose(found, wanted, atol=1e-4)  # In fact 1e-11.
    for mine, theirs in zip(found_knots, knots, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


@pytest.mark.parametrize("kind", ["pcode", "rnn"])
def test_single_precision_agrees_as_long_as_rounding_allows(calculator: Page, kind: str) -> None:
    model = skipstone.load(ROOT / "weights" / f"billiards2d-{kind}-cpu-seed0")
    context, times = fixed_contexts(torch.float32)
    wanted, _ = in_torch(model, context, times[:10])
    found, _ = in_page(calculator, context, times[:10], name=model.title, game="arena")
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def random_model(kind: type[Model[Any]], **options: Any) -> Model[Any]:
    """An untrained model whose every weight matters."""
    torch.manual_seed(1)
    scales = {"center": (0.3, -0.2), "scale": (0.5, 1.5), "time_unit": 0.1, "layers": 3}
    model = kind.from_config({"dim": 2, "hidden": 8, **scales, **options})
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape) / weight.shape[-1] ** 0.5)
        if isinstance(model, PCODE):  # Steps of different lengths.
            step = model.step_size
            last = step if isinstance(step, torch.nn.Linear) else step.last
            last.bias.fill_(1.5)
    return model.double()


CONTROLLED = {"control": 2, "control_center": (0.1, 0.2), "control_scale": (2.0, 0.7)}
CASES = {
    "paper": (PCODE, {"reads": "values", "step_layers": 1}),
    "motion": (PCODE, {"reads": "motion", "step_layers": 3}),
    "silu": (PCODE, {"activation": "silu"}),
    "absolute": (PCODE, {"readout": "absolute"}),
    "whole": (PCODE, {"whole_steps": True}),
    "bounds": (PCODE, {"min_step": 2.5, "max_step": 3.0, "velocity_scale": 1.0}),
    "target": (PCODE, {"target_step": 4.0}),
    "driven": (PCODE, {**CONTROLLED, "control_effect": "drive"}),
    "updated": (PCODE, {**CONTROLLED, "control_effect": "update"}),
    "rnn": (RNN, {}),
    "rnn, controlled": (RNN, CONTROLLED),
    "rnn, absolute": (RNN, {"readout": "absolute", "activation": "silu", "layers": 2}),
    "rnn, values": (RNN, {"reads": "values"}),
    "rnn, motion": (RNN, {"reads": "motion", **CONTROLLED}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_setting_of_a_model_is_followed(calculator: Page, case: str) -> None:
    kind, options = CASES[case]
    unknown = set(options) - {field.name for field in dataclasses.fields(kind.Config)}
    if unknown:
        pytest.skip(f"a {kind.__name__} of this version has no {', '.join(unknown)}")
    model = random_model(kind, **options)
    rng = np.random.default_rng(2)
    # Irregular times, two of them closer than the shortest chord of a rate.
    times = np.array([[0.0, 0.13, 0.135, 0.3], [0.0, 0.1, 0.2, 0.3]])
    known = rng.normal(size=(2, 4, 2)) if model.config.control else None
    context = Sequences(times, rng.normal(size=(2, 4, 2)), known).to(dtype=torch.float64)
    later = {"times": [0.41, 0.77, 0.9], "values": [[1.0, 0.5], [-1.0, 0.5], [-1.0, 0.5]]}
    later = later if model.config.control else None
    queries = torch.cat([torch.tensor([0.31, 0.4111, 0.5]), torch.linspace(0.6, 2.137, 9)]).double()
    wanted, knots = in_torch(model, context, queries, later)
    content = safetensors.torch.save(model.state_dict())
    embed = "model => { window.made = playground.readModel(model) }"
    calculator.evaluate(embed, embedded_model(model, content))
    found, found_knots = in_page(calculator, context, queries, later)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    for mine, theirs in zip(found_knots, knots, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)


def as_balls(positions: np.ndarray, velocities: np.ndarray) -> list[Any]:
    return [
        [{"position": p.tolist(), "velocity": v.tolist()} for p, v in zip(*row, strict=True)]
        for row in zip(positions, velocities, strict=True)
    ]


@pytest.mark.parametrize("balls", [2, 5])
def test_true_physics_is_the_simulator(calculator: Page, balls: int) -> None:
    rng = np.random.default_rng(3)
    positions = place_balls(rng, CONTEXTS, balls, 2)
    velocities = random_directions(rng, (CONTEXTS, balls), 2)
    times = np.linspace(0, 2.2, 23)
    motion = simulate(positions, velocities, 2.2)
    script = """({ starts, times, radius }) => starts.map((balls) => {
        const motion = playground.simulate(balls, times.at(-1), radius);
        const hits = motion.collisions.map(({ time, wall, balls }) => [time, wall, balls[0]]);
        return { hits, rows: times.map((time) => playground.positionsAt(motion, time)) };
    })"""
    starts = as_balls(positions, velocities)
    asked = {"starts": starts, "times": times.tolist(), "radius": RADIUS}
    for row, found in enumerate(calculator.evaluate(script, asked)):
        wanted = motion.state_at(times)[0][row].reshape(len(times), -1)
        np.testing.assert_allclose(found["rows"], wanted, atol=1e-8)
        events = motion.events[row]
        assert [hit[2] for hit in found["hits"]] == events.balls.tolist()
        assert [hit[1] for hit in found["hits"]] == (events.kinds == 0).tolist()
        np.testing.assert_allclose([hit[0] for hit in found["hits"]], events.times, atol=1e-8)


def test_a_shot_is_judged_as_in_the_game(calculator: Page) -> None:
    rng = np.random.default_rng(4)
    tables, shots = random_tables(rng, CONTEXTS), random_shots(rng, CONTEXTS)
    velocities = np.stack([shots, np.zeros_like(shots)], axis=1)
    found = calculator.evaluate(
        """(starts) => starts.map((balls) => {
            const { radius, spacing, ahead, pocket } = playground.pool.scene;
            const motion = playground.simulate(balls, ahead * spacing, radius);
            return playground.closestTo(motion, 1, pocket);
        })""",
        as_balls(tables, velocities),
    )
    np.testing.assert_allclose(found, pocket_distance(play(tables, shots)), atol=1e-9)


def test_plans_are_scored_as_in_python_and_the_best_is_chosen(calculator: Page) -> None:
    table = random_tables(np.random.default_rng(5), 1)
    settings = {"rollouts": 24, "rounds": 3, "elite": 4, "width": 0.1, "shrink": 0.5}
    script = """({ table, settings }) => {
        let seed = 1;
        const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
        const { model, scene } = playground.pool;
        const found = [];
        const tell = (one) => found.push(one);
        const search = playground.planShot(model, scene, table, tell, settings, random);
        for (;;) {
            const { done, value } = search.next();
            if (done) return { found, best: value };
        }
    }"""
    made = calculator.evaluate(script, {"table": table[0].tolist(), "settings": settings})
    assert len(made["found"]) == 24
    shots = torch.tensor([one["shot"] for one in made["found"]], dtype=torch.float64)
    speeds = shots.norm(dim=1)
    assert bool(((speeds > SPEEDS[0] - 1e-9) & (speeds < SPEEDS[1] + 1e-9)).all())
    model = skipstone.load(ROOT / "weights" / "shots-pcode-cpu-seed0").double()
    with torch.inference_mode():
        path = imagine(model, np.repeat(table, 24, axis=0), shots)
        wanted = closest_approach(path)
    distances = [one["distance"] for one in made["found"]]
    np.testing.assert_allclose(distances, wanted, atol=1e-4)
    assert [one["updates"] for one in made["found"]] == path.num_updates.tolist()
    assert made["best"]["distance"] == min(distances)
    # Later rounds are drawn around the best of the first.
    first, elite = shots[:8], shots[torch.tensor(distances[:8]).argsort()[:4]]
    assert torch.cdist(shots[8:16], elite).amin(1).max() < torch.cdist(first, elite).amax()
