"""What docs/tasks.md shows runs, and a task made as it says is drawn and loaded like any other."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import skipstone
from skipstone.paper.figures import sheets
from skipstone.paper.tasks import TASKS, record
from skipstone.paper.tasks.listing import task_shapes

PAGE = Path(__file__).parents[3] / "docs" / "tasks.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_runs(block):
    exec(block, {})


def test_the_new_task_works_once_registered(monkeypatch):
    names: dict = {}
    exec(BLOCKS[-1], names)
    task = names["SPIRALS"]
    monkeypatch.setitem(TASKS, task.name, task)
    data = skipstone.load_task("spirals", trajectories=100, jitter=0.5, drop=0.2)
    assert len(data.train) == 81
    assert task_shapes(task) == ("10,000×30×2", "")
    few = replace(task.options, trajectories=4)
    assert len(sheets.draw_sheet(task, few, record(task, few)).axes) == 4


def test_the_table_has_the_true_shapes():
    rows = dict(re.findall(r"^\| `(\w+)`.*?\| ([\d,]+ × \d+ × \d+) \|", PAGE.read_text(), re.M))
    for name, shape in rows.items():
        assert shape.replace(" ", "") == task_shapes(TASKS[name])[0]
    assert len(rows) == 6


def test_the_stated_chance_that_the_target_starts_in_the_pocket():
    from skipstone.paper.tasks.shots import POCKET, POCKET_RADIUS, TARGET, random_tables

    target = random_tables(np.random.default_rng(0), 200_000)[:, TARGET]
    share = (np.linalg.norm(target - POCKET, axis=-1) < POCKET_RADIUS).mean()
    assert 0.0005 < share < 0.002
