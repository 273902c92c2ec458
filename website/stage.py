"""A copy of docs/ that a site can be made of: links that leave the folder get a place on the site.

Figures and numbers under results/ are copied. Source files become pages. Folders are only named. In
`api.md` a comment such as `<!-- api: skipstone.Sequences -->` becomes the reference of that name.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent

PROJECT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages beside docs/, which are part of the site."""

STYLE = Path(__file__).with_name("site.css")
"""The site's own style, beside its theme's."""

COPIED = {".png", ".gif", ".mp4", ".svg", ".html", ".json", ".csv"}
"""Suffixes of files that are copied as they are; other files become pages."""

LANGUAGES = {".py": "python", ".h": "cpp", ".cpp": "cpp", ".md": "markdown", ".cff": "yaml"}
"""Languages of source files, by suffix."""

_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_API = re.compile(r"^<!-- api: (?P<names>.+?) -->$", re.MULTILINE)
_ENTRY = re.compile(r"^ *- [^:\n]+: (?P<page>\S+\.md)\n", re.MULTILINE)


@dataclass
class Stage:
    """A staged copy in the making."""

    folder: Path
    """Where the pages go."""

    root: Path = ROOT
    """The repository."""

    made: set[PurePosixPath] = field(default_factory=set)
    """Files outside docs/ that have a place already."""

    def page(self, source: PurePosixPath, target: PurePosixPath) -> None:
        """Write a Markdown page of the repository to its place on the site."""
        text = (self.root / source).read_text(encoding="utf-8")
        parts, end = [], 0
        for fence in _FENCE.finditer(text):
            parts += [self._prose(text[end : fence.start()], source, target), fence[0]]
            end = fence.end()
        self._write(target, "".join([*parts, self._prose(text[end:], source, target)]))

    def _prose(self, text: str, source: PurePosixPath, target: PurePosixPath) -> str:
        text = _LINK.sub(lambda link: self._link(link, source, target), text)
        return _API.sub(lambda found: _references(found["names"]), text)

    def _link(self, link: re.Match[str], source: PurePosixPath, target: PurePosixPath) -> str:
        wanted = PurePosixPath(os.path.normpath(source.parent / link["target"]))
        if not (self.root / wanted).exists():
            return link[0]  # The builder says what is wrong with it.
        if (self.root / wanted).is_dir():
            return link["text"].removeprefix("[").removesuffix("]")
        place = self._place(wanted)
        address = os.path.relpath(place, target.parent)
        return f"{link['text']}({address}{link['anchor'] or ''})"

    def _place(self, wanted: PurePosixPath) -> PurePosixPath:
        """Where a file of the repository is on the site; files outside docs/ are put there."""
        if wanted.parts[0] == "docs":
            return wanted.relative_to("docs")
        if str(wanted) in PROJECT:
            return project_place(wanted)
        if wanted.suffix in COPIED:
            place = PurePosixPath("files") / wanted
            if wanted not in self.made:
                self.made.add(wanted)
                (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / wanted, self.folder / place)
            return place
        place = PurePosixPath("source") / f"{wanted}.md"
        if wanted not in self.made:
            self.made.add(wanted)
            code = (self.root / wanted).read_text(encoding="utf-8").rstrip()
            head = f"---\nsearch:\n  exclude: true\n---\n\n# {wanted}\n\n"
            self._write(place, f"{head}~~~~{LANGUAGES.get(wanted.suffix, '')}\n{code}\n~~~~\n")
        return place

    def _write(self, place: PurePosixPath, text: str) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def project_place(page: PurePosixPath) -> PurePosixPath:
    """Where a page beside docs/ is on the site."""
    return PurePosixPath("project") / page.name.lower()


def _references(names: str) -> str:
    return "\n\n".join(f"::: {name}" for name in names.split())


def stage(build: Path, root: Path = ROOT) -> Path:
    """Write pages and configuration into a folder; returns the configuration's file."""
    shutil.rmtree(build, ignore_errors=True)
    made = Stage(build / "docs", root)
    for page in sorted(root.glob("docs/*.md")):
        source = PurePosixPath(page.relative_to(root).as_posix())
        made.page(source, source.relative_to("docs"))
    for name in PROJECT:
        made.page(PurePosixPath(name), project_place(PurePosixPath(name)))
    shutil.copyfile(STYLE, build / "docs" / STYLE.name)
    config = (root / "mkdocs.yml").read_text(encoding="utf-8")
    config = _ENTRY.sub(
        lambda entry: entry[0] if (build / "docs" / entry["page"]).exists() else "", config
    )
    config = config.replace("paths: [src]", f"paths: [{root / 'src'}]")
    (build / "mkdocs.yml").write_text(config, encoding="utf-8")
    return build / "mkdocs.yml"
