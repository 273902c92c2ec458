"""Code blocks of Markdown pages, and printed output compared by its shape."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d*)?(e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A Python block of a page, and the output block right below it, if there is one."""

    page: Path
    line: int
    code: str
    printed: str | None


def python_blocks(page: Path) -> list[Block]:
    """The Python blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text[: found.start()].count("\n") + 2, found["code"], found["printed"])
        for found in _BLOCK.finditer(text)
    ]


def run_markdown_blocks(page: Path) -> str:
    """Run a page's blocks one after another, as its reader would, and check what they print.

    Blocks share their names. Returns everything that was printed.
    """
    module, everything = ModuleType("page"), ""
    sys.modules["page"] = module  # Dataclasses look their module up.
    for block in python_blocks(page):
        # Empty lines, so that a traceback names the page's own line.
        lines = "\n" * (block.line - 1) + block.code
        code = compile(lines, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as caught:
            exec(code, vars(module))
        everything += caught.getvalue()
        if block.printed is not None:
            assert shape_of(caught.getvalue()) == shape_of(block.printed), f"{page}:{block.line}"
    return everything


def shape_of(text: str) -> str:
    """A text with every number replaced and blanks squeezed: machines round differently."""
    squeezed = re.sub(r"[ \t]+", " ", _NUMBER.sub("0", text))
    return re.sub(r"(?<=[\[(]) | (?=[\])])", "", squeezed).strip()
