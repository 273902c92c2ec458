"""What a page shows, each as a piece of HTML that needs no other file."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from skipstone.errors import InvalidInput

PNG = b"\x89PNG\r\n\x1a\n"
"""How every such file begins; its width and height follow at byte 16."""

WIDE = 960
"""A figure of so many pixels or more takes the page's whole width, a smaller one half of it."""

VIDEO_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
"""Kinds of videos, by their files' suffixes."""

NUMBER = re.compile(r"[-+−±<>≈~]?[\d.,]+(e[-+]?\d+)?\s?[%×]?([ ±(\[].*)?|[-–—]?")
"""A number as tables show it, perhaps with an interval after it, or the dash of a missing one."""


@dataclass(frozen=True)
class Table:
    """Rows of text under columns; columns of numbers are set flush right."""

    title: str
    """A heading."""
    caption: str
    """What the numbers mean, and what to compare."""
    columns: Sequence[str]
    """The heads of columns."""
    rows: Sequence[Sequence[str]]
    """One text for each column."""

    def html(self) -> str:
        """The table, in a box that scrolls when the screen is narrow."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInput(
                    f"every row of {self.title!r} must have {len(self.columns)} cells, one for "
                    f"each column; got {len(row)}: {list(row)}."
                )
        classes = [_column_class(column) for column in zip(*self.rows, strict=True)]
        classes = classes or [""] * len(self.columns)
        head = _cells(self.columns, classes, 'th scope="col"')
        body = "".join(f"<tr>{_cells(row, classes, 'td')}</tr>\n" for row in self.rows)
        return (
            f'<article class="card">{_heading(self.title, self.caption)}\n'
            # Focus lets the arrow keys scroll it.
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">\n'
            f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"
            "</div></article>"
        )


@dataclass(frozen=True)
class Figure:
    """A picture from a PNG file."""

    title: str
    """A heading."""
    caption: str
    """What there is to see."""
    path: Path
    """The file; the page gets a copy of what is in it."""
    alt: str = ""
    """The picture in words, for who cannot see it; the title if there are none."""

    def html(self) -> str:
        """The picture, with its size, so that the page does not jump when it appears."""
        content = _read(self.path)
        if not content.startswith(PNG):
            raise InvalidInput(f"a figure must be a PNG file; {self.path} is something else.")
        width, height = struct.unpack(">II", content[16:24])
        return (
            f'<article class="card{" wide" if width >= WIDE else ""}">'
            f"{_heading(self.title, self.caption)}\n"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">'
            f'<img style="--natural: {width}px" width="{width}" height="{height}" '
            f'alt="{escape(self.alt or self.title)}" src="{_data_uri("image/png", content)}">'
            "</div></article>"
        )


@dataclass(frozen=True)
class Video:
    """A video from an mp4 or gif file. It grows the page by 4/3 of its size."""

    title: str
    """A heading."""
    caption: str
    """What there is to see."""
    path: Path
    """The file; the page gets a copy of what is in it."""

    def html(self) -> str:
        """The video, which stands still until somebody starts it."""
        if self.path.suffix not in VIDEO_TYPES:
            kinds = " or ".join(VIDEO_TYPES)
            raise InvalidInput(f"a video must be a file in {kinds}; got {str(self.path)!r}.")
        source = _data_uri(VIDEO_TYPES[self.path.suffix], _read(self.path))
        title = escape(self.title)
        if self.path.suffix == ".gif":
            # Browsers play every gif they show: this one is shown when somebody opens it.
            shown = f'<details><summary>Play</summary><img alt="{title}" src="{source}"></details>'
        else:
            shown = (
                f'<video controls loop muted playsinline preload="metadata" aria-label="{title}" '
                f'src="{source}"></video>'
            )
        # Panels side by side are wide: half a page would leave them too small to see.
        return f'<article class="card wide">{_heading(self.title, self.caption)}\n{shown}</article>'


def _heading(title: str, caption: str) -> str:
    text = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    return f"<h3>{escape(title)}</h3>{text}"


def _cells(texts: Sequence[str], classes: Sequence[str], tag: str) -> str:
    name = tag.partition(" ")[0]
    return "".join(
        f"<{tag}{kind}>{escape(text)}</{name}>" for text, kind in zip(texts, classes, strict=True)
    )


def _column_class(texts: Sequence[str]) -> str:
    return ' class="number"' if all(NUMBER.fullmatch(text.strip()) for text in texts) else ""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"a page must be made of files that exist; {path} cannot be read: "
            f"{error.strerror or error}. Draw it before the page is written."
        ) from error


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
