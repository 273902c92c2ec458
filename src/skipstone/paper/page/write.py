"""`write_page`: all results of a reproduction in one HTML file."""

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
from skipstone.paper.page.cards import FigureCard, TableCard, VideoCard
from skipstone.paper.page.replay import replay

SCRIPTS = ("draw.js", "panels.js", "player.js", "viewer.js")
"""Parts of the page's one script, in this order."""


def write_page(
    path: Path,
    *,
    title: str = "Piecewise-constant neural ODEs: the paper's results, and ours",
    summary: str | Sequence[str],
    findings: TableCard | None = None,
    tables: Sequence[TableCard] = (),
    figures: Sequence[FigureCard] = (),
    videos: Sequence[VideoCard] = (),
    examples: Sequence[Example] = (),
    playground: str = "",
    about: Mapping[str, str],
) -> None:
    """Write a page that needs no other file and no network.

    `summary` is one paragraph or several; the first stands out. `findings` is the one table that
    everybody should see: it follows the first paragraph. Empty sections are left out.
    `playground` is a page beside this one to link to. The footer shows `about`: where the numbers
    come from (version, commit, machine, date, command).
    """
    first, *others = [summary] if isinstance(summary, str) else summary
    sections = {
        "watch": ("Watch", _viewer(examples, playground) if examples else ""),
        "results": ("Results", "\n".join(table.html() for table in tables)),
        "figures": ("Figures", _grid(figures)),
        "videos": ("Videos", _grid(videos)),
    }
    shown = {name: section for name, section in sections.items() if section[1]}
    page = Template(page_asset("page.html")).substitute(
        title=escape(title),
        style=palette() + page_asset("page.css"),
        summary=_paragraphs([first]),
        findings=findings.html() if findings else "",
        details=_paragraphs(others),
        contents="\n".join(f'<a href="#{name}">{head}</a>' for name, (head, _) in shown.items()),
        sections="\n".join(_section(name, *section) for name, section in shown.items()),
        about="\n".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
            for name, text in about.items()
        ),
        script="".join(page_asset(name) for name in SCRIPTS),
    )
    write_text(path, page)


def page_asset(name: str) -> str:
    """A file of this folder."""
    return files("skipstone.paper.page").joinpath(name).read_text(encoding="utf-8")


def palette() -> str:
    """The colours of all figures as variables of the style sheet."""
    names = "".join(f"--palette-{index}:{colour};" for index, colour in enumerate(PALETTE))
    return f":root{{{names}}}\n"


def _viewer(examples: Sequence[Example], playground: str) -> str:
    data = embedded_json([replay(example) for example in examples])
    link = (
        f'<p class="lead">Or set the balls yourself, in the <a href="{escape(playground)}">'
        "playground</a>, where the models run in your browser.</p>\n"
    )
    viewer = Template(page_asset("viewer.html")).substitute(
        controls=page_asset("controls.html"), playground=link if playground else ""
    )
    return f'{viewer}<script type="application/json" id="examples">{data}</script>'


def embedded_json(content: Any) -> str:
    """JSON that is safe between script tags: no text in it can end the script."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _paragraphs(texts: Sequence[str]) -> str:
    words = "\n".join(f"<p>{escape(text)}</p>" for text in texts)
    return f'<div class="summary">\n{words}\n</div>' if words else ""


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title">\n' + (
        f'<h2 id="{name}-title">{title}</h2>\n{content}\n</section>'
    )


def _grid(cards: Sequence[FigureCard | VideoCard]) -> str:
    return f'<div class="grid">{"".join(card.html() for card in cards)}</div>' if cards else ""
