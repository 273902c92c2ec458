"""Progress where there is no terminal, and tables."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from skipstone.console import markdown_table, quarter_lines, short_number, text_table


def test_a_line_when_something_begins_and_for_every_quarter() -> None:
    said: list[str] = []
    progress = quarter_lines(said.append)
    for tenth in range(11):
        progress("evaluating", tenth / 10, f"loss {tenth}")
    progress("filming", 0.0, "")
    assert said == [
        "evaluating",
        "evaluating: 25 %, loss 3",
        "evaluating: 50 %, loss 5",
        "evaluating: 75 %, loss 8",
        "evaluating: 100 %, loss 10",
        "filming",
    ]


def test_names_with_brackets_are_not_markup() -> None:
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(text_table(["run", "error"], [["a [bold]b[/bold]", "1"]]))
    assert "a [bold]b[/bold]" in console.export_text()


def test_a_markdown_table_has_a_line_for_each_row() -> None:
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (0.0123, "0.0123"), (1234.0, "1.23e+03"), (1.25e-7, "1.25e-7")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert short_number(value) == text
