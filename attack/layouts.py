"""The same numbers in arrays of all kinds: they have to mean the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attack.callables import arrays
from skipstone import PCODE, RNN, Path, Sequences


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two calls that must give the same numbers."""

    name: str
    odd: Callable[[], Any]
    plain: Callable[[], Any]


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _spread_out(array: np.ndarray) -> np.ndarray:
    """Every other element of a larger one."""
    larger = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    larger[..., ::2] = array
    return larger[..., ::2]


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "big-endian integers": lambda array: array.astype(">i4"),
    "integers": lambda array: array.astype(np.int64),
    "short integers": lambda array: array.astype(np.int8),
    "halves": lambda array: array.astype(np.float16),
    "long doubles": lambda array: array.astype(np.longdouble),
    "reversed": lambda array: array[::-1].copy()[::-1],
    "reversed at the end": lambda array: array[..., ::-1].copy()[..., ::-1],
    "read-only": _read_only,
    "Fortran order": np.asfortranarray,
    "spread out": _spread_out,
    "lists": lambda array: array.tolist(),
    "a tensor": lambda array: torch.as_tensor(array),
    "a tensor that is turned": lambda array: (
        torch.as_tensor(array.T.copy()).mT if array.ndim == 2 else torch.as_tensor(array)
    ),
    "nothing masked": lambda array: np.ma.array(array, mask=np.zeros(array.shape, bool)),
}
"""Ways to hold small whole numbers."""


def pairs() -> list[Pair]:
    """All arguments that are arrays, in all layouts."""
    times, values = arrays()
    found = []
    for call, good in _calls(times, values).items():
        for name, array in good[1].items():
            for layout, make in LAYOUTS.items():
                odd = {**good[1], name: make(array)}
                found.append(
                    Pair(
                        f"{call} with {name} as {layout}",
                        lambda good=good, odd=odd: good[0](**odd),
                        lambda good=good: good[0](**good[1]),
                    )
                )
    return found


def _calls(
    times: np.ndarray, values: np.ndarray
) -> dict[str, tuple[Callable[..., Any], dict[str, np.ndarray]]]:
    """Functions that take arrays, with those arrays."""
    driven = Sequences(times, values, values[..., :1])
    rolling = {kind: kind.for_data(driven, hidden=4) for kind in (PCODE, RNN)}
    path = rolling[RNN].rollout(driven.tail(4), 40.0)

    def trained(times: Any, values: Any) -> torch.Tensor:
        """What a model that is made for data makes of them."""
        torch.manual_seed(0)
        sequences = Sequences(times, values)
        with torch.no_grad():
            return RNN.for_data(sequences, hidden=4, num_context=2).loss(sequences).total

    def rolled(kind: Any) -> Callable[..., Path]:
        return lambda times, controls, until: rolling[kind].rollout(
            driven.tail(4), until, (times, controls)
        )

    later = np.array([[18.0, 19.0], [20.0, 21.0], [22.0, 23.0]])
    known = np.array([[[1.0], [2.0]], [[3.0], [1.0]], [[0.0], [2.0]]], np.float32)
    until = {"times": later, "controls": known, "until": np.array([30.0, 31.0, 32.0])}
    return {
        "Sequences": (Sequences, {"times": times, "values": values, "controls": values}),
        "from_array": (Sequences.from_array, {"values": values}),
        "a loss": (trained, {"times": times, "values": values}),
        "PCODE.rollout": (rolled(PCODE), until),
        "RNN.rollout": (rolled(RNN), until),
        "path.evaluate": (path.evaluate, {"t": later + 6}),
    }


def numbers_in(found: Any) -> list[torch.Tensor]:
    """The tensors of a result."""
    if isinstance(found, Sequences):
        parts = (found.times, found.values, found.controls, found.mask)
    elif isinstance(found, Path):
        parts = (found.evaluate(found.end[:, None]),)
    else:
        parts = (found,)
    return [part.detach().double() for part in parts if isinstance(part, torch.Tensor)]


def same_numbers(found: Any, expected: Any) -> bool:
    """Whether two results are the same, bit for bit but for their precision."""
    pairs = zip(numbers_in(found), numbers_in(expected), strict=True)
    return all(torch.equal(*pair) for pair in pairs)
