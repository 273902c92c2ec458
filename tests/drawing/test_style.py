"""Styles tell series apart, and files are what their names say."""

from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from skipstone.drawing.style import (
    PALETTE,
    Style,
    animate,
    faded,
    frame_times,
    look,
    new_figure,
    panel_grid,
    save_figure,
    series_styles,
    styled,
    write_video,
)
from skipstone.errors import InvalidInput


def test_unknown_series_get_colours_that_no_known_one_has() -> None:
    known = {"a": Style(PALETTE[0], "o", "-"), "b": Style(PALETTE[2], "s", "-")}
    styles = series_styles(["x", "a", "y"], known)
    assert list(styles) == ["x", "a", "y"]
    assert styles["a"] is known["a"]
    assert [styles["x"].colour, styles["y"].colour] == [PALETTE[1], PALETTE[3]]
    assert styles["x"].marker != styles["y"].marker
    every = {colour: Style(colour, "o", "-") for colour in PALETTE}
    assert series_styles(["z"], every)["z"].colour in PALETTE


def test_fading_goes_from_white_to_the_colour() -> None:
    assert faded("#0072B2", 0) == (1, 1, 1)
    assert faded("#0072B2", 1) == pytest.approx((0, 0x72 / 255, 0xB2 / 255))


def test_a_styled_figure_has_the_look_and_leaves_no_trace() -> None:
    before = mpl.rcParams["axes.spines.top"], mpl.rcParams["figure.dpi"]

    @styled
    def draw() -> Figure:
        assert not mpl.rcParams["axes.spines.top"]
        return new_figure(1, 1)

    assert draw().dpi == 160
    assert (mpl.rcParams["axes.spines.top"], mpl.rcParams["figure.dpi"]) == before


def test_a_grid_hides_what_it_does_not_need() -> None:
    figure, panels = panel_grid(5, 3, (2.0, 1.0), header=0.5)
    assert tuple(figure.get_size_inches()) == (6.0, 2.5)
    assert [axes.get_visible() for axes in figure.axes] == [True] * 5 + [False]
    assert panels == figure.axes[:5]


def test_frames_are_painted_anew_outside_the_look_and_the_last_stays() -> None:
    with look():
        figure = new_figure(1, 1)
        axes = figure.subplots()
        axes.set_xlim(0, 1)
    outside, artists = mpl.rcParams["axes.spines.top"], []

    def paint(moment: float) -> None:
        axes.plot([0, 1], [moment, moment])
        artists.append(len(axes.lines))

    frames = []
    for frame in animate(figure, [0.0, 0.5, 1.0], paint, pause=2):
        assert mpl.rcParams["axes.spines.top"] == outside
        frames.append(frame)
    assert artists == [1, 1, 1]
    assert len(frames) == 5
    assert (frames[0] != frames[1]).any()
    np.testing.assert_array_equal(frames[2], frames[4])
    np.testing.assert_allclose(frame_times(2.0, 3), [0, 0.5, 1, 1.5, 2])


def test_files_are_what_their_suffixes_say(tmp_path: Path) -> None:
    for suffix, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        save_figure(new_figure(1, 1), tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").read_bytes().startswith(start)
    frames = [np.full((16, 16, 3), grey, dtype=np.uint8) for grey in (0, 200)]
    write_video(tmp_path / "video.gif", frames, fps=10)
    assert iio.imread(tmp_path / "video.gif").shape == (2, 16, 16, 3)
    with pytest.raises(InvalidInput, match=r"must be one of \.png, \.pdf, \.svg; got 'a\.doc'"):
        save_figure(new_figure(1, 1), Path("a.doc"))
    with pytest.raises(InvalidInput, match=r"must be one of \.mp4, \.gif"):
        write_video(Path("a.avi"), frames, fps=10)
