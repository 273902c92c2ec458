"""The same grid on a Ray cluster of two machines, both of them this one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skipstone.paper.worker import Report
from test_grid import CHECKPOINT, FOREIGN, PCODE, RNN, Recorder, foreign_folder, record

from skipstone.paper.grid import run_grid
from skipstone.paper.jobs import Job
from skipstone.training.run import read_tensors

# Ray warns of its own future, and leaves files and processes for later.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'skipstone[ray]'")
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


def test_a_grid_runs_on_two_nodes(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_folder(tmp_path)
    recorder = record(monkeypatch, Recorder())
    other = Job(task="circles", model="rnn", preset="smoke", seed=1)
    outcomes = run_grid([PCODE, other, FOREIGN], tmp_path, ray=address)
    failures = {outcome.job: outcome.failure for outcome in outcomes}
    assert "is not empty and not a run" in str(failures.pop(FOREIGN))
    assert failures == {RNN: None, PCODE: None, other: None}
    runs = {outcome.job: outcome.run for outcome in outcomes}
    assert runs[PCODE].config["tolerance"] == runs[RNN].result["training_loss"]
    # A node has one core: jobs that ran side by side ran on both nodes.
    ends = [index for index, line in enumerate(recorder.lines) if not line.endswith("runs")]
    assert {f"{RNN.name} runs", f"{other.name} runs"} <= set(recorder.lines[: ends[0]])
    assert runs[RNN].result["machine"]["threads"] == 1


def test_ctrl_c_saves_what_runs_on_the_cluster(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(task="circles", model="rnn", preset="cpu", hidden=8, steps=1_000_000)

    def interrupt(name: str, report: Report) -> None:
        if report.step > 0:
            raise KeyboardInterrupt

    record(monkeypatch, Recorder(interrupt))
    with pytest.raises(KeyboardInterrupt, match="resume"):
        run_grid([job], tmp_path, ray=address)
    saved = json.loads(read_tensors(tmp_path / job.name / CHECKPOINT)[1]["progress"])
    # Before the first checkpoint that is due: saved because it was asked to stop.
    assert 0 < saved["step"] < job.recipe.checkpoint_every
