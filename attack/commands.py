"""Fuzzed commands: each leaves what it says, or ends with exit code 2 and one line."""

from __future__ import annotations

import itertools
import os
import random
import time
from pathlib import Path

from attack.subject import FIT, IDS, RESULT, WEIGHTS, write_log
from attack.trial import Ended, Tally, command, fault, run_work

WORDS = [
    *("", " ", "-1", "0", "2.5", "nan", "inf", "1e999", "9" * 30, "9" * 5000, "-", "--", "[red]"),
    *("[/]", "\x1b[31mred", "x" * 300, "x" * 5000, "/proc/none", "/dev/null", "/dev/zero"),
    *("log.csv", "broken.csv", "broken.parquet", "folder.csv", "pipe.csv", "run", "none", "a,b"),
    *("1e-300h", "+", "+1e300", "2026-13-45", "\udcff", "😀", "hidden=", "=", "hidden=[[[["),
    *("tolerance=Infinity", "hidden=1e9", "hidden=9999999999", "time_unit=0", "targets=[9]"),
]
"""Words in the place of good ones."""

TINY = ["--preset", "smoke", "--steps", "1", "--runs", "runs", "--quiet"]
LINES, SHOTS = "runs/lines-rnn-smoke-steps1-seed0", "runs/shots-rnn-smoke-steps1-seed0"
ROLLOUTS = "260"
"""The fewest that the experiment takes."""

GOOD = [
    ["fit", "log.csv", *FIT, "--intervals", "--quiet", "--seed", "0", "--out", "run"],
    ["forecast", "run", "log.csv", "--until", "+5", "--every", "1", "--out", "next.csv"],
    ["forecast", "run", "log.csv", "--until", "30", "--every", "2", "--out", "next.parquet"],
    [
        *("forecast", "run", "log.csv", "--until", "+2", "--every", "1", "--interval", "0.5"),
        *("--out", "bounds.csv"),
    ],
    ["compare", "log.csv", *FIT, "--quiet", "--model", "rnn", "--out", "both"],
    ["runs", "."],
    ["train", "lines", "rnn", *TINY],
    ["evaluate", LINES],
    ["show", "circles", "--count", "1", "--seed", "0", "--out", "circles.png"],
    ["train", "shots", "rnn", *TINY],
    ["plan", SHOTS, "--tables", "2", "--rollouts", ROLLOUTS, "--out", "plans"],
    ["grid", "--task", "lines", "--model", "rnn", "--seed", "1", "--workers", "1", *TINY],
    ["models"],
    ["tasks"],
]
"""Commands that work, in this order; each is made as it is, too, and not only in the beginning."""

ROWS = {"next.csv": 5 * IDS, "next.parquet": 5 * IDS, "bounds.csv": 2 * IDS}
"""Rows of the forecasts."""

BAD = [
    ["fit", "odd.csv", "--time", "time", "--values", "[x]", "--steps", "1", "--out", "odd"],
    ["evaluate", "run"],
    ["grid", "--task", "none", "--model", "rnn", "--runs", "runs", "--workers", "1"],
    ["plan", "run", "--tables", "2", "--rollouts", "1", "--out", "plans"],
    ["reproduce", "--preset", "none", "--out", "report"],
    ["--import", "none", "tasks"],
]
"""Commands that are nearly good."""

GUARDED = (
    *("--preset", "--steps", "reproduce", "grid", "train", "show", "--horizon"),
    *("--tables", "--rollouts", "--count"),
)
"""Words that stay, with the one after them: without them a command has hours to do."""

AGAIN = 40
"""Every so many commands, one is not mutated."""


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


def attack_with_commands(tally: Tally, trials: int, seed: int) -> None:
    """Run good commands, then mutated ones, and now and then a good one among them."""
    chance = random.Random(seed)
    prepare(Path())
    for number in range(trials):
        if number < len(GOOD) or number % AGAIN == 0:
            words, allowed = (
                GOOD[(number if number < len(GOOD) else number // AGAIN) % len(GOOD)],
                (0,),
            )
        else:
            words, allowed = mutated(chance.choice([*GOOD, *BAD]), chance), (0, 2)
        began = time.time_ns()
        ended = run_work(command(*words))
        failure = fault(ended, allowed) or missing(words, ended, began)
        shown = " ".join(word[:40] for word in words)
        tally.count(ascii(shown), failure, f"exit code {ended.code}")


def missing(words: list[str], ended: Ended, began: int) -> str | None:
    """What a command that ended well has not left; None if everything is there."""
    if ended.code != 0 or "--help" in words:
        return None
    told = [line for line in ended.said.splitlines() if line.startswith("wrote ")]
    for line in told:
        path = Path(line.removeprefix("wrote "))
        if "�" not in line and (failure := _unwritten(path, began)):
            return failure
    name = words[0]
    if name in ("forecast", "evaluate", "show", "plan") and not told:
        return "does not say what it wrote"
    if name == "forecast":
        return _short(words, Path(told[-1].removeprefix("wrote ")))
    place = {"fit": "--out", "compare": "--out", "train": "--runs", "grid": "--runs"}.get(name)
    if place is None:
        return None if ended.said.strip() else "says nothing"
    given = [after for before, after in itertools.pairwise(words) if before == place]
    if not given:  # As `--out=FOLDER`, or a folder that is not asked for.
        return None
    folder = Path(given[-1])
    runs = [folder] if name == "fit" else [path.parent for path in folder.rglob("config.json")]
    whole = [run for run in runs if (run / RESULT).is_file() and (run / WEIGHTS).is_file()]
    return None if whole and whole == runs else f"there is no finished run in {folder}"


def _unwritten(path: Path, began: int) -> str | None:
    """Why a file is not one that was written since."""
    if not path.is_file() or path.stat().st_size == 0:
        return f"says that it wrote {path}, which is not there"
    # A clock of files may be coarser than that of programs.
    if path.stat().st_mtime_ns < began - 10**8:
        return f"says that it wrote {path}, which is older"
    return None


def _short(words: list[str], path: Path) -> str | None:
    """Why a forecast does not have the rows that were asked for; some, if that was mutated."""

    def work() -> None:
        import polars

        frame = polars.read_csv(path) if path.suffix == ".csv" else polars.read_parquet(path)
        print(len(frame))

    # Not here: polars has threads, and what is forked after them waits for them forever.
    rows = run_work(work).last
    due = str(ROWS[path.name]) if words in GOOD else None
    if rows == "0" or not rows.isdecimal() or due not in (None, rows):
        return f"{path} has {rows} rows, not {due or 'some'}"
    return None
