"""The paper's masked training step, literally: slow, whole batch at every observation.

Nothing here is shared with the package but the weights. The cell runs for every sequence at every
observation, and a mask decides who keeps its line (appendix A.1). Five readings of the paper are
made explicit, as docs/decisions.md states them: the mask looks one observation ahead, so that a
segment covers only observations it predicts within tolerance (equation 8); it lasts no shorter
than a step of a rollout may, which matters between irregular observations; the cell starts from
[h + ḣ·Δt, ḣ]; the last segment of a sequence counts in the step-size loss as a lower bound; and
with the absolute readout the observation at which a segment begins is predicted as well.
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

    def encode(index: int) -> Tensor:
        parts = [batch.values[:, index]]
        if config.reads == "motion":
            before = max(index - 1, 0)
            gap = (time[:, index] - time[:, before])[:, None]
            change = batch.values[:, index] - batch.values[:, before]
            parts.append(torch.where(gap > 0, config.min_step * change / gap.clamp(min=0.1), 0))
        if batch.controls is not None:
            parts.append(batch.controls[:, index])
        return model.encoder(torch.cat(parts, dim=1))

    def moved(state: Tensor, by: Tensor) -> Tensor:
        half = config.hidden // 2
        h, h_dot = state[:, :half], config.velocity_scale * state[:, half:]
        return torch.cat([h + h_dot * by[:, None], state[:, half:]], dim=1)

    def decode(state: Tensor, start: Tensor, by: Tensor) -> Tensor:
        if config.readout == "absolute":
            return model.decoder(moved(state, by))
        return start + model.decoder(moved(state, by)) - model.decoder(state)

    def error_at(index: int, state: Tensor, start: Tensor, tau: Tensor) -> Tensor:
        predicted = decode(state, start, time[:, index] - tau)
        return ((predicted - batch.values[:, index]) ** 2).mean(1)

    def changed_at(row: int, index: int) -> bool:
        return batch.controls is not None and bool(
            (batch.controls[row, index] != batch.controls[row, index - 1]).any()
        )

    def long_enough(row: int, since: int, index: int) -> bool:
        return bool(time[row, index] - time[row, since] >= config.min_step * (1 - 1e-6))

    @torch.no_grad()
    def searched(row: int, since: int, state: Tensor, start: Tensor) -> int:
        """Where the search would end a segment of one row, looking at one observation at a time."""
        errors = [0.0]
        for index in range(since + 1, int(last[row])):
            by = time[row : row + 1, index : index + 2] - time[row, since]
            found = [decode(state, start, part) for part in by.unbind(1)]
            ahead = [((x - batch.values[row, index + i]) ** 2).mean() for i, x in enumerate(found)]
            errors.append(max(errors[-1], *(float(error) for error in ahead)))
            goes_on = errors[-1] < tolerance or bool(forced[row, index])
            if changed_at(row, index) or (long_enough(row, since, index) and not goes_on):
                return index
        return int(last[row])

    @torch.no_grad()
    def predicted_end(row: int, since: int, state: Tensor) -> int:
        """Where the model would end it, at the nearest observation that there may be."""
        step = config.min_step + torch.nn.functional.leaky_relu(model.step_size(state)[0, 0])
        wanted = time[row, since] + step.clamp(config.min_step, config.max_step)
        limit = next(
            (i for i in range(since + 1, int(last[row])) if changed_at(row, i)), int(last[row])
        )
        allowed = [i for i in range(since + 1, limit) if long_enough(row, since, i)]
        if time[row, limit] - wanted < config.min_step * (1 - 1e-6):
            return limit
        return min([*allowed, limit], key=lambda i: (abs(float(time[row, i] - wanted)), -i))

    state = torch.zeros(rows, config.hidden, dtype=batch.values.dtype)
    start, tau = torch.zeros_like(batch.values[:, 0]), time[:, 0]
    worst = torch.full((rows,), torch.inf, dtype=batch.values.dtype)
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
        proposed = model.cell(encode(t), moved(state, time[:, t] - tau))
        ahead = error_at(t + 1, state, start, tau)
        changed = torch.zeros(rows, dtype=torch.bool)
        if batch.controls is not None and t > 0:
            changed = (batch.controls[:, t] != batch.controls[:, t - 1]).any(1)
        keep = (torch.maximum(worst, ahead) < tolerance) | forced[:, t]
        keep = keep | (time[:, t] - tau < config.min_step * (1 - 1e-6))
        keep = torch.where(own.gather(1, begun.clamp(min=0)[:, None])[:, 0], t < own_end, keep)
        keep = keep & ~changed & (t >= config.num_context)
        alive = t < last
        end_segments(alive & ~keep, t, changed)
        renew = (~keep)[:, None]
        state = torch.where(renew, proposed, state)
        start = torch.where(renew, batch.values[:, t], start)
        tau = torch.where(keep, tau, time[:, t])
        begun = torch.where(keep, begun, t)
        worst = torch.where(keep, worst, -torch.inf)
        knots[:, t] = alive & ~keep
        for row in (alive & ~keep & own[:, t]).nonzero()[:, 0].tolist():
            one = state[row : row + 1].detach(), start[row : row + 1]
            reach[row] = searched(row, t, *one)
            own_end[row] = predicted_end(row, t, one[0])
        if config.readout == "absolute":
            begins = error_at(t, state, start, tau)
            start_errors.append(begins[alive & ~keep])
        now = error_at(t + 1, state, start, tau)
        worst = torch.maximum(worst, now)
        errors.append(now[alive])
        ending = alive & (last == t + 1)
        end_segments(ending, t + 1, torch.ones_like(ending))

    prediction = torch.cat(errors).mean()
    step = torch.stack(step_errors).mean() if step_errors else torch.zeros(())
    total = prediction + 1e-5 * step
    if start_errors:
        total = total + torch.cat(start_errors).sum() / len(torch.cat(errors))
    return OracleResult(knots, total, prediction, step)
