"""JSON files with a schema, a format number, and a checksum where a prediction depends on them.

A record is a dictionary in a file. Its schema is a `TypedDict`, which says what has to be there;
more may be.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, TypedDict, get_type_hints

import msgspec

from skipstone.errors import InvalidInput
from skipstone.files import read_bytes, write_text

SEAL = "sha256"
"""Entry of a record with the checksum of all others."""

DEEPEST = 32
"""Most levels of lists and dictionaries in each other."""

LARGEST = 64 * 2**20
"""Most bytes of a JSON file."""


class _Numbered(TypedDict):
    format: int


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, atomically, in a form that diffs well."""
    write_text(path, json_text(content, path.name) + "\n")


def json_text(content: Any, name: str) -> str:
    """JSON in a form that diffs well; raise for what JSON does not have, and for what could be
    written and not be read again. `name` begins an error."""
    try:
        text = json.dumps(content, indent=2, allow_nan=False)
        if len(text) >= LARGEST:  # With a line's end after it.
            raise ValueError(f"it would have {len(text):,} bytes, and {LARGEST:,} are the most")
        if _levels(msgspec.json.decode(text)) > DEEPEST:
            raise ValueError(f"it would have more than {DEEPEST} levels in each other")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(
            f"{name} can only hold finite numbers, texts, lists and dictionaries; {error}."
        ) from None
    return text


def write_sealed(path: Path, content: dict[str, Any]) -> str:
    """Write a record with its checksum, which is returned."""
    checksum = seal_of(content)
    write_json(path, {**content, SEAL: checksum})
    return checksum


def seal_of(content: dict[str, Any]) -> str:
    """Checksum of a record: of what it says, however it is laid out."""
    plain = {name: value for name, value in content.items() if name != SEAL}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_record(path: Path, schema: Any) -> dict[str, Any]:
    """A record as its file has it, checked against its schema."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InvalidInput(f"{path} must be a file; {error.strerror or error}.") from None
    if size > LARGEST:
        raise InvalidInput(f"{path} must have at most {LARGEST:,} bytes; it has {size:,}.")
    content = parse_json(read_bytes(path), str(path))
    require_schema(content, schema, str(path))
    return content


def read_sealed(path: Path, schema: Any, format: int, help: str) -> dict[str, Any]:
    """A record without its checksum, which has to be right; its format number is `format`.

    `help` says what to do with a file of another format.
    """
    content = read_record(path, _Numbered)
    if content["format"] != format:
        raise InvalidInput(
            f"{path} must have format {format}; it has format {content['format']}, of another "
            f"version of skipstone. {help}"
        )
    require_schema(content, schema, str(path))
    if content.pop(SEAL, None) != seal_of(content):
        raise InvalidInput(
            f"{path} is not the file that was written (its checksum differs): it was damaged or "
            "edited. Copy it again."
        )
    return content


def parse_json(content: bytes, name: str) -> Any:
    """JSON from bytes; `name` is what an error calls it."""
    try:
        found = msgspec.json.decode(content)
        levels = _levels(found)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"{name} must be JSON; it is damaged or was edited: {error}.") from None
    except RecursionError:
        found, levels = None, DEEPEST + 1
    if levels > DEEPEST:
        raise InvalidInput(f"{name} must have at most {DEEPEST} levels; it has more.")
    return found


def _levels(content: Any, above: int = 0) -> int:
    """Levels of lists and dictionaries, counted until there are too many."""
    inner = content.values() if isinstance(content, dict) else content
    if not isinstance(content, dict | list) or above > DEEPEST:
        return above
    return max((_levels(value, above + 1) for value in inner), default=above + 1)


def require_schema(content: Any, schema: Any, name: str) -> None:
    """Raise unless JSON has what a schema asks for; `name` is what an error calls it."""
    try:
        msgspec.convert(content, schema)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{name} is not as it should be: {_plainly(error)}.") from None


def require_fields(values: dict[str, Any], kind: Any, name: str) -> None:
    """Raise unless JSON values have what a dataclass needs, in the types of its fields.

    Types that JSON cannot tell apart, and names that it does not know, are its own business.
    """
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        needed = field.default is field.default_factory is dataclasses.MISSING
        if field.name not in values:
            if needed:
                raise InvalidInput(f"{name} must have {field.name}; it is missing.")
            continue
        try:
            msgspec.convert(values[field.name], hints[field.name])
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{name}, {field.name}: {_plainly(error)}.") from None
        except TypeError:
            continue


def _plainly(error: msgspec.ValidationError) -> str:
    """`Expected `int`, got `str` - at `$.seed``, in words."""
    reason, _, place = str(error).partition(" - at ")
    reason = reason[:1].lower() + reason[1:]
    place = place.strip("`").removeprefix("$").removeprefix(".")
    return f"{place}: {reason}" if place else reason
