"""How long a rollout takes with onnxruntime, beside torch: one thread, several batch sizes.

    python -m benchmarks.latency            # on an idle machine; fills the table of the guide
    python -m benchmarks.latency --quick    # does it run? Writes nothing

Needs the extra `onnx`. Untrained models of the usual size, 41 observations ahead; the PC-ODE takes
steps of about 5. torch is in inference mode, the PC-ODE on its compiled path where there is one and
on the readable path. Both are asked for all 41 observations.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import aim_steps, mean_step, staircase, updates
from benchmarks.measure import Run, Spread, interleave
from benchmarks.report import number, read_json
from skipstone import PCODE, RNN, Sequences
from skipstone.files import write_text
from skipstone.integrations.onnx import export_onnx
from skipstone.integrations.onnx_rollout import OnnxModel
from skipstone.models import fast
from skipstone.models.base import SteppingModel
from skipstone.records import write_json
from skipstone.training.run import provenance

ROOT = Path(__file__).parents[1]
RECORD, GUIDE = ROOT / "results" / "latency.json", ROOT / "docs" / "deployment.md"
BATCHES = (1, 2, 7, 256)
MEAN_STEP = 5.0
AHEAD = 41
CONTENDERS = ("torch", "torch, readable", "onnxruntime")
_SLOT = re.compile(r"(?<=<!-- latency -->\n).*?(?=<!-- end of latency -->)", re.DOTALL)


def contenders(
    model: SteppingModel[Any], exported: OnnxModel, context: Sequences
) -> dict[str, Run]:
    """Rollouts of one context, each read at the same times."""
    until = float(context.ends[0]) + AHEAD
    times = context.ends[:, None] + torch.arange(1.0, AHEAD + 1)
    arrays = context.times.numpy(), context.values.numpy(), times.numpy()

    def by_torch() -> object:
        with torch.inference_mode():
            return model.rollout(context, until).evaluate(times)

    def readable() -> object:
        with fast.readable_path():
            return by_torch()

    def by_onnx() -> object:
        return exported.rollout(arrays[0], arrays[1], until).evaluate(arrays[2])

    return dict(zip(CONTENDERS, (by_torch, readable, by_onnx), strict=True))


def measured(hidden: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Milliseconds per rollout: median and quartiles, for each model and batch size."""
    torch.manual_seed(0)
    data = staircase(max(BATCHES), MEAN_STEP, observations=4 + AHEAD, dim=4)
    lines = PCODE.for_data(data, hidden=hidden)
    aim_steps(lines, data.head(4), MEAN_STEP, lambda: mean_step(updates(lines, data), lines))
    models = {"PC-ODE": lines, "RNN": RNN.for_data(data, hidden=hidden)}
    found = []
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder:
            exported = OnnxModel(export_onnx(model, folder))
        for batch in BATCHES:
            runs = contenders(model, exported, data[:batch].head(4))
            times = interleave(runs, rounds, seconds)
            spreads = {kind: Spread.of([1e3 * t for t in times[kind]]) for kind in times}
            row = {
                kind: [spread.low, spread.median, spread.high] for kind, spread in spreads.items()
            }
            found.append({"model": name, "batch": batch, "milliseconds": row})
    return found


def latency_markdown(content: dict[str, Any]) -> str:
    """The table of the guide."""
    lines = ["| model | batch | " + " | ".join(f"{kind}, ms" for kind in CONTENDERS) + " |"]
    lines.append("|---" * (2 + len(CONTENDERS)) + "|")
    for row in content["rows"]:
        cells = (row["milliseconds"][kind] for kind in CONTENDERS)
        shown = [f"{number(mid)} ({number(low)} to {number(high)})" for low, mid, high in cells]
        lines.append(f"| {row['model']} | {row['batch']} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def filled_guide(text: str, record: Path) -> str:
    """The guide with the recorded table in its slot, or with a word that there is none."""
    table = latency_markdown(read_json(record)) if record.exists() else "Not recorded yet.\n"
    assert len(_SLOT.findall(text)) == 1
    return _SLOT.sub(lambda _: f"\n{table}\n", text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency with onnxruntime beside torch")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rows = measured(16 if quick else 128, 1 if quick else 30, 0.0 if quick else 0.3)
    content = {"ahead": AHEAD, "mean_step": MEAN_STEP, **provenance(), "rows": rows}
    print(latency_markdown(content))
    if not quick:
        write_json(RECORD, content)
        write_text(GUIDE, filled_guide(GUIDE.read_text(encoding="utf-8"), RECORD))


if __name__ == "__main__":
    main()
