"""Trainings in processes of their own: killed at random moments, or sharing their work."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from skipstone.locks import HOLDER
from skipstone.models.tensors import read_tensors
from skipstone.training.run import Run

SCRIPT = Path(__file__).with_name("train_script.py")
STEPS = 120


def start(folder: Path, steps: int, devices: int = 1, *more: int) -> subprocess.Popen[str]:
    arguments = [str(SCRIPT), str(folder), *(str(n) for n in (steps, devices, *more))]
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    return errors


def kill_at_random(process: subprocess.Popen[str], checkpoint: Path, seed: int) -> bool:
    """Kill a training some random time after its next checkpoint; False if it finished first."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    while process.poll() is None:
        if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
            time.sleep(random.Random(seed).uniform(0, 0.4))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return process.returncode == -signal.SIGKILL
        time.sleep(0.005)
    return False


def test_a_killed_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    undisturbed = start(tmp_path / "whole", STEPS)
    kills = 0
    for seed in range(2):
        process = start(tmp_path / "killed", STEPS)
        if not kill_at_random(process, tmp_path / "killed" / "checkpoint.safetensors", seed):
            break
        kills += 1
    assert kills >= 2
    finish(start(tmp_path / "killed", STEPS))
    finish(undisturbed)
    whole, killed = Run(tmp_path / "whole"), Run(tmp_path / "killed")
    assert killed.result["steps"] == STEPS
    assert killed.result["weights_sha256"] == whole.result["weights_sha256"]
    assert killed.result["training_loss"] == whole.result["training_loss"]
    # Nothing half-written is left behind for long: a partial file is never read.
    assert not list((tmp_path / "whole").glob(".*.partial"))


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_sigterm_saves_says_how_to_resume_and_ends_with_143(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, 1_000_000)
    wait_for(folder / "checkpoint.safetensors", process)
    process.terminate()
    errors = finish(process, code=143)
    step = json.loads(read_tensors(folder / "checkpoint.safetensors")[1]["progress"])["step"]
    assert errors == (
        f"stopped after step {step}; everything is in {folder}. Start the same training again to "
        "resume it.\n"
    )
    assert not (folder / HOLDER).exists()


@pytest.mark.slow
def test_a_signal_to_one_of_two_processes_ends_both_at_the_same_step(tmp_path: Path) -> None:
    process = start(tmp_path / "run", 1_000_000, 2)
    wait_for(tmp_path / "run" / "checkpoint.safetensors", process)
    process.terminate()  # The first alone: the pipe is closed when both have ended.
    assert "stopped after step" in finish(process, code=143)


@pytest.mark.slow
def test_of_three_trainings_in_one_folder_one_trains_and_two_say_who_does(tmp_path: Path) -> None:
    first = start(tmp_path / "run", 1_000_000)
    wait_for(tmp_path / "run" / "checkpoint.safetensors", first)
    for process in [start(tmp_path / "run", 1_000_000) for _ in range(2)]:
        errors = finish(process, code=1)
        assert f"can train in {tmp_path / 'run'}; process {first.pid} on " in errors
    first.terminate()
    finish(first, code=143)
    finish(start(tmp_path / "run", 1_000_000, 1, 1), code=-signal.SIGINT)


def test_two_processes_get_the_gradients_of_one(tmp_path: Path) -> None:
    """The right moments after one step are products of the gradients of weights."""
    alone = start(tmp_path / "one", 10, 1, 1)
    assert "stopped after step 1" in finish(alone, code=-signal.SIGINT)
    together = start(tmp_path / "two", 10, 2, 1)
    assert "stopped after step 1" in finish(together, code=-signal.SIGINT)
    one, two = (
        read_tensors(tmp_path / name / "checkpoint.safetensors")[0] for name in ("one", "two")
    )
    moments = [name for name in one if name.endswith("right")]
    assert len(moments) > 5
    for name in moments:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-8)
