"""Fuzzed commands: each does its work or ends with exit code 2 and one line."""

from __future__ import annotations

import os
import random
from pathlib import Path

from attack.subject import FIT, write_log
from attack.trial import Tally, command, fault, run_work

WORDS = [
    *("", " ", "-1", "0", "2.5", "nan", "inf", "1e999", "9" * 30, "9" * 5000, "-", "--", "[red]"),
    *("[/]", "\x1b[31mred", "x" * 300, "x" * 5000, "/proc/none", "/dev/null", "/dev/zero"),
    *("log.csv", "broken.csv", "broken.parquet", "folder.csv", "pipe.csv", "run", "none", "a,b"),
    *("1e-300h", "+", "+1e300", "2026-13-45", "\udcff", "😀", "hidden=", "=", "hidden=[[[["),
    *("tolerance=Infinity", "hidden=1e9", "hidden=9999999999", "time_unit=0", "targets=[9]"),
]
"""Words in the place of good ones."""

COMMANDS = [
    ["fit", "log.csv", *FIT, "--quiet", "--seed", "0", "--out", "out"],
    ["fit", "odd.csv", "--time", "time", "--values", "[x]", "--steps", "1", "--out", "odd"],
    ["compare", "log.csv", *FIT, "--quiet", "--model", "rnn", "--out", "both"],
    ["forecast", "run", "log.csv", "--until", "+5", "--every", "1", "--out", "next.csv"],
    ["forecast", "run", "log.csv", "--until", "30", "--every", "2", "--out", "next.parquet"],
    ["forecast", "run", "log.csv", "--until", "+2", "--every", "1", "--interval", "0.5"],
    ["runs", "."],
    ["evaluate", "run"],
    ["show", "circles", "--count", "1", "--seed", "0", "--out", "circles.png"],
    ["train", "lines", "rnn", "--preset", "smoke", "--steps", "1", "--runs", "runs", "--quiet"],
    ["grid", "--task", "none", "--model", "rnn", "--runs", "runs", "--workers", "1"],
    ["plan", "run", "--tables", "2", "--rollouts", "1", "--out", "plans"],
    ["reproduce", "--preset", "none", "--out", "report"],
    ["models"],
    ["--import", "none", "tasks"],
]
"""Commands that are good, or nearly."""

GUARDED = ("--preset", "--steps", "reproduce", "grid", "train", "show", "--horizon")
"""Words that stay, with the one after them: without them a command has hours to do."""


def prepare(folder: Path) -> None:
    """Files that commands find: good, broken, and of other kinds than their names say."""
    write_log(folder / "log.csv")
    (folder / "odd.csv").write_text("time,[x],\x1b[31m\n1,2,3\n2,3,4\n", encoding="utf-8")
    (folder / "broken.csv").write_bytes(bytes(range(256)) * 4)
    (folder / "broken.parquet").write_bytes(b"PAR1" + b"\0" * 64 + b"PAR1")
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")


def mutated(words: list[str], chance: random.Random) -> list[str]:
    """The same command with a word replaced, left out, repeated or added."""
    words = list(words)
    free = [
        at
        for at in range(1, len(words))
        if words[at] not in GUARDED and words[at - 1] not in GUARDED
    ]
    for at in sorted(chance.sample(free, min(len(free), chance.choice([1, 1, 2]))), reverse=True):
        way = chance.random()
        if way < 0.75:
            words[at] = chance.choice(WORDS)
        elif way < 0.85:
            del words[at]
        else:
            words.insert(at, chance.choice(WORDS))
    return words


def attack_with_commands(trials: int, seed: int) -> Tally:
    """Run good commands, then mutated ones."""
    tally, chance = Tally(), random.Random(seed)
    prepare(Path())
    made = run_work(command("fit", "log.csv", *FIT, "--intervals", "--quiet", "--out", "run"))
    tally.count("fit", fault(made, (0,)))
    for number in range(trials - 1):
        words = mutated(COMMANDS[number % len(COMMANDS)], chance)
        ended = run_work(command(*words))
        shown = " ".join(word[:40] for word in words)
        tally.count(ascii(shown), fault(ended), f"exit code {ended.code}")
    return tally
