"""Results of queries, batch by batch: to a stream, or to a file that is there once it is whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from offloader.cli.render import SqlFormat, print_rows
from reader.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP = 1 << 17


def format_of(path: Path | None) -> SqlFormat:
    """Return the format that a file's name asks for: .csv, .json, .parquet, or else a table."""
    name = path.suffix[1:].lower() if path else ""
    return SqlFormat(name) if name in set(SqlFormat) else SqlFormat.table


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names of a result's columns, each once: ``id``, ``id_2``."""
    found: list[str] = []
    for name in names:
        number, one = 1, name
        while one in found or (number > 1 and one in names):
            number += 1
            one = f"{name}_{number}"
        found.append(one)
    return found


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[str, Any]]:
    """Yield each row by its columns' names (``unique_names``). Maps are mappings."""
    for batch in batches:
        names = unique_names(batch.schema.names)
        maps = [
            name
            for name, field in zip(names, batch.schema, strict=True)
            if str(field.type).startswith("map<")
        ]
        for row in _python_rows(batch.rename_columns(names)):
            yield row | {name: None if row[name] is None else dict(row[name]) for name in maps}


def _python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return list(batch.to_pylist())
    except OverflowError:  # a time that Python has no value for, as of a clock of other units
        columns = [[_python_value(one) for one in column] for column in batch.columns]
        return [
            dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)
        ]


def _python_value(scalar: Any) -> Any:
    """Return a value as ``as_py``, but dates beyond Python's years as text, as ISO 8601 has it."""
    import numpy as np
    import pyarrow as pa

    try:
        return scalar.as_py()
    except OverflowError:
        if isinstance(scalar, pa.MapScalar):
            pairs = (one.values() for one in scalar.values)
            return [tuple(map(_python_value, pair)) for pair in pairs]
        if isinstance(scalar, pa.ListScalar):
            return [_python_value(one) for one in scalar.values]
        if isinstance(scalar, pa.StructScalar):
            return {name: _python_value(one) for name, one in scalar.items()}
        unit: Any = getattr(scalar.type, "unit", "D")
        zone = "Z" if getattr(scalar.type, "tz", None) else ""
        return f"{np.datetime64(scalar.value, unit)}{zone}"


def write_rows(
    names: Sequence[str], rows: Iterable[Mapping[str, Any]], kind: SqlFormat, out: TextIO
) -> int:
    """Write text, and return the number of rows.

    A result without columns, as of most commands, leaves only JSON's empty array.
    """
    if not names and kind is not SqlFormat.json:
        return sum(1 for _ in rows)
    return print_rows(names, rows, kind, out)


class ResultFile:
    """A file that results are written to: the first replaces what was there, others follow it.

    A result is whole in it or not at all, unless it is no ordinary file (a pipe, ``/dev/stdout``).
    Raises ConfigurationError where it cannot be written.
    """

    def __init__(self, path: Path, kind: SqlFormat) -> None:
        self.path = path
        self.kind = kind
        self._results = 0
        if path.is_dir():
            raise ConfigurationError(f"Output {path} is a directory", hint="name a file")
        if not path.parent.is_dir():
            raise ConfigurationError(
                f"Directory {path.parent} does not exist",
                hint="create it, or choose another output file",
            )

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """Write one result, unless it has no columns. Return the number of its rows."""
        if not schema.names:
            return sum(batch.num_rows for batch in batches)
        if self.kind is SqlFormat.parquet and self._results:
            raise ConfigurationError(
                f"{self.path} has a result already, and a Parquet file holds one",
                hint="name another file",
            )
        with self._whole() as target:
            if self.kind is SqlFormat.parquet:
                count = _write_parquet(target, schema, batches)
            else:
                names = unique_names(schema.names)
                with target.open("w", encoding="utf-8", newline="") as out:
                    count = write_rows(names, rows_of(batches), self.kind, out)
        self._results += 1
        return count

    @contextmanager
    def _whole(self) -> Iterator[Path]:
        """Yield a path to write to. Afterwards it becomes the file, or the file's end."""
        if self.path.exists() and not self.path.is_file():
            yield self.path
            return
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            yield partial
            if self._results:
                with partial.open("rb") as source, self.path.open("ab") as end:
                    shutil.copyfileobj(source, end)
            else:
                if self.path.exists():
                    shutil.copymode(self.path, partial)
                partial.replace(self.path.resolve())
        except OSError as error:
            raise ConfigurationError(
                f"cannot write {self.path}: {error.strerror or error}"
            ) from error
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write row groups of at least 130,000 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = unique_names(schema.names)
    # Without Spark's notes at the fields (of generated aliases): they are no part of the data.
    plain = pa.schema(
        [pa.field(name, one.type, one.nullable) for name, one in zip(names, schema, strict=True)]
    )
    count = written = 0
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, plain, compression="zstd") as writer:
        for batch in batches:
            waiting.append(pa.RecordBatch.from_arrays(batch.columns, schema=plain))
            count += batch.num_rows
            if count - written >= _ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting, plain))
                waiting, written = [], count
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, plain))
    return count
