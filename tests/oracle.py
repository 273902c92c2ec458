"""The paper's masked training step, literally: slow, whole batch at every observation.

Nothing here is shared with the package but the weights. The cell runs for every sequence at every
observation, and a mask decides who keeps its line (appendix A.1). Six readings of the paper are
made explicit, as docs/decisions.md states them: observations of the context have no loss; the mask
looks one observation ahead, so that a segment covers only observations it predicts within tolerance
(equation 8); it lasts no shorter than a step of a rollout may, which matters between irregular
observations; the cell starts from [h + ḣ·Δt, ḣ]; the last segment of a sequence counts in the
step-size loss as a lower bound; and with the absolute readout the observation at which a segment
begins is predicted as well.

Three things the paper does not have are written out here as plainly: values in scaled units,
missing values, which a row's own prediction stands for, and controls that drive the latent motion,
integrated interval by interval.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from skipstone import PCODE, Sequences


class OracleResult(NamedTuple):
    knots: Tensor
    total: Tensor
    prediction: Tensor
    step: Tensor


def masked_training_step(
    model: PCODE, batch: Sequences, tolerance: float, forced: Tensor, own: Tensor | None = None
) -> OracleResult:
    """`forced` is where segments go on regardless, `own` where segments begin that the model ends
    itself, which the paper does not have."""
    own = torch.zeros_like(forced) if own is None else own
    config = model.config
    rows, count = batch.mask.shape
    time = batch.times / config.time_unit
    last = batch.mask.sum(1) - 1
    dtype = batch.values.dtype
    values = (batch.values - torch.tensor(config.center, dtype=dtype)) / torch.tensor(
        config.scale, dtype=dtype
    )
    values = torch.where(batch.mask[..., None], values.to(dtype), 0.0)
    seen = ~values.isnan()
    controls = None
    if batch.controls is not None:
        controls = batch.controls - torch.tensor(config.control_center, dtype=dtype)
        controls = (controls / torch.tensor(config.control_scale, dtype=dtype)).to(dtype)
    driven = controls is not None and config.control_effect == "drive"

    def moved(state: Tensor, tau: Tensor, to: Tensor) -> Tensor:
        """States that were at time `tau`, at time `to`, one interval of the data at a time."""
        half = config.hidden // 2
        h, h_dot = state[:, :half], state[:, half:]
        for index in range(count):
            end = time[:, index + 1] if index + 1 < count else torch.full_like(to, torch.inf)
            by = (torch.minimum(end, to) - torch.maximum(time[:, index], tau)).clamp(min=0)
            by = by.to(dtype)[:, None]
            push = torch.zeros_like(state)
            if driven:
                assert controls is not None
                push = controls[:, index] @ model.drive.T
            force = config.velocity_scale * push[:, half:]
            h = h + (config.velocity_scale * h_dot + push[:, :half]) * by + force * by**2 / 2
            h_dot = h_dot + push[:, half:] * by
        return torch.cat([h, h_dot], dim=1)

    def decode(state: Tensor, start: Tensor, tau: Tensor, to: Tensor) -> Tensor:
        if config.readout == "absolute":
            return model.decoder(moved(state, tau, to))
        return start + model.decoder(moved(state, tau, to)) - model.decoder(state)

    def known_value_and_rate(row: int, index: int, feature: int) -> tuple[Tensor, Tensor]:
        before = [i for i in range(index) if seen[row, i, feature]]
        value, rate = values[row, index, feature], torch.zeros((), dtype=dtype)
        if before:
            gap = (time[row, index] - time[row, before[-1]]).clamp(min=0.1)
            rate = (value - values[row, before[-1], feature]) / gap.to(dtype)
        return value, config.min_step * rate

    @torch.no_grad()
    def own_value_and_rate(
        index: int, state: Tensor, start: Tensor, tau: Tensor
    ) -> tuple[Tensor, Tensor]:
        if index == 0:
            return torch.zeros_like(start), torch.zeros_like(start)
        now = time[:, index]
        chord = (now - tau).clamp(0.1, 1.0)
        end, earlier = decode(state, start, tau, now), decode(state, start, tau, now - chord)
        return end, config.min_step * (end - earlier) / chord[:, None]

    def observe(index: int, state: Tensor, start: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
        """What a row has at an observation, its own prediction where that is missing, encoded."""
        value, rate = (part.clone() for part in own_value_and_rate(index, state, start, tau))
        for row in range(rows):
            for feature in range(batch.dim):
                if seen[row, index, feature]:
                    found = known_value_and_rate(row, index, feature)
                    value[row, feature], rate[row, feature] = found
        parts = [value, rate] if config.reads == "motion" else [value]
        parts += [seen[:, index].to(dtype)] if config.missing else []
        parts += [] if controls is None else [controls[:, index]]
        return value, model.encoder(torch.cat(parts, dim=1))

    def error_at(index: int, state: Tensor, start: Tensor, tau: Tensor) -> Tensor:
        predicted = decode(state, start, tau, time[:, index])
        error = torch.where(seen[:, index], predicted - values[:, index], 0.0) ** 2
        return error.sum(1) / seen[:, index].sum(1).clamp(min=1)

    def changed_at(row: int, index: int) -> bool:
        return (not driven and controls is not None) and bool(
            (controls[row, index] != controls[row, index - 1]).any()
        )

    def long_enough(row: int, since: int, index: int) -> bool:
        return bool(time[row, index] - time[row, since] >= config.min_step * (1 - 1e-6))

    @torch.no_grad()
    def searched(row: int, since: int, state: Tensor, start: Tensor) -> int:
        """Where the search would end a segment of one row, looking at one observation at a time."""
        errors = [0.0]
        tau = time[:, since]
        for index in range(since + 1, int(last[row])):
            ahead = [error_at(index + i, state, start, tau)[row] for i in (0, 1)]
            errors.append(max(errors[-1], *(float(error) for error in ahead)))
            goes_on = errors[-1] < tolerance or bool(forced[row, index])
            if changed_at(row, index) or (long_enough(row, since, index) and not goes_on):
                return index
        return int(last[row])

    @torch.no_grad()
    def predicted_end(row: int, since: int, state: Tensor) -> int:
        """Where the model would end it, at the nearest observation that there may be."""
        step = config.min_step + torch.nn.functional.leaky_relu(model.step_size(state)[row, 0])
        wanted = time[row, since] + step.clamp(config.min_step, config.max_step)
        limit = next(
            (i for i in range(since + 1, int(last[row])) if changed_at(row, i)), int(last[row])
        )
        allowed = [i for i in range(since + 1, limit) if long_enough(row, since, i)]
        if time[row, limit] - wanted < config.min_step * (1 - 1e-6):
            return limit
        return min([*allowed, limit], key=lambda i: (abs(float(time[row, i] - wanted)), -i))

    state = torch.zeros(rows, config.hidden, dtype=dtype)
    start, tau = torch.zeros_like(values[:, 0]), time[:, 0]
    worst = torch.full((rows,), torch.inf, dtype=dtype)
    begun = torch.full((rows,), -1)
    knots = torch.zeros(rows, count, dtype=torch.bool)
    errors, step_errors, start_errors = [], [], []
    reach, own_end = torch.zeros(rows, dtype=torch.long), torch.zeros(rows, dtype=torch.long)

    def end_segments(which: Tensor, index: int, cut: Tensor) -> None:
        for row in range(rows):
            if which[row] and begun[row] >= config.num_context - 1:
                predicted = config.min_step + torch.nn.functional.leaky_relu(
                    model.step_size(state[row : row + 1])[0, 0]
                )
                found, bound = index, bool(cut[row])
                if own[row, begun[row]]:
                    found = int(reach[row])
                    bound = found == last[row] or changed_at(row, found)
                difference = predicted - (time[row, found] - tau[row])
                if bound:
                    difference = difference.clamp(max=0)
                step_errors.append(difference**2)

    for t in range(count - 1):
        value, encoded = observe(t, state, start, tau)
        proposed = model.cell(encoded, moved(state, tau, time[:, t]))
        ahead = error_at(t + 1, state, start, tau)
        changed = torch.tensor([t > 0 and changed_at(row, t) for row in range(rows)])
        keep = (torch.maximum(worst, ahead) < tolerance) | forced[:, t]
        keep = keep | (time[:, t] - tau < config.min_step * (1 - 1e-6))
        keep = torch.where(own.gather(1, begun.clamp(min=0)[:, None])[:, 0], t < own_end, keep)
        keep = keep & ~changed & (t >= config.num_context)
        alive = t < last
        end_segments(alive & ~keep, t, changed)
        renew = (~keep)[:, None]
        state = torch.where(renew, proposed, state)
        start = torch.where(renew, value, start)
        tau = torch.where(keep, tau, time[:, t])
        begun = torch.where(keep, begun, t)
        worst = torch.where(keep, worst, -torch.inf)
        knots[:, t] = alive & ~keep
        for row in (alive & ~keep & own[:, t]).nonzero()[:, 0].tolist():
            reach[row] = searched(row, t, state.detach(), start)
            own_end[row] = predicted_end(row, t, state.detach())
        if config.readout == "absolute":
            begins = ((model.decoder(state) - start) ** 2).mean(1)
            start_errors.append(begins[alive & ~keep])
        now = error_at(t + 1, state, start, tau)
        worst = torch.maximum(worst, now)
        if t + 1 >= config.num_context:
            errors.append(now[alive & seen[:, t + 1].any(1)])
        ending = alive & (last == t + 1)
        end_segments(ending, t + 1, torch.ones_like(ending))

    points = max(1, len(torch.cat(errors)))
    prediction = torch.cat(errors).sum() / points
    step = torch.stack(step_errors).mean() if step_errors else torch.zeros(())
    total = prediction + 1e-5 * step
    if start_errors:
        total = total + torch.cat(start_errors).sum() / points
    return OracleResult(knots, total, prediction, step)
