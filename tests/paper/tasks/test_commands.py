"""The commands as a user runs them, and the pictures they write."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest

from skipstone.paper.figures.sheets import draw_sheet, draw_video
from skipstone.paper.figures.track import track_of
from skipstone.paper.tasks import TASKS, find_task, record, task_options
from skipstone.paper.tasks.registry import task_shapes

WITHOUT_TORCH = """
import sys
from skipstone.cli import main
sys.argv = ["skipstone", *{arguments}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = {{"torch", "lightning", "matplotlib"}} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("arguments", [["--help"], ["tasks"], ["show", "--help"]])
def test_lists_and_help_load_nothing_heavy(arguments: Any) -> None:
    code = WITHOUT_TORCH.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def skipstone(*arguments: Any) -> Any:
    code = "import sys; from skipstone.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_tasks_lists_every_task_in_one_line_each() -> None:
    lines = skipstone("tasks").stdout.splitlines()
    # Other tests may have registered tasks of their own.
    for name in list(TASKS)[:7]:
        task = TASKS[name]
        (line,) = [line for line in lines if line.strip().startswith(name)]
        assert task_shapes(task)[0] in line
        assert task.summary in line


def test_shapes_in_the_list() -> None:
    shapes = {name: task_shapes(task) for name, task in TASKS.items()}
    assert shapes["lines"] == ("10,000×21×2", "")
    assert shapes["pixels2d"] == ("10,000×45×784", "")
    assert shapes["shots"] == ("50,000×39×4", "2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "billiard2d"], "error: there is no task 'billiard2d'. Did you mean billiards2d"),
        (["show", "lines", "--out", "a.doc"], "error: the file's suffix must be one of .png"),
        (["show", "lines", "--video", "a.avi"], "error: the file's suffix must be one of .mp4"),
        (["show", "lines", "--count", "0"], "error: trajectories must be at least 1"),
    ],
)
def test_mistakes_are_one_line_and_code_two(arguments: Any, message: str) -> None:
    done = skipstone(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


def test_show_writes_what_it_says(tmp_path: Path) -> None:
    sheet, video = tmp_path / "new" / "sheet.png", tmp_path / "new" / "film.gif"
    done = skipstone("show", "lines", "--out", sheet, "--video", video, "--count", 2)
    assert done.stdout.splitlines() == [f"wrote {sheet}", f"wrote {video}"]
    assert iio.imread(sheet).shape[1] > 500


def recorded(name: str, count: int, **options: Any) -> Any:
    task = find_task(name)
    chosen = task_options(task, trajectories=count, observations=12, **options)
    return task, chosen, record(task, chosen)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("count", [1, 5])
def test_every_task_can_be_drawn(name: str, count: int, tmp_path: Path) -> None:
    figure = draw_sheet(*recorded(name, count, jitter=0.5, drop=0.3))
    path = tmp_path / "sheet.png"
    figure.savefig(path)
    image = iio.imread(path)[..., :3]
    assert (image < 250).any(axis=-1).mean() > 0.001


def test_a_track_is_the_true_path_as_far_as_it_has_come() -> None:
    _, _, recording = recorded("billiards1d", 3, jitter=0.9)
    track = track_of(recording, 1)
    assert len(track.times) == 12 + len(recording.events[1])
    assert (
        np.abs(np.diff(track.positions, axis=0) / np.diff(track.times)[:, None, None]) < 1.001
    ).all()
    half = track.until(0.25)
    assert half.times[-1] == 0.25
    assert (half.events.times <= 0.25).all()
    assert track.until(99.0).times[-1] == track.times[-1]


@pytest.mark.parametrize("name", ["billiards1d", "billiards2d"])
def test_every_collision_is_marked(name: str) -> None:
    task, options, recording = recorded(name, 4, jitter=0.5)
    figure = draw_sheet(task, options, recording)
    for row, panel in enumerate(figure.axes[:4]):
        dots = {"white": 0, "ball": 0}
        for line in panel.lines:
            if line.get_marker() == "o":
                kind = "white" if line.get_markerfacecolor() == "white" else "ball"
                dots[kind] += np.size(line.get_xdata())
        kinds = recording.events[row].kinds
        assert dots == {"white": (kinds == 0).sum(), "ball": (kinds == 1).sum()}


# Reading an mp4 back leaves a pipe to ffmpeg for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("name", "suffix"), [("billiards1d", ".gif"), ("shots", ".mp4"), ("pixels2d", ".mp4")]
)
def test_videos_move(name: str, suffix: str, tmp_path: Path) -> None:
    task, options, recording = recorded(name, 2)
    path = tmp_path / f"film{suffix}"
    draw_video(task, options, recording, path)
    frames = iio.imread(path)
    assert frames.shape[0] >= 12
    assert frames.shape[1] % 2 == frames.shape[2] % 2 == 0
    assert np.abs(frames[-1].astype(int) - frames[0]).max() > 100
