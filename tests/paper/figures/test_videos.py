"""Videos play what happened, and count updates as they happen."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from scripted import example

from skipstone.drawing.style import look, new_figure
from skipstone.errors import InvalidInput
from skipstone.paper.figures import videos
from skipstone.paper.figures.models import MODEL_STYLES
from skipstone.paper.figures.painting import (
    paint_flash,
    paint_now,
    prepare_example,
    updates_text,
)

SHORT = {"RNN": [1.0] * 3, "PC-ODE": [2.0]}


@pytest.mark.parametrize("task", ["billiards1d", "billiards2d", "pixels1d", "pixels2d"])
def test_every_moment_is_a_frame_of_the_same_size(task: str) -> None:
    frames = list(videos.play_example(example(task, SHORT, 7), dpi=40))
    still = round(videos.PAUSE * videos.FRAMES_PER_SECOND)
    assert len(frames) == 13 + still
    assert len({frame.shape for frame in frames}) == 1
    assert all((one != other).any() for one, other in pairwise(frames[:13]))
    np.testing.assert_array_equal(frames[12], frames[-1])


def test_titles_count_updates() -> None:
    shown = example("billiards2d", SHORT, 7)
    with look():
        figure, stages = videos._stage(shown, ["RNN", "PC-ODE"], dpi=40)
        assert [title for _, _, title in stages] == [None, "RNN", "PC-ODE"]
        said = []
        for moment in (shown.times[2], shown.times[3], shown.times[5]):
            for panel, strip, title in stages:
                videos._paint(panel, strip, shown.until(moment), title)
            said.append([panel.get_title("right") for panel in figure.axes[1:3]])
    assert said == [["0 updates"] * 2, ["1 update"] * 2, ["3 updates", "2 updates"]]
    assert updates_text(shown, "RNN") == "4 updates"


def test_an_update_flashes_and_fades() -> None:
    shown = example("billiards2d", {"PC-ODE": [4.0]}, 10)
    strengths = []
    with look():
        for moment in shown.times[3:8]:
            axes = new_figure(2, 2).subplots()
            paint_flash(axes, shown.until(moment), "PC-ODE")
            strengths.append([halo.get_alpha() for halo in axes.collections])
    # At the updates, observations 3 and 7, both balls glow; one later less; then no more.
    assert strengths[0] == pytest.approx([0.55, 0.55])
    assert all(0 < alpha < 0.3 for alpha in strengths[1])
    assert strengths[2] == strengths[3] == []
    assert strengths[4] == pytest.approx([0.55, 0.55])


def test_films_show_what_a_model_predicts_after_the_context() -> None:
    shown = example("pixels2d", {"PC-ODE": [2.0]}, 7)
    with look():
        axes = new_figure(2, 2).subplots()
        prepare_example(axes, shown)
        for index, wanted in ((2, shown.values[2]), (5, shown.values[5] + 0.01)):
            paint_now(axes, shown.until(shown.times[index]), "PC-ODE")
            image = np.asarray(axes.images[-1].get_array()).ravel()
            np.testing.assert_allclose(image, np.clip(wanted, 0, 1), atol=1e-6)
        paint_flash(axes, shown.until(shown.times[5]), "PC-ODE")
        edge = axes.spines["left"].get_edgecolor()
    assert edge[:3] == pytest.approx(_rgb(MODEL_STYLES["PC-ODE"].colour))


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


# Reading an mp4 back leaves a pipe to ffmpeg for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_videos_are_small_files_that_move(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"balls{suffix}"
    videos.write_example(example("billiards2d", SHORT, 7), path)
    frames = iio.imread(path)
    assert np.abs(frames[-1].astype(int) - frames[0]).max() > 100
    assert path.stat().st_size < 300_000


def test_what_cannot_be_played_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="to show; got none"):
        next(videos.play_example(example("lines", {}, 7)))
    with pytest.raises(InvalidInput, match=r"must be one of \.mp4, \.gif"):
        videos.write_example(example("lines", SHORT, 7), tmp_path / "a.avi")
