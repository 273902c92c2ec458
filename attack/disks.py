"""Full disks, places that cannot be written to, and no home: one line, and nothing is lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from attack.subject import FIT, train, weights, write_log
from attack.trial import Ended, Tally, command, fault, run_work

NOBODY = 65_534
"""A user who may write nowhere: permissions do not stop the first one."""


def attack_with_disks(trials: int, seed: int) -> Tally:
    """Fill the disk in the middle of a training, then make room; write where nobody can."""
    tally, chance, folder = Tally(), random.Random(seed), Path("run").absolute()
    if run_work(lambda: train(folder)).code != 0:
        tally.count("a training that nobody disturbs", "fails")
        return tally
    expected, largest = weights(folder), max(path.stat().st_size for path in folder.iterdir())
    write_log(Path("log.csv"))
    others = [_no_home, _as_a_file, _in_proc, _read_only]
    for number in range(trials):
        if number % 2:
            act = others[number // 2 % len(others)]
            tally.count(act.__name__.strip("_"), act())
            continue
        shutil.rmtree(folder, ignore_errors=True)
        most = chance.randrange(0, largest)
        ended = run_work(lambda most=most: _told(lambda: _limited(folder, most)))
        failure = fault(ended) or _resumed(folder, expected)
        tally.count(f"disk full at {most}", failure, f"disk full: exit code {ended.code}")
    return tally


def _limited(folder: Path, most: int) -> None:
    """Train where no file can have more than so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    train(folder)


def _told(work: Callable[[], None]) -> None:
    """As the command does: errors that the library explains are a line."""
    from skipstone import InvalidInput

    try:
        work()
    except InvalidInput as error:
        os.write(1, f"error: {error}\n"[:500].encode())
        raise SystemExit(2) from None


def _resumed(folder: Path, expected: str) -> str | None:
    ended = run_work(lambda: train(folder))
    if ended.code != 0:
        return f"does not resume, {ended.said.strip().splitlines()[-1:]}"
    return None if weights(folder) == expected else "ends with other weights"


def _no_home() -> str | None:
    """Without a home, and with one that does not exist, everything works."""

    def work() -> None:
        os.environ.pop("HOME", None)
        os.environ.update(XDG_CACHE_HOME="/proc/none", HOME="/proc/none")
        command("fit", "log.csv", *FIT, "--quiet", "--overwrite", "--out", "homeless")()

    return fault(run_work(work), (0,))


def _as_a_file() -> str | None:
    """A folder whose name is taken by a file."""
    return _refused(run_work(command("fit", "log.csv", *FIT, "--quiet", "--out", "log.csv/run")))


def _in_proc() -> str | None:
    return _refused(run_work(command("fit", "log.csv", *FIT, "--quiet", "--out", "/proc/run")))


def _read_only() -> str | None:
    """A folder that may only be read."""
    place = Path("locked")
    place.mkdir(exist_ok=True)
    Path().absolute().chmod(0o755)
    place.chmod(0o555)

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(NOBODY)
        command("fit", "log.csv", *FIT, "--quiet", "--out", "locked/run")()

    return _refused(run_work(work))


def _refused(ended: Ended) -> str | None:
    return fault(ended, (2,))
