"""`write_page`: everything that a reproduction found, in one file that opens anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from skipstone.drawing.style import PALETTE
from skipstone.files import write_text
from skipstone.paper.examples import Example
from skipstone.paper.page.content import Figure, Table, Video
from skipstone.paper.page.replay import replay

SCRIPTS = ("draw.js", "panels.js", "viewer.js")
"""One module in three files, in this order."""


def write_page(
    path: Path,
    *,
    title: str = "Piecewise-constant neural ODEs: the paper's results, and ours",
    summary: str | Sequence[str],
    tables: Sequence[Table] = (),
    figures: Sequence[Figure] = (),
    videos: Sequence[Video] = (),
    examples: Sequence[Example] = (),
    about: Mapping[str, str],
) -> None:
    """Write a page that needs no other file and no network.

    `summary` is a paragraph or several, the first of which stands out. A section without content
    is left out. `about` says where the numbers come from (version, commit, machine, date, command);
    the footer shows it.
    """
    paragraphs = [summary] if isinstance(summary, str) else summary
    sections = {
        "watch": ("Watch", _viewer(examples) if examples else ""),
        "results": ("Results", "\n".join(table.html() for table in tables)),
        "figures": ("Figures", _grid([figure.html() for figure in figures])),
        "videos": ("Videos", _grid([video.html() for video in videos])),
    }
    shown = {name: section for name, section in sections.items() if section[1]}
    page = Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_palette() + _asset("page.css"),
        summary="\n".join(f"<p>{escape(text)}</p>" for text in paragraphs),
        contents=_contents(shown),
        sections="\n".join(_section(name, *section) for name, section in shown.items()),
        about=_about(about),
        script="".join(_asset(name) for name in SCRIPTS),
    )
    write_text(path, page)


def _asset(name: str) -> str:
    return files("skipstone.paper.page").joinpath(name).read_text(encoding="utf-8")


def _palette() -> str:
    """The colours of all figures, as names that the style sheet uses."""
    names = "".join(f"--palette-{index}:{colour};" for index, colour in enumerate(PALETTE))
    return f":root{{{names}}}\n"


def _viewer(examples: Sequence[Example]) -> str:
    data = embedded_json([replay(example) for example in examples])
    return f'{_asset("viewer.html")}<script type="application/json" id="examples">{data}</script>'


def embedded_json(content: Any) -> str:
    """JSON that is safe between script tags: no text in it can end the script."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _contents(sections: Mapping[str, tuple[str, str]]) -> str:
    return "\n".join(f'<a href="#{name}">{title}</a>' for name, (title, _) in sections.items())


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title">\n' + (
        f'<h2 id="{name}-title">{title}</h2>\n{content}\n</section>'
    )


def _grid(cards: Sequence[str]) -> str:
    return f'<div class="grid">{"".join(cards)}</div>' if cards else ""


def _about(about: Mapping[str, str]) -> str:
    return "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in about.items()
    )
