"""Figures show the numbers that they are given, and say so if there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from scripted import example, measured

from skipstone import ODERNN, PCODE, RNN, LatentODE
from skipstone.drawing.style import INK, series_styles
from skipstone.errors import InvalidInput
from skipstone.paper.figures.collisions import updates_and_collisions
from skipstone.paper.figures.frontier import error_against_step
from skipstone.paper.figures.hero import hero
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.figures.studies import capacity, cost_against_sampling_rate, error_by_horizon
from skipstone.paper.figures.summary import task_summary
from skipstone.paper.groups import across_seeds, comparable
from skipstone.paper.tasks.base import CONTEXT

EVERY = [1.0] * 7
FEW = [3.0, 2.5]
THREE = {"PC-ODE": FEW, "RNN": EVERY, "ODE-RNN": EVERY}


def points(axes: Any) -> list[np.ndarray]:
    """The scattered points of a panel, a list for each call."""
    return [
        np.ma.getdata(one.get_offsets())
        for one in axes.collections
        if isinstance(one, PathCollection)
    ]


def texts(figure: Any) -> set[str]:
    """All that a figure says in its panels."""
    said = set()
    for axes in figure.axes:
        said |= {text.get_text() for text in axes.texts}
        said |= {axes.get_title(loc) for loc in ("left", "right")}
        said |= {axes.get_xlabel(), axes.get_ylabel()}
    return said


def xy(line: Any) -> np.ndarray:
    """The places of a line, a row for each."""
    return np.asarray(line.get_xydata())


def bars_of(axes: Any) -> list[ErrorbarContainer]:
    return [one for one in axes.containers if isinstance(one, ErrorbarContainer)]


def test_every_model_of_the_paper_has_a_style_of_its_own() -> None:
    assert {kind.title for kind in (PCODE, RNN, ODERNN, LatentODE)} <= set(MODEL_STYLES)
    for part in ("colour", "marker"):
        assert len({getattr(style, part) for style in MODEL_STYLES.values()}) == len(MODEL_STYLES)
    styles = series_styles(["RNN", "mine", "yours"], MODEL_STYLES)
    assert styles["RNN"] is MODEL_STYLES["RNN"]
    known = {style.colour for style in MODEL_STYLES.values()}
    assert len({styles["mine"].colour, styles["yours"].colour} - known) == 2


def test_hero_shows_every_update_and_every_step() -> None:
    shown = example("billiards2d", THREE)
    figure = hero(shown)
    titles = ["RNN", "ODE-RNN", "PC-ODE"]
    assert [strip.get_title("left") for strip in figure.axes[:3]] == titles
    for strip, panel, title in zip(figure.axes[:3], figure.axes[3:], titles, strict=True):
        prediction = shown.predictions[title]
        knots = prediction.knots
        balls = points(panel)
        assert [len(ball) for ball in balls] == [len(knots)] * 2
        np.testing.assert_allclose(np.hstack(balls), prediction.at(knots))
        (steps,) = (one for one in strip.containers if isinstance(one, BarContainer))
        edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in steps]
        wanted = np.append(knots, shown.times[-1])
        np.testing.assert_allclose(edges, np.stack([wanted[:-1], wanted[1:]], axis=1))
        assert strip.get_title("right") == f"{len(knots)} updates"
        assert to_hex(steps[0].get_facecolor()) == MODEL_STYLES[title].colour.lower()
        (ticks,) = (one for one in strip.collections if isinstance(one, LineCollection))
        assert len(ticks.get_segments()) == len(shown.events)


def test_hero_copes_with_one_model_and_refuses_none() -> None:
    assert len(hero(example("billiards2d", {"PC-ODE": FEW})).axes) == 2
    with pytest.raises(InvalidInput, match="prediction of RNN or ODE-RNN or PC-ODE"):
        hero(example("billiards2d", {}))


def test_given_observations_are_black_dots() -> None:
    shown = example("billiards1d", {"PC-ODE": FEW})
    panel = task_summary(shown, []).axes[0]
    dots = [line for line in panel.lines if line.get_marker() == "o" and line.get_color() == INK]
    assert len(dots) == 2
    for ball, line in enumerate(dots):
        given = np.stack([shown.times, shown.values[:, ball]], axis=1)[:CONTEXT]
        np.testing.assert_allclose(xy(line), given)


@pytest.mark.parametrize(
    ("task", "baseline"), [("lines", "ODE-RNN"), ("billiards1d", "ODE-RNN"), ("pixels1d", "RNN")]
)
def test_summary_has_four_columns(task: str, baseline: str, tmp_path: Path) -> None:
    runs = [measured(tmp_path, title, task) for title in ("RNN", "PC-ODE", "ODE-RNN")]
    axes = task_summary(example(task, THREE), runs).axes
    assert [panel.get_title("left") for panel in axes] == [
        f"{baseline}, 8 updates",
        "PC-ODE, 3 updates",
        "mean step",
        "error against step",
    ]


def test_a_film_shows_truth_and_prediction_in_rows() -> None:
    panel = task_summary(example("pixels2d", {"PC-ODE": FEW}), []).axes[0]
    assert len(panel.images) == 12
    assert {text.get_text() for text in panel.texts} == {"truth", "PC-ODE"}
    updates = [line for line in panel.lines if line.get_color() == MODEL_STYLES["PC-ODE"].colour]
    assert [len(np.asarray(line.get_xdata())) for line in updates] == [3]


def test_summary_draws_the_training_and_where_it_ended(tmp_path: Path) -> None:
    runs = [measured(tmp_path), measured(tmp_path, "RNN", step=1.0, mse=2e-3)]
    *_, steps, errors = task_summary(example("billiards1d", {}), runs).axes
    lines = {line.get_marker(): line for line in steps.lines}
    np.testing.assert_allclose(xy(lines["o"]), [[100, 1.5], [200, 3.0]])
    assert {text.get_text() for text in steps.texts} == {"PC-ODE", "RNN"}
    progress = points(errors)
    np.testing.assert_allclose(progress[0], [[1.5, 1e-1], [3.0, 1e-2]])
    ends = [xy(bar.lines[0])[0] for bar in bars_of(errors)]
    np.testing.assert_allclose(ends, [[4.0, 1e-3], [1.0, 2e-3]])
    (constant,) = (line for line in errors.lines if line.get_marker() == ".")
    np.testing.assert_allclose(xy(constant), [[1.0, 5e-3], [6.0, 5e-2]])
    names = {text.get_text(): text.xy for text in errors.texts}  # pyright: ignore[reportAttributeAccessIssue]
    assert names["constant steps"] == (6.0, 5e-2)  # Where that curve is highest.
    assert names["PC-ODE"] == (4.0, 1e-3)


def test_training_is_drawn_in_the_units_of_the_data(tmp_path: Path) -> None:
    runs = [measured(tmp_path, scale=0.5), measured(tmp_path, "latent ODE")]
    *_, steps, errors = task_summary(example("billiards1d", {}), runs).axes
    (progress,) = points(errors)
    np.testing.assert_allclose(progress, [[1.5, 2.5e-2], [3.0, 2.5e-3]])
    # A model without steps has no place in figures about them.
    assert {text.get_text() for text in steps.texts} == {"PC-ODE"}


def test_seeds_are_drawn_as_mean_and_range(tmp_path: Path) -> None:
    other = ((100, 2.5, 3e-1), (200, 5.0, 3e-2), (300, 9.0, 1e-2))
    runs = [measured(tmp_path), measured(tmp_path, seed=1, step=6.0, training=other)]
    *_, steps, errors = task_summary(example("billiards1d", {}), runs).axes
    np.testing.assert_allclose(xy(steps.lines[0]), [[100, 2.0], [200, 4.0]])
    (bar,) = bars_of(errors)
    np.testing.assert_allclose(xy(bar.lines[0]), [[5.0, 1e-3]])
    # The other bar, of errors, has no length: both seeds have the same.
    across = bar.lines[2][0].get_segments()[0]
    np.testing.assert_allclose(across[:, 0], [4.0, 6.0])
    alone = across_seeds([{"value": 1.0, "low": 0.5, "high": None}])
    assert (alone.value, alone.low) == (1.0, 0.5)
    assert np.isnan(alone.high)


def test_seeds_that_were_validated_at_other_steps_are_only_compared_at_the_end(
    tmp_path: Path,
) -> None:
    runs = [measured(tmp_path), measured(tmp_path, seed=1, training=((150, 2.0, 1e-2),))]
    *_, steps, errors = task_summary(example("billiards1d", {}), runs).axes
    assert not steps.lines
    assert points(errors) == []
    assert len(bars_of(errors)) == 1


def test_summary_needs_something_of_its_task(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="run or a prediction of lines"):
        task_summary(example("lines", {}), [measured(tmp_path)])


def test_studies_stay_out_of_comparisons(tmp_path: Path) -> None:
    usual = [measured(tmp_path), measured(tmp_path, "RNN")]
    others = [measured(tmp_path, hidden=256), measured(tmp_path, finer=2)]
    assert comparable([*others, *usual]) == usual


def test_capacity_has_a_line_for_each_task_with_several_sizes(tmp_path: Path) -> None:
    runs = [measured(tmp_path, hidden=8 * 2**i, step=i + 1.0) for i in (2, 0, 1)]
    runs.append(measured(tmp_path, hidden=16, step=4.0, seed=1))
    runs.append(measured(tmp_path, "PC-ODE", "lines"))
    runs += [measured(tmp_path, "RNN", hidden=size) for size in (8, 16)]
    figure = capacity(runs)
    (line,) = bars_of(figure.axes[0])
    np.testing.assert_allclose(xy(line.lines[0]), [[8, 1.0], [16, 3.0], [32, 3.0]])
    assert "billiards1d" in texts(figure)
    assert "lines" not in texts(figure)
    with pytest.raises(InvalidInput, match="differ in hidden size"):
        capacity(runs[-3:])


def test_capacity_compares_what_differs_in_size_alone(tmp_path: Path) -> None:
    fixed = {"target_step": None, "tolerance": 1e-4}
    runs = [measured(tmp_path, hidden=64), measured(tmp_path, hidden=8, steps=1500)]
    runs += [
        measured(tmp_path, step=step, steps=1500, options={**fixed, "hidden": hidden})
        for hidden, step in ((8, 1.5), (64, 2.5), (128, 3.0))
    ]
    runs += [measured(tmp_path, "PC-ODE", "circles", hidden=size) for size in (8, 16)]
    lines = [xy(bar.lines[0]).tolist() for bar in bars_of(capacity(runs).axes[0])]
    assert lines == [[[8, 4.0], [16, 4.0]], [[8, 1.5], [64, 2.5], [128, 3.0]]]


def test_the_frontier_is_drawn_with_the_rnn_across(tmp_path: Path) -> None:
    runs = [measured(tmp_path, "RNN", mse=2e-3), measured(tmp_path, mse=1e-3)]
    runs.append(measured(tmp_path, step=2.0, mse=1e-4, options={"target_step": 2.0}))
    figure = error_against_step([*runs, measured(tmp_path, "PC-ODE", "lines")])
    (axes,) = (panel for panel in figure.axes if panel.get_visible())
    assert axes.get_title("left") == "billiards1d"
    (bar,) = bars_of(axes)
    np.testing.assert_allclose(xy(bar.lines[0]), [[2.0, 1e-4], [4.0, 1e-3]])
    colour = MODEL_STYLES["RNN"].colour
    (line,) = (line for line in axes.lines if line.get_color() == colour)
    assert set(np.asarray(line.get_ydata())) == {2e-3}
    assert {"RNN", "PC-ODE", "mean step, observations", "sample MSE"} <= texts(figure)
    with pytest.raises(InvalidInput, match="differ in target_step or tolerance; got none"):
        error_against_step(runs[:2])


def test_errors_by_horizon_have_a_panel_for_each_task(tmp_path: Path) -> None:
    runs = [measured(tmp_path, title, "lines", mse=1e-4) for title in ("RNN", "PC-ODE")]
    runs.append(measured(tmp_path, "ODE-RNN", "circles"))
    figure = error_by_horizon(runs)
    assert [axes.get_title("left") for axes in figure.axes] == ["lines", "circles"]
    lines = figure.axes[0].lines
    np.testing.assert_allclose(xy(lines[0]), [[1, 5e-5], [2, 1e-4], [3, 1.5e-4]])
    assert [line.get_color() for line in lines] == [
        MODEL_STYLES[title].colour for title in ("PC-ODE", "RNN")
    ]
    assert {"PC-ODE", "RNN", "ODE-RNN", "observations ahead"} <= texts(figure)
    with pytest.raises(InvalidInput, match="measured runs"):
        error_by_horizon([])


def test_cost_grows_with_the_sampling_rate(tmp_path: Path) -> None:
    runs = [measured(tmp_path, "RNN", step=1.0, finer=finer) for finer in (4, 1, 2)]
    runs += [measured(tmp_path, step=4.0 * finer, finer=finer) for finer in (1, 4)]
    figure = cost_against_sampling_rate(runs)
    cost, error = figure.axes
    updates = [xy(bar.lines[0]) for bar in bars_of(cost)]
    np.testing.assert_allclose(updates[0], [[1, 10], [4, 10]])
    np.testing.assert_allclose(updates[1], [[1, 40], [2, 80], [4, 160]])
    assert len(bars_of(error)) == 2
    assert {"8.0 collisions", "updates per rollout", "sample MSE", "RNN", "PC-ODE"} <= texts(figure)
    with pytest.raises(InvalidInput, match="billiards1d that differ in spacing; got 1 of one"):
        cost_against_sampling_rate(runs[:1])
    with pytest.raises(InvalidInput, match="got none"):
        cost_against_sampling_rate(runs, "lines")


def test_updates_near_collisions_are_filled(tmp_path: Path) -> None:
    shown = example("billiards1d", {"PC-ODE": [2.0, 1.0, 1.5]}, observations=20)
    figure = updates_and_collisions([shown, shown], [measured(tmp_path)])
    raster, score = figure.axes
    start, spacing = shown.times[CONTEXT - 1], 0.05
    # The first update is there whatever the model does.
    updates = shown.predictions["PC-ODE"].knots[1:]
    collisions = shown.events.times[shown.events.times > start]
    near = [np.abs(collisions - one).min() <= spacing for one in updates]
    drawn = {True: 0, False: 0}
    for line in raster.lines:
        drawn[line.get_markerfacecolor() != "white"] += len(np.asarray(line.get_xdata()))
    assert drawn == {True: 2 * sum(near), False: 2 * (3 - sum(near))}
    (ticks, _) = (one for one in raster.collections if isinstance(one, LineCollection))
    np.testing.assert_allclose(
        [segment[0, 0] for segment in ticks.get_segments()], (collisions - start) / spacing
    )
    shares = [float(np.asarray(bar.lines[0].get_xdata())[0]) for bar in bars_of(score)]
    np.testing.assert_allclose(shares, [30, 60, 20, 40])
    assert {"60 %", "30 %", "40 %", "20 %"} <= texts(figure)


def test_updates_and_collisions_draw_what_there_is(tmp_path: Path) -> None:
    only_numbers = updates_and_collisions([], [measured(tmp_path)])
    assert [axes.get_visible() for axes in only_numbers.axes] == [False, True]
    only_pictures = updates_and_collisions([example("billiards2d", {"PC-ODE": FEW})])
    assert [axes.get_visible() for axes in only_pictures.axes] == [True, False]
    with pytest.raises(InvalidInput, match="a PC-ODE of balls that collide"):
        updates_and_collisions([example("lines", {"RNN": EVERY})], [measured(tmp_path, "RNN")])
