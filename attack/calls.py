"""Fuzzed calls of the API: each returns, or raises `InvalidInput`; where the right answer is known,
it is that."""

from __future__ import annotations

import faulthandler
import json
import random
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attack.callables import Subject, subjects
from attack.layouts import Pair, pairs, same_numbers
from attack.trial import Ended, Tally, run_work
from skipstone import InvalidInput, Sequences
from skipstone import Path as Rollout

SECONDS = 180
"""After which a call hangs. The longest, a training with the default recipe, takes half a minute on
an idle machine."""

BATCH = 200
"""Calls of one process: one that dies takes none of the others along."""

HIDDEN = 1e6
"""What stands under the mask of an array."""

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
    lambda: np.ma.array(np.full((3, 6, 2), HIDDEN), mask=True),
    lambda: torch.zeros(3, 4, dtype=torch.complex64),
    lambda: torch.tensor(3),
    lambda: torch.float32,
    lambda: torch.int64,
    lambda: 1_700_000_000_000_000_000 + np.arange(12).reshape(3, 4),
]


def attack_with_calls(tally: Tally, trials: int, seed: int) -> None:
    """Call with good arguments, some of which are replaced, or laid out differently."""
    journal, done = Path("journal").absolute(), 0
    while done < trials:
        journal.write_text("")
        last = min(done + BATCH, trials)
        numbers = range(done, last)

        def work(numbers: range = numbers) -> None:
            _call_all(numbers, seed, journal)

        ended = run_work(work, SECONDS * BATCH)
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        for trial, failure in (line for line in lines if len(line) == 2):
            tally.count(trial, failure)
        done += sum(len(line) == 2 for line in lines)
        if done < last:  # It died in the call that it noted last, alone or before the first.
            tally.count(lines[-1][0] if lines else "a call", _death(ended))
            done += 1


def _death(ended: Ended) -> str:
    """Why a process is not there any more."""
    if ended.hung or "Timeout (" in ended.said:
        return "hangs"
    return f"ends the process with {ended.code}, {ended.last!r}"


def _call_all(numbers: range, seed: int, journal: Path) -> None:
    """Make trials, and note each of them before and after."""
    torch.manual_seed(0)
    known, layouts = subjects(), pairs()
    with journal.open("a", buffering=1) as notes:
        for number in numbers:
            chance = random.Random(f"{seed} {number}")
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            if chance.random() < 0.2:
                pair = chance.choice(layouts)
                shown, act = pair.name, lambda pair=pair: _unlike(pair)
            else:
                shown, act = _fuzzed(known, chance)
            shown = " ".join(shown.split())[:200]
            notes.write(json.dumps([shown]) + "\n")
            notes.write(json.dumps([shown, act()]) + "\n")
        faulthandler.cancel_dump_traceback_later()


def _fuzzed(known: list[Subject], chance: random.Random) -> tuple[str, Callable[[], str | None]]:
    """A call with one or two arguments replaced, in words, and what tells what is wrong with it."""
    subject = chance.choices(known, [each.weight for each in known])[0]
    arguments = subject.good()
    replaced = chance.sample(list(arguments), min(len(arguments), chance.choice([1, 1, 1, 2])))
    for name in replaced:
        arguments[name] = chance.choice(NASTY)()
    if {"until", "max_updates"} <= set(replaced):  # As long as one likes, and that is long.
        replaced.remove("until")
        arguments["until"] = subject.arguments["until"]
    shown = ", ".join(f"{name}={arguments[name]!r}" for name in replaced)
    bad = [
        name
        for name in replaced
        if name in subject.rules and not subject.rules[name](arguments[name])
    ]
    return f"{subject.name} with {shown}", lambda: _fault(subject, arguments, bad)


def _fault(subject: Subject, arguments: dict[str, Any], bad: list[str]) -> str | None:
    """Why what a call did is not acceptable; `bad` are arguments that it has to refuse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = subject.call(**arguments)
            if isinstance(found, Rollout):
                found.evaluate(found.end[:, None])
    except InvalidInput:
        return None
    except Exception as error:
        if isinstance(error, IndexError) and subject.indexes:
            return None
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if bad:
        return f"accepts {', '.join(bad)}"
    if isinstance(found, Sequences) and bool((found.values == HIDDEN).any()):
        return "takes what is masked"
    return None


def _unlike(pair: Pair) -> str | None:
    """Why an array that is laid out differently does not mean the same."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, expected = pair.odd(), pair.plain()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None if same_numbers(found, expected) else "gives other numbers than the plain array"
