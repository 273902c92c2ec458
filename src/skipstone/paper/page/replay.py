"""Examples as JSON for the page's viewer."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from jaxtyping import Float

from skipstone.drawing.scene import MARGIN
from skipstone.errors import InvalidInput
from skipstone.paper.examples import Example, Prediction
from skipstone.paper.tasks.base import CONTEXT
from skipstone.paper.tasks.events import Kind
from skipstone.paper.tasks.registry import find_task

DIGITS = 4
"""Decimals of numbers: finer than a screen's pixels, at half the size."""

FILM_STRIDE = 4
"""Every fourth moment of a film is kept, two for each observation: in half an interval a ball moves
by less than a pixel, and all moments would make a page of 3 MB."""

ORDER = ("RNN", "PC-ODE", "ODE-RNN")
"""Models from left to right, before all others."""


def replay(example: Example) -> dict[str, Any]:
    """An example as JSON: numbers are rounded, images are bytes in base64."""
    film = example.scene.kind == "film"
    kept = np.arange(0, len(example.moments), FILM_STRIDE if film else 1)
    models = sorted(
        example.predictions.items(),
        key=lambda item: ORDER.index(item[0]) if item[0] in ORDER else len(ORDER),
    )
    pack = _images if film else _rounded
    return {
        "task": example.task,
        "summary": find_task(example.task).summary,
        "kind": example.scene.kind,
        "radius": example.scene.radius,
        "pocket": example.scene.pocket,
        "labels": list(example.scene.labels),
        "box": _rounded(_box(example)),
        "side": int(np.sqrt(example.values.shape[1])) if film else None,
        "observed": _rounded(example.times),
        "context": round(float(example.times[CONTEXT - 1]), DIGITS),
        "moments": _rounded(example.moments[kept]),
        "truth": pack(example.track[kept]),
        "collisions": _collisions(example),
        "models": [_model(title, example, found, kept) for title, found in models],
    }


def _model(title: str, example: Example, prediction: Prediction, kept: np.ndarray) -> dict:
    start = len(example.moments) - len(prediction.times)
    if start < 0 or not np.allclose(prediction.times, example.moments[start:]):
        raise InvalidInput(
            f"a prediction must be for the last moments of its example; {title}'s for "
            f"{example.task} has other times. Evaluate its path at `example.moments`."
        )
    later = kept[kept >= start]
    pack = _images if example.scene.kind == "film" else _rounded
    return {
        "title": title,
        "first": len(kept) - len(later),
        "values": pack(prediction.values[later - start]),
        "updates": _rounded(prediction.knots),
    }


def _collisions(example: Example) -> list[dict[str, Any]]:
    """Time, balls and kind of each collision."""
    events = example.events
    return [
        {
            "time": round(float(time), DIGITS),
            "wall": bool(kind == Kind.WALL),
            "balls": [int(ball)] if kind == Kind.WALL else [int(ball), int(other)],
        }
        for time, kind, ball, other in zip(
            events.times, events.kinds, events.balls, events.others, strict=True
        )
    ]


def _box(example: Example) -> Float[np.ndarray, " corners=4"]:
    """Left, bottom, right and top of the picture: a square, for paths in the plane.

    Only true paths count, so that a model that has lost its way cannot shrink the picture.
    """
    if example.scene.kind == "time":
        return np.array([example.times[0], 0.0, example.times[-1], 1.0])
    if example.scene.kind == "film" or example.scene.radius is not None:
        return np.array([0.0, 0.0, 1.0, 1.0])
    points = example.track.reshape(-1, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    reach = (0.5 + MARGIN) * max(float((high - low).max()), 1e-6)
    centre = (low + high) / 2
    return np.concatenate([centre - reach, centre + reach])


def _rounded(values: np.ndarray) -> list[Any]:
    """Nested lists of rounded numbers; null for those that are not finite, which JSON lacks."""
    rounded = np.round(values.astype(float), DIGITS)
    return np.where(np.isfinite(rounded), rounded, np.array(None)).tolist()


def _images(values: Float[np.ndarray, "moments pixels"]) -> str:
    grey = np.nan_to_num(255 * values, nan=0.0).round().clip(0, 255).astype(np.uint8)
    return base64.b64encode(grey.tobytes()).decode("ascii")
