"""JSON from anybody: what is not as it should be is one line that says where."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from skipstone.errors import InvalidInput
from skipstone.records import (
    DEEPEST,
    LARGEST,
    parse_json,
    read_record,
    read_sealed,
    require_fields,
    write_json,
    write_sealed,
)


class Example(TypedDict):
    format: int
    seed: int
    loss: float | None
    inner: dict[str, list[int]]


GOOD: dict[str, Any] = {"format": 1, "seed": 3, "loss": 0.1, "inner": {"a": [1]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON; it is damaged or was edited: Input data was truncated"),
        ("null", "expected `object`, got `null`"),
        ("[]", "expected `object`, got `array`"),
        ('{"format": 1}', "missing required field `seed`"),
        (json.dumps({**GOOD, "seed": "3"}), "seed: expected `int`, got `str`"),
        (json.dumps({**GOOD, "seed": None}), "seed: expected `int`, got `null`"),
        (json.dumps({**GOOD, "seed": True}), "seed: expected `int`, got `bool`"),
        (json.dumps({**GOOD, "inner": {"a": [1, "x"]}}), "got `str`"),
        (json.dumps({**GOOD, "loss": float("nan")}), "must be JSON"),
        (json.dumps({**GOOD, "loss": float("inf")}), "must be JSON"),
        ('{"format": 1, "seed": 3, "inner": {}, "loss": 1e999}', "Number out of range"),
        ('{"seed": %s}' % ("9" * 10_000), "Integer value out of range"),
        ('{"seed": ' + "[" * 100_000 + "]" * 100_000 + "}", f"at most {DEEPEST} levels"),
        ('{"seed": ' + "[" * DEEPEST + "]" * DEEPEST + "}", f"at most {DEEPEST} levels"),
    ],
)
def test_bad_files_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_record(path, Example)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    for content in (b"\xff\xfe", b'{"a": "\xff"}', bytes(1000)):
        with pytest.raises(InvalidInput, match="it must be JSON"):
            parse_json(content, "it")
    with pytest.raises(InvalidInput, match="must be a file; No such file"):
        read_record(tmp_path / "none", Example)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(10**12)  # A hole, which takes no room.
    with pytest.raises(InvalidInput, match="must have at most"):
        read_record(path, Example)


def test_every_edit_of_a_sealed_record_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    seal = write_sealed(path, GOOD)
    assert read_sealed(path, Example, 1, "") == GOOD
    content = json.loads(path.read_text())
    assert content == {**GOOD, "sha256": seal}
    # The layout does not count: what it says does.
    path.write_text(json.dumps(dict(reversed(content.items()))))
    assert read_sealed(path, Example, 1, "") == GOOD
    for change in ({"seed": 4}, {"loss": 0.1000000001}, {"more": 1}, {"sha256": "0" * 64}):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(InvalidInput, match="its checksum differs"):
            read_sealed(path, Example, 1, "")
    write_json(path, GOOD)
    with pytest.raises(InvalidInput, match="its checksum differs"):
        read_sealed(path, Example, 1, "")
    write_sealed(path, {**GOOD, "format": 7})
    with pytest.raises(InvalidInput, match=r"must have format 1; it has format 7.*Do this\."):
        read_sealed(path, Example, 1, "Do this.")


def nested(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        float("nan"),
        Path("x"),
        {1, 2},
        10**5000,
        # Python writes these, and no reader takes them.
        b"caf\xe9".decode(errors="surrogateescape"),
        nested(DEEPEST),
        nested(100_000),
        "x" * LARGEST,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_lacks_is_refused_when_written(value: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"a\.json can only hold finite numbers"):
        write_json(tmp_path / "a.json", {"tolerance": value})
    assert list(tmp_path.iterdir()) == []


def test_fields_have_the_types_of_their_dataclass() -> None:
    @dataclass
    class Config:
        dim: int
        flag: bool = False
        center: tuple[float, ...] = (0.0,)
        either: tuple[int, ...] | list[str] = ()
        """JSON has one type for both: not checked here."""

    require_fields({"dim": 1, "center": [1, 2.5], "either": None, "other": None}, Config, "it")
    for values, message in [
        ({}, "it must have dim; it is missing"),
        ({"dim": 1.5}, "it, dim: expected `int`, got `float`"),
        ({"dim": 1, "flag": "yes"}, "it, flag: expected `bool`, got `str`"),
        ({"dim": 1, "center": ["x"]}, "it, center"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            require_fields(values, Config, "it")
