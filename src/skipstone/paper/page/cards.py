"""Cards of the report page: tables, figures and videos as HTML that needs no other file."""

from __future__ import annotations

import base64
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from skipstone.errors import InvalidInput

PNG = b"\x89PNG\r\n\x1a\n"
"""First bytes of every PNG file; its width and height follow at byte 16."""

WIDE = 960
"""Figures of at least so many pixels take the page's whole width, smaller ones half of it."""

VIDEO_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
"""Media types of videos, by their files' suffixes."""

NUMBER = re.compile(r"[-+−±<>≈~]?[\d.,]+(e[-+]?\d+)?\s?[%×]?([ ±(\[].*)?|[-–—]?")
"""A number as tables show it, perhaps with an interval after it, or the dash of a missing one."""


@dataclass(frozen=True)
class Card(ABC):
    """A box with a heading."""

    title: str
    """The heading."""
    caption: str
    """What there is to see, and what to compare."""

    @abstractmethod
    def html(self) -> str:
        """The card as HTML."""

    def _card(self, content: str, wide: bool = False) -> str:
        caption = f'<p class="caption">{escape(self.caption)}</p>' if self.caption else ""
        return (
            f'<article class="card{" wide" if wide else ""}"><h3>{escape(self.title)}</h3>'
            f"{caption}\n{content}</article>"
        )

    def _scroll(self, content: str) -> str:
        """A box that scrolls on a narrow screen; focus lets the arrow keys scroll it."""
        region = f'tabindex="0" role="region" aria-label="{escape(self.title)}"'
        return f'<div class="scroll" {region}>{content}</div>'


@dataclass(frozen=True)
class TableCard(Card):
    """Rows of text under columns; columns of numbers are set flush right."""

    columns: Sequence[str]
    """The heads of columns."""
    rows: Sequence[Sequence[str]]
    """One text for each column."""
    groups: Sequence[tuple[str, int]] = ()
    """Heads above the heads: a text, and how many columns it is about."""

    def html(self) -> str:
        """The table, in a box that scrolls."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInput(
                    f"every row of {self.title!r} must have {len(self.columns)} cells, one for "
                    f"each column; got {len(row)}: {list(row)}."
                )
        kinds = [_number_class(column) for column in zip(*self.rows, strict=True)]
        kinds = kinds or [""] * len(self.columns)
        head = self._group_heads() + _row(self.columns, kinds, "th", ' scope="col"')
        body = "\n".join(_row(row, kinds, "td") for row in self.rows)
        table = f"<table><thead>{head}</thead>\n<tbody>\n{body}</tbody></table>"
        return self._card(self._scroll(table))

    def _group_heads(self) -> str:
        """The row of the groups, if there are any."""
        cells = [
            f'<th class="group" colspan="{width}" scope="colgroup">{escape(text)}</th>'
            if text
            else f'<td colspan="{width}"></td>'
            for text, width in self.groups
        ]
        return f"<tr>{''.join(cells)}</tr>\n" if cells else ""


@dataclass(frozen=True)
class FigureCard(Card):
    """A picture from a PNG file, which is copied into the page."""

    path: Path
    """The file."""
    alt: str = ""
    """The picture in words, for readers who cannot see it; the title if empty."""

    def html(self) -> str:
        """The picture, with its size, so that the page does not jump when it appears."""
        content = _read(self.path)
        if not content.startswith(PNG):
            raise InvalidInput(f"a figure must be a PNG file; {self.path} is something else.")
        width, height = struct.unpack(">II", content[16:24])
        image = (
            f'<img style="--natural: {width}px" width="{width}" height="{height}" '
            f'alt="{escape(self.alt or self.title)}" src="{_data_uri("image/png", content)}">'
        )
        return self._card(self._scroll(image), wide=width >= WIDE)


@dataclass(frozen=True)
class VideoCard(Card):
    """A video from an mp4 or gif file, which is copied into the page: 4/3 of its size."""

    path: Path
    """The file."""

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
            options = 'controls loop muted playsinline preload="metadata"'
            shown = f'<video {options} aria-label="{title}" src="{source}"></video>'
        # Panels side by side are wide: half a page would leave them too small to see.
        return self._card(shown, wide=True)


def _number_class(column: Sequence[str]) -> str:
    return ' class="number"' if all(NUMBER.fullmatch(text.strip()) for text in column) else ""


def _row(texts: Sequence[str], kinds: Sequence[str], tag: str, scope: str = "") -> str:
    cells = (
        f"<{tag}{scope}{kind}>{escape(text)}</{tag}>"
        for text, kind in zip(texts, kinds, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


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
