"""Fuzzed calls of the API: each returns, or raises `InvalidInput`."""

from __future__ import annotations

import random
import signal
import warnings
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import torch

from attack.trial import Tally
from skipstone import ODERNN, PCODE, RNN, Ensemble, InvalidInput, LatentODE, Path, Sequences

SECONDS = 60
"""After which a call hangs."""

NASTY: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: "noon",
    lambda: "",
    lambda: b"bytes",
    lambda: 0,
    lambda: -1,
    lambda: 2.5,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 10**400,
    lambda: 2**63,
    lambda: 2**63 - 1,
    lambda: 1e300,
    lambda: 1e-320,
    lambda: 1j,
    list,
    dict,
    lambda: [[1.0], [1.0, 2.0]],
    lambda: [None],
    lambda: object(),
    lambda: lambda t: t,
    lambda: datetime(2026, 1, 1),
    lambda: np.datetime64("NaT"),
    lambda: np.zeros((0, 3)),
    lambda: np.full((3, 4), np.nan),
    lambda: np.array(["a", "b", "c"]),
    lambda: np.arange(3.0)[::-1],
    lambda: np.arange(12, dtype=">i8").reshape(3, 4),
    lambda: np.arange(12, dtype=np.longdouble).reshape(3, 4),
    lambda: np.ones((3, 4), dtype=bool),
    lambda: np.zeros((3, 4), dtype=object),
    lambda: torch.zeros(3, 4, dtype=torch.complex64),
    lambda: torch.tensor(3),
    lambda: torch.float32,
    lambda: torch.int64,
    lambda: 1_700_000_000_000_000_000 + np.arange(12).reshape(3, 4),
]


class Hang(Exception):
    """A call that does not end."""


def _subjects() -> list[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Calls with good arguments, by name; one or two of them are replaced at a time."""
    values = np.random.default_rng(0).normal(size=(3, 6, 2)).astype(np.float32)
    times = np.arange(18.0).reshape(3, 6)
    plain: Any = Sequences(times, values)
    driven: Any = Sequences(times, values, values[..., :1])
    found: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        ("Sequences", Sequences, {"times": times, "values": values, "controls": values}),
        ("Sequences, masked", Sequences, {"times": times, "values": values, "mask": times >= 0}),
        ("from_array", Sequences.from_array, {"values": values, "spacing": 1.0, "start": 0.0}),
        ("from_lists", Sequences.from_lists, {"values": list(values), "times": list(times)}),
        ("windows", plain.windows, {"length": 2, "stride": 1, "max_gap": 5.0}),
        ("split", plain.split, {"fractions": [0.5, 0.5], "seed": 0}),
        ("split_by_time", plain.split_by_time, {"time": 9.0}),
        ("select", plain.select, {"keep": times >= 0}),
        ("head", plain.head, {"count": 2}),
        ("tail", plain.tail, {"count": 2}),
        ("index", plain.__getitem__, {"index": 1}),
        ("named", plain.named, {"ids": [1, 2, 3], "features": ["a", "b"]}),
        ("to", plain.to, {"dtype": torch.float64}),
        ("to_table", plain.to_table, {"like": "polars"}),
        ("concat", Sequences.concat, {"parts": [plain, plain]}),
    ]
    for kind in (PCODE, RNN, ODERNN, LatentODE):
        options = {"hidden": 4, "num_context": 4, "missing": False, "time_unit": 1.0}
        found.append((f"{kind.__name__}.for_data", kind.for_data, {"sequences": plain, **options}))
    options = {"tolerance": 1e-3, "max_step": 9.0, "whole_steps": True, "targets": [0]}
    found.append(("PCODE options", PCODE.for_data, {"sequences": plain, **options}))
    return found + _rollouts(plain, driven)


def _rollouts(
    plain: Sequences, driven: Sequences
) -> list[tuple[str, Callable[..., Any], dict[str, Any]]]:
    found: list[tuple[str, Callable[..., Any], dict[str, Any]]] = []
    later = ([30.0, 31.0], [[1.0], [2.0]])
    for kind in (PCODE, RNN, ODERNN):
        model = kind.for_data(driven, hidden=4)
        good = {"context": driven.tail(4), "until": 40.0, "controls": later, "step": 2.0}
        found.append((f"{kind.__name__}.rollout", model.rollout, {**good, "max_updates": 9}))
    both = Ensemble([RNN.for_data(plain, hidden=4), PCODE.for_data(plain, hidden=4)])
    latent = LatentODE.for_data(plain, hidden=4)
    for name, each in (("Ensemble", both), ("LatentODE", latent)):
        good = {"context": plain.tail(4), "until": 40.0, "max_updates": 9}
        found.append((f"{name}.rollout", each.rollout, good))
    path = RNN.for_data(plain, hidden=4).rollout(plain.tail(4), 40.0)
    found += [
        ("evaluate", path.evaluate, {"t": 35.0, "side": "left"}),
        ("path.to_table", path.to_table, {"every": 1.0, "like": "polars"}),
    ]
    return found


def attack_with_calls(trials: int, seed: int) -> Tally:
    """Call with good arguments, some of which are replaced."""
    torch.manual_seed(0)
    tally, chance, subjects = Tally(), random.Random(seed), _subjects()
    before = signal.signal(signal.SIGALRM, _hang)
    for _ in range(trials):
        name, call, good = chance.choice(subjects)
        arguments = dict(good)
        replaced = chance.sample(list(good), min(len(good), chance.choice([1, 1, 1, 2])))
        for each in replaced:
            arguments[each] = chance.choice(NASTY)()
        trial = f"{name} with {', '.join(f'{each}={arguments[each]!r}' for each in replaced)}"
        tally.count(" ".join(trial.split())[:200], _fault(call, arguments))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    return tally


def _hang(*_: object) -> None:
    raise Hang


def _fault(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """Why what a call did is not acceptable."""
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(**arguments)
            if isinstance(found, Path):
                found.evaluate(found.end[:, None])
    except (InvalidInput, IndexError):
        return None
    except Hang:
        return "hangs"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    finally:
        signal.alarm(0)
    return None
