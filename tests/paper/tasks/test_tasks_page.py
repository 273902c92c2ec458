"""docs/tasks.md says what is true, and a task of one's own is drawn and loaded like any other."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest

import skipstone
from pages import ROOT, python_blocks
from skipstone.paper.figures.sheets import draw_sheet
from skipstone.paper.tasks import TASKS, Observed, Task, record
from skipstone.paper.tasks.registry import task_shapes

PAGE = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "own_task.py"
OWN_TASK = python_blocks(ROOT / "docs" / "own-task.md")[0].code


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # What a test registers is forgotten.
    monkeypatch.setattr(TASKS, "_things", dict(TASKS))


def test_the_example_runs_and_the_command_knows_its_task(tmp_path: Path) -> None:
    def run(*arguments: Any) -> Any:
        command = [sys.executable, str(EXAMPLE), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "Sequences(batch=81, observations=30, dim=2" in run().stdout
    assert "position and velocity of a damped spring" in run("tasks").stdout
    assert "wrote springs.png" in run("show", "springs", "--count", "3").stdout
    assert (tmp_path / "springs.png").stat().st_size > 10_000


def test_the_new_task_works_like_any_other() -> None:
    exec(compile(OWN_TASK, "own-task.md", "exec", dont_inherit=True), {"__name__": __name__})
    task = TASKS["springs"]
    data = skipstone.load_task("springs", trajectories=100, jitter=0.5, drop=0.2, damping=0.4)
    assert len(data.train) == 81
    assert vars(data.options)["damping"] == 0.4
    assert len(data.events["train"]) == 0
    assert task_shapes(task) == ("10,000×30×2", "")
    few = replace(task.options, trajectories=4)
    assert len(draw_sheet(task, few, record(task, few)).axes) == 4
    with pytest.raises(skipstone.InvalidInput, match="springs has no option 'damp'"):
        skipstone.load_task("springs", damp=0.1)
    with pytest.raises(skipstone.InvalidInput, match="'springs' is taken"):
        skipstone.register(Task("springs", "another", task.observe))


@pytest.mark.parametrize(("dim", "dtype", "kind"), [(3, float, "time"), (784, np.uint8, "film")])
def test_own_observations_of_any_width_can_be_drawn(dim: Any, dtype: Any, kind: Any) -> None:
    """Also with controls, which are no shot if there are several."""

    def observe(options: Any, times: Any, rng: Any) -> Any:
        values = 100 * rng.uniform(0, 1, (*times.shape, dim))
        return Observed(values.astype(dtype), controls=np.ones((*times.shape, 1)))

    task = Task("noise", "just noise", observe)
    few = replace(task.options, trajectories=2, observations=8)
    assert task.scene(few).kind == kind
    figure = draw_sheet(task, few, record(task, few))
    if kind == "time":
        assert figure.axes[0].get_ylim()[1] > 50


def test_the_table_has_the_true_shapes() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`.*?\| ([\d,]+ × \d+ × \d+) \|", PAGE, re.M))
    for name, shape in rows.items():
        assert shape.replace(" ", "") == task_shapes(TASKS[name])[0]
    assert len(rows) == 6


def test_the_stated_chance_that_the_target_starts_in_the_pocket() -> None:
    from skipstone.paper.tasks.shots import POCKET, POCKET_RADIUS, TARGET, random_tables

    target = random_tables(np.random.default_rng(0), 200_000)[:, TARGET]
    share = (np.linalg.norm(target - POCKET, axis=-1) < POCKET_RADIUS).mean()
    assert 0.0005 < share < 0.002
