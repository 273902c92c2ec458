"""The line search of training as an animated picture: `python -m website.line_search`.

An SVG that moves by its own style sheet: no script, light and dark, and still where the reader has
asked for less motion.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from skipstone import PCODE, Sequences, find_knots, load
from skipstone.drawing.style import PALETTE
from skipstone.models.loop import GivenKnots, TeacherForcing, walk
from skipstone.paper.examples import SEED
from skipstone.paper.tasks.registry import find_task
from website.stage import ROOT

TASK, WEIGHTS = "billiards1d", "billiards1d-pcode-cpu-seed0"
TOLERANCE = 2e-4
"""Coarser than in training, so that a miss can be seen."""

WIDTH, HEIGHT, EDGE = 760, 300, 16
SECONDS = 14.0
FINE = 6
"""Points of a curve for each observation."""


def segments(model: PCODE, sequence: Sequences) -> list[tuple[int, int, np.ndarray]]:
    """Start, end and predictions of each segment after the context, one observation too far.

    Predictions are (point, feature), `FINE` for each interval from the start on.
    """
    found, batch = find_knots(model, sequence), model.prepare(sequence, 1)
    source = TeacherForcing(model, batch, batch.values, range(batch.mask.shape[1]))
    policy = GivenKnots(found.at, batch.lengths - 1, source.clock, batch.values.dtype)
    last, made = batch.mask.shape[1] - 1, []
    with torch.inference_mode():
        for front, stop, _ in walk(model, source.begin(), policy, source):
            start, end = int(front.knot[0]), int(stop.knot[0])
            if start < model.config.num_context - 1:
                continue
            reach = min(end + 1, last) - start
            offsets = torch.linspace(0, reach, reach * FINE + 1)[None].to(batch.values)
            line = model.along(model.lines(front.state, front.values), offsets)
            made.append((start, end, model.in_data_units(line[0]).numpy()))
    return made


def example() -> tuple[PCODE, Sequences]:
    """The first of the report's examples, which no model was trained on, and its model."""
    task = find_task(TASK)
    times = task.options.spacing * np.arange(task.options.observations)
    values = task.observe(task.options, times[None], np.random.default_rng(SEED)).values
    model = load(ROOT / "weights" / WEIGHTS)
    assert isinstance(model, PCODE)
    described = {**vars(model.config), "tolerance": TOLERANCE, "target_step": None}
    coarse = PCODE.from_config(described)
    kept = {k: v for k, v in model.state_dict().items() if k in coarse.state_dict()}
    coarse.load_state_dict(kept)
    return coarse.eval(), Sequences(times[None], values)


def draw(observed: np.ndarray, found: list[tuple[int, int, np.ndarray]]) -> str:
    """The picture: (time, feature) observations, and the segments of `segments`."""
    count = len(observed)

    def place(index: float, value: float) -> tuple[float, float]:
        across = EDGE + (WIDTH - 2 * EDGE) * index / (count - 1)
        return round(across, 1), round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * value, 1)

    dots = "".join(
        '<circle class="dot" cx="{}" cy="{}" r="2.6"/>'.format(*place(i, x))
        for i, row in enumerate(observed)
        for x in row
    )
    first = found[0][0]
    share = [(start - first) / (count - 1 - first) for start, _, _ in found] + [1.0]
    style, shapes = [], []
    for k, (start, end, line) in enumerate(found):
        # A curve grows for most of its turn, shows its miss, and steps back to the last within.
        begin, turn = 4 + 88 * share[k], 88 * (share[k + 1] - share[k])
        missed = len(line) - 1 > (end - start) * FINE
        style.append(_keyframes(k, begin, begin + 0.7 * turn, begin + 0.95 * turn, missed))
        for ball in range(line.shape[1]):
            points = [place(start + i / FINE, x) for i, x in enumerate(line[:, ball])]
            kept, beyond = points[: (end - start) * FINE + 1], points[(end - start) * FINE :]
            shapes.append(f'<path class="line a{k}" pathLength="1" d="{_way(kept)}"/>')
            if missed:
                shapes.append(f'<path class="miss b{k}" d="{_way(beyond)}"/>')
            cx, cy = place(start, observed[start, ball])
            shapes.append(f'<circle class="knot c{k}" cx="{cx}" cy="{cy}" r="6"/>')
    return _TEMPLATE.format(
        width=WIDTH,
        height=HEIGHT,
        own=PALETTE[0],
        flash=PALETTE[1],
        seconds=SECONDS,
        style="\n".join(style),
        dots=dots,
        shapes="\n".join(shapes),
    )


def _way(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in points)


def _keyframes(k: int, begin: float, grown: float, end: float, missed: bool) -> str:
    """When the parts of a segment appear, in percent of the whole."""
    frames = [
        f"@keyframes c{k} {{ 0%, {begin:.2f}% {{ opacity: 0 }} {begin + 0.3:.2f}%, 100% "
        "{ opacity: 1 } }",
        f"@keyframes a{k} {{ 0%, {begin:.2f}% {{ stroke-dashoffset: 1 }} {grown:.2f}%, 100% "
        "{ stroke-dashoffset: 0 } }",
        f".a{k} {{ animation-name: a{k} }} .c{k} {{ animation-name: c{k} }}",
    ]
    if missed:
        frames.append(
            f"@keyframes b{k} {{ 0%, {grown:.2f}% {{ opacity: 0 }} {grown + 0.2:.2f}%, {end:.2f}% "
            f"{{ opacity: 1 }} {end + 0.8:.2f}%, 100% {{ opacity: 0 }} }} "
            f".b{k} {{ animation-name: b{k} }}"
        )
    return "\n".join(frames)


_TEMPLATE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>The line search: each predicted line grows until it misses an observation</title>
<style>
.sheet {{ fill: #ffffff }} .dot {{ fill: #5d6166 }}
.line, .miss, .knot {{ fill: none; stroke: {own}; stroke-width: 2.2 }}
.line {{ stroke-dasharray: 1 1; stroke-linejoin: round }}
.miss {{ stroke: {flash}; stroke-width: 3; opacity: 0 }}
@media (prefers-color-scheme: dark) {{
  .sheet {{ fill: #1a1d20 }} .dot {{ fill: #a2a8ae }} .line, .knot {{ stroke: #6cb4e4 }}
}}
@media (prefers-reduced-motion: no-preference) {{
.line, .miss, .knot {{ animation: {seconds}s linear infinite both }}
{style}
}}
</style>
<rect class="sheet" width="{width}" height="{height}" rx="10"/>
{dots}
{shapes}
</svg>
"""


if __name__ == "__main__":
    model, sequence = example()
    found = segments(model, sequence)
    target = Path("results", "ideas", "line-search.svg")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draw(sequence.values[0].numpy(), found), encoding="utf-8")
    print(f"{target}: {len(found)} segments")
