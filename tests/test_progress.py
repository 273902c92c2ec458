"""Progress where there is no terminal."""

from __future__ import annotations

from skipstone.progress import lines


def test_a_line_when_something_begins_and_for_every_quarter() -> None:
    said: list[str] = []
    progress = lines(said.append)
    for tenth in range(11):
        progress("evaluating", tenth / 10)
    progress("filming", 0.0)
    assert said == [
        "evaluating",
        "evaluating: 25 %",
        "evaluating: 50 %",
        "evaluating: 75 %",
        "evaluating: 100 %",
        "filming",
    ]
