"""A promise is only one while a test holds it."""

from __future__ import annotations

import re

from pages import ROOT


def test_every_promise_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!promise|what \||---)(.*?) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 20
    for promise, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        assert named, promise
        for file, test in named:
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {test}\(", source, re.MULTILINE), f"{file}::{test}"
