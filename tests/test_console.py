"""Progress where there is no terminal, and tables."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from skipstone.console import (
    markdown_table,
    parse_options,
    quarter_lines,
    say,
    short_number,
    text_table,
)
from skipstone.errors import printable


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


ODD = "a [bold]b[/] \x1b[31mred\x1b[0m \udcff\nc"


def test_names_in_tables_are_text_wherever_they_stand() -> None:
    """In heads and captions, too: `[/]` alone would be an error of the markup."""
    console = Console(width=90, record=True, file=io.StringIO())
    console.print(text_table([ODD, "error"], [[ODD, ODD]], caption=ODD, words=2))
    text = console.export_text()
    assert text.count("a [bold]b[/] �[31mred�[0m �") == 4
    assert "\x1b" not in text


def test_what_is_printed_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(ODD)
    assert capsys.readouterr().out == "a [bold]b[/] �[31mred�[0m �\nc\n"
    assert printable("\a\b\r\x9b") == "����"


def test_a_bar_in_a_name_does_not_split_a_cell_of_a_page() -> None:
    assert markdown_table(["a|b"], [["1\n2"]]) == "| a\\|b |\n| --- |\n| 1 2 |\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("relu", "relu"), ("[" * 9000, "[" * 9000), ("", "")],
    ids=["number", "float", "word", "deep", "empty"],
)
def test_options_are_json_or_text(text: str, value: object) -> None:
    assert parse_options([f"name={text}"]) == {"name": [value]}


def test_a_markdown_table_has_a_line_for_each_row() -> None:
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (0.0123, "0.0123"), (1234.0, "1.23e+03"), (1.25e-7, "1.25e-7")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert short_number(value) == text
