"""Tables as files, CSV and Parquet, and which of their columns are what."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from skipstone.errors import InvalidInput
from skipstone.files import replacing
from skipstone.sequences import Sequences
from skipstone.tables.texts import parse_stamps

SUFFIXES = (".csv", ".parquet")
"""Kinds of files, by the end of their names."""

_READERS = {".csv": ("polars", "pandas", "pyarrow"), ".parquet": ("polars", "pyarrow")}


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table are what, as in `Sequences.from_table`. A run keeps it."""

    time: str
    """Times."""
    values: tuple[str, ...]
    """What is predicted."""
    id: str | None = None
    """Which sequence a row belongs to."""
    controls: tuple[str, ...] = ()
    """What is known in advance."""
    duplicates: str = "error"
    """What becomes of rows of one id at one time."""

    def to_dict(self) -> dict[str, Any]:
        """For `config.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> TableColumns:
        """From `config.json`."""
        columns = dict(content)
        for name in ("values", "controls"):
            columns[name] = tuple(columns[name])
        return cls(**columns)

    def read(self, path: Path) -> Sequences:
        """The sequences in a file; times that are text are parsed."""
        frame = read_frame(path)
        if self.time in frame.columns and frame[self.time].dtype == nw.String:
            frame = frame.with_columns(_parsed(frame[self.time]))
        try:
            return Sequences.from_table(
                frame.to_native(),
                id=self.id,
                time=self.time,
                values=split_names(self.values, frame.columns),
                controls=split_names(self.controls, frame.columns) or None,
                duplicates=self.duplicates,
            )
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None


def split_names(given: Iterable[str], columns: list[str]) -> list[str]:
    """Names of columns, where one text may hold several with commas between."""
    names = []
    for text in given:
        names += [text] if text in columns else [part.strip() for part in text.split(",")]
    return names


def require_table_library(path: Path) -> Any:
    """The library that reads a file of this kind, the first that is installed."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(f"a table must be a .csv or a .parquet file; got {path}.")
    for name in _READERS[suffix]:
        if importlib.util.find_spec(name) is not None:
            return name
    raise InvalidInput(
        f"{suffix} files are read by {' or '.join(_READERS[suffix])}, and none is installed. Run: "
        "pip install polars"
    )


def read_frame(path: Path) -> nw.DataFrame[Any]:
    """A table from a file."""
    library = require_table_library(path)
    if not path.is_file():
        raise InvalidInput(f"there must be a table to read; there is no file {path}.")
    read = nw.read_csv if path.suffix.lower() == ".csv" else nw.read_parquet
    try:
        frame = read(str(path), backend=library)
    except Exception as error:  # Each library has errors of its own.
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInput(f"{path} must be a {path.suffix} table; {reason}") from None
    if len(frame) == 0:
        raise InvalidInput(f"{path} must have at least one row below its header; it has none.")
    return frame


def write_frame(frame: Any, path: Path) -> None:
    """Write a table into a file, atomically."""
    table = nw.from_native(frame, eager_only=True)
    with replacing(path) as beside:
        if path.suffix.lower() == ".csv":
            table.write_csv(str(beside))
        else:
            table.write_parquet(str(beside))


def _parsed(column: nw.Series[Any]) -> nw.Series[Any]:
    """A column of texts as datetimes, or as dates if all are dates."""
    missing = column.is_null().to_numpy()
    if missing.any():
        raise InvalidInput(
            f"each row must have a time; row {int(missing.argmax())} has none in column "
            f"{column.name!r}. Drop it, or fill it in."
        )
    stamps, zoned = parse_stamps(column.to_list())
    library: Any = column.implementation.name.lower()
    tick: Any = np.datetime_data(stamps.dtype)[0]
    if tick == "D":
        return nw.new_series(column.name, stamps.tolist(), nw.Date, backend=library)
    ticks = nw.new_series(column.name, stamps.astype(np.int64), backend=library)
    series = ticks.cast(nw.Datetime(tick))
    return series.dt.replace_time_zone("UTC") if zoned else series
