"""Laws of the piecewise-constant model."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers import (
    ScriptedPCODE,
    lengths,
    linear_pcode,
    random_batch,
    small_pcode,
    step_layer,
    tuned,
)
from skipstone import PCODE, Draws, Knots, Sequences, find_knots
from skipstone.models.config import READS
from skipstone.models.pcode_config import STEP_LOSS_WEIGHTS

pytestmark = pytest.mark.usefixtures("both_paths")

seeds = st.integers(0, 10_000)


def states(seed: int, rows: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 8, dtype=torch.float64, generator=generator)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@given(seeds)
def test_moving_by_zero_is_the_identity(seed: int) -> None:
    state = states(seed)
    assert torch.equal(small_pcode(seed).move(state, torch.zeros(3).double()), state)


@given(seeds, st.floats(0, 50), st.floats(0, 50))
def test_moving_by_a_then_b_is_moving_by_their_sum(seed: int, a: float, b: float) -> None:
    model, state = small_pcode(seed), states(seed)
    full = torch.full((3,), 1.0).double()
    close(model.move(model.move(state, a * full), b * full), model.move(state, (a + b) * full))


@given(seeds, st.floats(0.1, 20), st.floats(0, 1))
def test_latent_is_linear_between_knots(seed: int, length: float, part: float) -> None:
    model, state = small_pcode(seed), states(seed)
    full = torch.full((3,), length).double()
    end = model.move(state, full)
    close(model.move(state, part * full), torch.lerp(state, end, part))


@given(seeds, st.floats(0, 20), st.sampled_from(["displacement", "absolute"]))
def test_a_line_decodes_the_moved_state(seed: int, offset: float, readout: str) -> None:
    """The decoder's first layer, computed per segment, changes nothing."""
    model, state = small_pcode(seed, readout=readout), states(seed)
    values, by = torch.ones(3, 2).double(), torch.full((3,), offset).double()
    expected = model.decoder(model.move(state, by))
    if readout == "displacement":
        expected = values + expected - model.decoder(state)
    close(model.along(model.lines(state, values), by[:, None])[:, 0], expected)
    segments, _ = model.segments(state, values, torch.full((3,), 20.0).double())
    close(model.predict(segments, torch.arange(3)[:, None], by[:, None])[0][:, 0], expected)


def paths_agree(
    model: PCODE, together: Sequences, alone: list[Sequences], **options: object
) -> None:
    until = together.ends + 7.5
    path = model.rollout(together, until, **options)  # pyright: ignore[reportArgumentType]
    for row, context in enumerate(alone):
        single = model.rollout(context, until[row].item(), **options)  # pyright: ignore
        count = int(single.num_updates)
        assert int(path.num_updates[row]) == count
        close(single.knots[0], path.knots[row, :count])
        times = torch.linspace(0, 7.5, 20).double() + context.ends
        close(
            single.evaluate(times[None])[0],
            path.evaluate(times.expand(len(together), -1) - context.ends + together.ends[:, None])[
                row
            ],
        )


@settings(max_examples=15)
@given(seeds, lengths(4, 7, rows=4))
def test_a_path_does_not_depend_on_its_company(seed: int, sizes: list[int]) -> None:
    model, batch = small_pcode(seed), random_batch(seed, sizes).tail(4)
    paths_agree(model, batch, [batch[i] for i in range(len(batch))])
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(seed))
    paths_agree(model, batch[order], [batch[int(i)] for i in order])


@settings(max_examples=25)
@given(seeds, lengths(5, 12), st.sampled_from([0.01, 0.1, 1.0]))
def test_padding_changes_neither_knots_nor_loss(seed: int, sizes: list[int], tol: float) -> None:
    model, batch = small_pcode(seed), random_batch(seed, sizes)
    longer = Sequences.concat([batch, random_batch(seed, [30])])[: len(batch)]
    padded = Sequences(
        torch.nn.functional.pad(longer.times, (0, 9)),
        torch.nn.functional.pad(longer.values, (0, 0, 0, 9), value=float("nan")),
        mask=torch.nn.functional.pad(longer.mask, (0, 9)),
    )
    one = find_knots(tuned(model, tolerance=tol), batch)
    other = find_knots(tuned(model, tolerance=tol), padded)
    assert torch.equal(one.at, other.at[:, : one.at.shape[1]])
    assert not other.at[:, one.at.shape[1] :].any()
    close(model.loss(batch, Draws(knots=one)).total, model.loss(padded, Draws(knots=other)).total)


@settings(max_examples=40)
@given(seeds, lengths(5))
def test_order_of_sequences_does_not_change_the_loss(seed: int, sizes: list[int]) -> None:
    model, batch = small_pcode(seed), random_batch(seed, sizes, control=1)
    model = small_pcode(seed, control=1)
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(seed))
    first = tuned(model, tolerance=0.1).loss(batch)
    close(first.total, tuned(model, tolerance=0.1).loss(batch[order]).total)


def test_tolerance_zero_updates_at_every_observation() -> None:
    batch = random_batch(0, [9, 5], irregular=False)
    knots = find_knots(tuned(small_pcode(0), tolerance=0.0), batch)
    expected = batch.mask.clone()
    expected[torch.arange(2), batch.lengths - 1] = False
    assert torch.equal(knots.at, expected)


@pytest.mark.parametrize("min_step", [0.5, 1.0, 2.0])
def test_no_segment_is_shorter_than_a_step_of_a_rollout(min_step: float) -> None:
    """With no tolerance at all each lasts just as long as it has to."""
    batch = random_batch(0, [30, 12])
    model = small_pcode(0, min_step=min_step, num_context=1)
    knots = find_knots(tuned(model, tolerance=0.0), batch)
    for times, at, last in zip(batch.times, knots.at, batch.lengths - 1, strict=True):
        where = [*at.nonzero()[:, 0].tolist(), int(last)]
        for one, following in itertools.pairwise(where):
            assert times[following] - times[one] >= min_step or following == last
            assert times[following - 1] - times[one] < min_step


def test_a_large_tolerance_gives_one_segment_after_the_context() -> None:
    batch = random_batch(0, [9, 5])
    model = small_pcode(0)
    knots = find_knots(tuned(model, tolerance=1e30), batch)
    assert knots.count.tolist() == [4, 4]
    assert knots.at[:, :4].all()
    # That segment lasts to the end of its sequence, and would have gone on.
    assert knots.cut.nonzero().tolist() == [[0, 3], [1, 3]]


def test_exploration_extends_segments_by_chance() -> None:
    batch = random_batch(0, [200] * 40, irregular=False)
    model = small_pcode(0)
    tuned(model, tolerance=0.0, explore=0.01)
    knots = find_knots(model, batch, Draws.seeded(batch, 1))
    skipped = 1 - knots.at[:, 5:-1].double().mean()
    assert 0.007 < skipped < 0.013
    again = find_knots(model, batch, Draws.seeded(batch, 1))
    assert torch.equal(knots.at, again.at)


def test_whole_steps_are_the_nearest_whole_ones_that_are_not_too_short() -> None:
    model = ScriptedPCODE([[2.4, 2.6, 0.2, 50.0]], whole_steps=True, min_step=1.5)
    path = model.rollout(Sequences.from_array(torch.zeros(1, 1, 1).double()), 20.0)
    assert path.knots.tolist() == [[0, 2, 5, 7]]


def test_the_cell_runs_only_where_there_is_a_knot() -> None:
    batch, model, seen = random_batch(0, [20, 9, 15]), small_pcode(1), []
    model.cell.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    knots = find_knots(tuned(model, tolerance=0.3), batch)
    assert 0 < knots.at.sum() < batch.mask.sum() - 3
    assert sum(seen) == int(knots.at.sum())
    losses = model.loss(batch, Draws(knots=knots))
    assert losses.num_updates == int(knots.at.sum())


def test_a_change_of_control_is_a_knot() -> None:
    values = torch.zeros(1, 10, 2).double()
    controls = torch.zeros(1, 10, 1).double()
    controls[0, 6:] = 1
    batch = Sequences.from_array(values, controls=controls)
    model = small_pcode(0, control=1)
    knots = find_knots(tuned(model, tolerance=1e30), batch)
    assert knots.at[0].nonzero().flatten().tolist() == [0, 1, 2, 3, 6]
    assert knots.cut[0].nonzero().flatten().tolist() == [3, 6]


def test_mean_step_counts_segments_after_the_context() -> None:
    batch = random_batch(0, [12], irregular=False)
    losses = tuned(small_pcode(0), tolerance=1e30).loss(batch)
    assert losses.mean_step == 8
    assert losses.num_updates == 4


def test_a_cut_segment_is_a_lower_bound_for_the_step() -> None:
    batch, model = random_batch(0, [12], irregular=False), small_pcode(0)
    with torch.no_grad():
        step_layer(model).weight.zero_()
        for predicted, expected in ((3.0, (8.0 - 3.0) ** 2), (9.0, 0.0)):
            step_layer(model).bias.fill_(predicted - 1)
            step = tuned(model, tolerance=1e30).loss(batch).step
            assert float(step) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        (2.0, math.log(4) ** 2),
        (8.0, 0.0),
        (9.0, 0.0),  # A cut segment would have gone on.
        (0.25, (math.log(16) + 0.5) ** 2),  # Below one half, along the tangent.
    ],
)
def test_a_ratio_is_as_wrong_as_its_logarithm(predicted: float, expected: float) -> None:
    batch, model = random_batch(0, [12], irregular=False), small_pcode(0)
    with torch.no_grad():
        step_layer(model).weight.zero_()
        # Below min_step, 1, the LeakyReLU has a slope of 0.01.
        step_layer(model).bias.fill_((predicted - 1) * (1 if predicted >= 1 else 100))
        losses = tuned(model, tolerance=1e30, step_loss="ratio").loss(batch)
    assert float(losses.step) == pytest.approx(expected, rel=1e-5)
    weighted = STEP_LOSS_WEIGHTS["ratio"] * float(losses.step)
    assert float(losses.total) == pytest.approx(float(losses.prediction) + weighted)


@pytest.mark.parametrize("cap", [1e-3, 0.05, 1e9])
def test_overshoot_is_the_capped_error_one_past_each_segment(
    cap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skipstone.models.pcode_training.OVERSHOOT_CAP", cap / 0.1)
    batch, model = random_batch(3, [12, 9]), small_pcode(3)
    at = torch.zeros_like(batch.mask)
    at[:, :4] = True
    at[0, 6] = at[0, 7] = at[1, 7] = True
    knots = Knots(at, torch.zeros_like(at))
    # Segments that end before the last one of their row: 3 to 6, 6 to 7 and 3 to 7. The lines are
    # those of shorter data that end where the segment does, so the error one further is theirs.
    losses = model.loss(batch, Draws(knots=knots))
    expected = []
    for row, start, end in ((0, 3, 6), (0, 6, 7), (1, 3, 7)):
        moved = at.clone()
        moved[row, start + 1 :] = False
        longer = model.loss(batch, Draws(knots=Knots(moved, torch.zeros_like(at)))).predicted
        error = (longer - batch.values)[row, end + 1].square().mean()
        expected.append(float(error.clamp(max=cap)))
    extra = tuned(model, overshoot=0.3).loss(batch, Draws(knots=knots)).total - losses.total
    share = 0.3 * sum(expected) / losses.num_points
    assert float(extra.detach()) == pytest.approx(share, rel=1e-9)


def test_a_step_loss_reaches_the_states_only_in_the_paper() -> None:
    """The step network learns by ratio alone; the paper's difference moves the cell as well."""
    batch = random_batch(0, [9, 7])
    for rule, reaches in (("ratio", False), ("difference", True)):
        model = small_pcode(0, step_loss=rule)
        step = model.loss(batch).step
        assert isinstance(step, Tensor)
        weight = model.cell.weight_hh
        (slope,) = torch.autograd.grad(step, weight, allow_unused=True)
        assert (slope is not None and bool((slope != 0).any())) == reaches


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("readout", ["displacement", "absolute"])
def test_a_model_predicts_its_own_rollouts_exactly(reads: str, readout: str) -> None:
    """Training shows a model of observations what a rollout shows it of its own predictions."""
    model, context = small_pcode(4, reads=reads, readout=readout), random_batch(5, [4, 4])
    context = Sequences(torch.arange(4.0).double().expand(2, 4), context.values)
    path = model.rollout(context, 15.0, step=3.0)
    times = torch.arange(16.0).double().expand(2, 16)
    values = torch.cat([context.values, path.evaluate(times[:, 4:])], dim=1)
    at = torch.zeros(2, 16, dtype=torch.bool)
    at[:, [0, 1, 2, 3, 6, 9, 12]] = True
    found = model.loss(Sequences(times, values), Draws(knots=Knots(at, torch.zeros_like(at))))
    close(found.predicted[:, 4:], values[:, 4:])
    # Not because everything stands still.
    assert values[:, 4:].diff(dim=1).abs().min() > 1e-5


@pytest.mark.parametrize("length", [0.02, 0.5, 1.0, 7.0])
@pytest.mark.parametrize("min_step", [0.01, 1.0, 4.0])
def test_a_rollout_reads_the_rate_of_change_at_its_ends(length: float, min_step: float) -> None:
    """Per shortest step, of a line that moves with a known speed."""
    model = linear_pcode(rate=0.3, step=1.0, reads="motion", min_step=min_step)
    state = model.update(model.initial_state(1), torch.zeros(1, 2).double())
    lengths = torch.tensor([length], dtype=torch.float64)
    segment, _ = model.segments(state, torch.ones(1, 1).double(), lengths)
    end, inputs = model.ends(segment, lengths)
    close(end, 1 + 0.3 * lengths[:, None])
    close(inputs, torch.cat([end, torch.full_like(end, 0.3 * min_step)], dim=1))


def test_motion_is_read_since_the_observation_before() -> None:
    model = small_pcode(0, dim=1, reads="motion", min_step=2.0)
    values = torch.tensor([[[1.0], [3.0], [2.0], [2.0]]]).double()
    gaps = torch.tensor([[0.0, 0.5, 4.0, 0.0]]).double()
    inputs = model.encoder_inputs(values, gaps)
    close(inputs[0], torch.tensor([[1.0, 0.0], [3.0, 8.0], [2.0, -0.5], [2.0, 0.0]]).double())
