"""Full disks, places that cannot be written to, and no home: one line, and nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from attack.resuming import Reference, limit_after, lost, undisturbed
from attack.subject import FIT, RECIPE, RESULT, Steps, train, write_log
from attack.trial import Ended, Tally, command, explained, fault, run_work
from skipstone.models.fast import build

NOBODY = 65_534
"""A user who may write nowhere: permissions do not stop the first one."""

UNKNOWN = 54_321
"""A user that the system has never heard of, who has no home either."""


def attack_with_disks(tally: Tally, trials: int, seed: int) -> None:
    """Fill the disk in the middle of a training, then make room; write where nobody can."""
    chance, folder = random.Random(seed), Path("run").absolute()
    reference = undisturbed(folder)
    if reference.fault:
        tally.count("a training that nobody disturbs", reference.fault)
        return
    write_log(Path("log.csv"))
    others = [_no_home, _as_a_file, _no_such_home, _in_proc, _unknown_user, _read_only]
    for number in range(trials):
        if number % 2:
            act = others[number // 2 % len(others)]
            tally.count(act.__name__.strip("_"), act())
            continue
        shutil.rmtree(folder, ignore_errors=True)
        checkpoints = chance.randrange(len(reference.sizes))
        most = chance.randrange(reference.sizes[checkpoints])
        failure = _full(folder, reference, checkpoints, most)
        tally.count(f"full at {most} bytes after {checkpoints} checkpoints", failure)


def _full(folder: Path, reference: Reference, checkpoints: int, most: int) -> str | None:
    """Train where no file can have more than so many bytes, once there are so many checkpoints: an
    older one stays, and nothing half written does."""
    steps = Steps()

    def work() -> None:
        limit_after(folder, checkpoints, most)
        train(folder, steps)

    ended = run_work(explained(work))
    if failure := _refused(ended):
        return failure
    if left := [path.name for path in folder.rglob("*.partial")]:
        return f"leaves {left[0]}"
    saved = checkpoints * RECIPE.checkpoint_every
    return lost(folder, reference.weights, steps.taken, saved)


def _no_home() -> str | None:
    """Without a home that anybody has set."""
    return _homeless(None)


def _no_such_home() -> str | None:
    """With a home that does not exist, and never will."""
    return _homeless("/proc/none")


def _unknown_user() -> str | None:
    """Without a home, and without a user whose home the system could look up."""
    return _homeless(None, UNKNOWN)


def _homeless(home: str | None, user: int | None = None) -> str | None:
    """Trainings on a table and on a task, whose data are kept at home, work all the same."""
    place = Path("homeless").absolute()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copy("log.csv", place / "log.csv")
    for path in (Path().absolute(), place):
        path.chmod(0o777)

    def moved(*words: str) -> Ended:
        def work() -> None:
            os.environ.pop("HOME", None)
            os.environ.pop("XDG_CACHE_HOME", None)
            if home is not None:
                os.environ.update(HOME=home, XDG_CACHE_HOME=home)
                build.library.cache_clear()  # Compiled code is kept at home, too.
            os.chdir(place)
            if user is not None and os.getuid() == 0:
                os.setgid(user)
                os.setuid(user)
            command(*words)()

        return run_work(work)

    task = ("train", "lines", "rnn", "--preset", "smoke", "--steps", "1", "--quiet")
    table = ("fit", "log.csv", *FIT, "--quiet", "--out", "run")
    for words, run in ((table, "run"), (task, "runs/lines-rnn-smoke-steps1-seed0")):
        if failure := fault(moved(*words), (0,)):
            return f"{words[0]} {failure}"
        if not (place / run / RESULT).is_file():
            return f"{words[0]} ends with 0 without a result"
    if (place / "~").exists():
        return "makes a folder that is called ~"
    return None


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
