"""The same grid on a Ray cluster of two machines, both of them this one."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import own_models
import pytest
from test_grid import FOREIGN, PCODE, RNN, TASK, foreign_folder

from skipstone.models.tensors import read_tensors
from skipstone.paper.grid import run_grid
from skipstone.paper.jobs import Job
from skipstone.training.run import CHECKPOINT

# Ray warns of its own future, and leaves files and processes for later.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'skipstone[ray]'")
    from ray.cluster_utils import Cluster

    # Its workers have to find the models of the tests, too.
    there, before = str(Path(own_models.__file__).parent), os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([there, before])
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()
    os.environ["PYTHONPATH"] = before


def test_a_grid_runs_on_two_nodes(address: str, tmp_path: Path) -> None:
    foreign_folder(tmp_path)
    mine = Job(task=TASK, model="mine", preset="smoke")
    failing = Job(task=TASK, model="own_models:Failing", preset="smoke")
    outcomes = run_grid([PCODE, RNN, mine, failing, FOREIGN], tmp_path, ray=address, progress=False)
    failures = {outcome.job.name: outcome.failure for outcome in outcomes}
    assert "is not empty and not a run" in str(failures.pop(FOREIGN.name))
    assert "RuntimeError: it broke" in str(failures.pop(failing.name))
    assert failures == {PCODE.name: None, RNN.name: None, mine.name: None}
    assert all(o.run.evaluation for o in outcomes if o.failure is None)


def test_ctrl_c_saves_what_runs_on_the_cluster(address: str, tmp_path: Path) -> None:
    job = Job(task=TASK, model="rnn", preset="smoke", steps=1_000_000)
    file = tmp_path / job.name / CHECKPOINT

    def interrupt() -> None:
        while not file.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt, match="goes on from there"):
        run_grid([job], tmp_path, ray=address, progress=False)
    saved = json.loads(read_tensors(file)[1]["progress"])
    # Saved because it was asked to stop: the checkpoints that are due come every ten steps.
    assert saved["step"] > 0
