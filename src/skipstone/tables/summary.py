"""Short descriptions of sequences and paths, for a terminal and for a notebook cell."""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from itertools import islice
from typing import Any

from skipstone.errors import printable

MOST = 3
"""Names that are listed; the rest are counted."""

WIDEST = 24
"""Characters of a name that are shown."""


def listed(things: Collection[Any]) -> str:
    """The first few of some names, and how many there are if that is more."""
    shown = [_clipped(str(thing)) for thing in islice(things, MOST)]
    return ", ".join(shown) + (f", … {len(things)} in all" if len(things) > MOST else "")


def html_table(kind: str, facts: dict[str, Any]) -> str:
    """A small table; names and ids come from the user's data, so everything is escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(str(name))}</th>'
        f'<td style="text-align:left">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
    )
    return f"<table><caption>{escape(kind)}</caption><tbody>{rows}</tbody></table>"


def _clipped(text: str) -> str:
    text = printable(text).replace("\n", "�")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
