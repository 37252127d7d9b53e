"""What the command line prints: lines, and rows as an aligned table, JSON or CSV.

Tables are as wide as their content when the output is not a terminal, so that nothing is cut in a
pipe; on a terminal long cells end in an ellipsis.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TextIO

import typer

from reader.errors import PulsarLakeError, debugging, plain_text
from reader.printable import printable, printable_json

__all__ = [
    "EndlessRows",
    "ReportFormat",
    "SqlFormat",
    "print_records",
    "print_rows",
    "say",
    "say_error",
    "say_state",
]

_CELL_ON_TERMINAL = 60


def say(text: object, *, err: bool = False) -> None:
    """A line, or several, to standard output or (``err``) standard error."""
    typer.echo(printable(text), err=err)


def say_error(error: Exception, more: str = "") -> None:
    """What failed, as one line; before it where, with PULSAR_LAKE_DEBUG. To be called where the
    error was caught. ``more``: what is added to one that is not ours."""
    if debugging():
        say(traceback.format_exc().rstrip(), err=True)
    ours = isinstance(error, PulsarLakeError)
    text = str(error) if ours else f"{type(error).__name__}: {plain_text(error)}{more}"
    say(f"error: {' '.join(text.split())}", err=True)


def say_state(state: str, color: str, text: object) -> None:
    """A line that begins with a state, which has a colour on a terminal.

    https://no-color.org: none where ``NO_COLOR`` is set.
    """
    shown = printable(f"{state:7}")
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = typer.style(shown, fg=color)
    typer.echo(f"{shown}  {printable(text)}")


class ReportFormat(StrEnum):
    """How ``segments``, ``status`` and ``check`` answer."""

    table = "table"
    json = "json"


class SqlFormat(StrEnum):
    """How ``sql`` answers; Parquet only into a file."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


def print_rows(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    kind: ReportFormat | SqlFormat,
    stream: TextIO | None = None,
    *,
    cut: bool | None = None,
) -> None:
    """Print ``rows``; values may be anything that Spark and Arrow return.

    ``cut``: whether long cells of a table are cut; None: on a terminal.
    """
    out = stream or sys.stdout
    if kind.value == "json":
        _json(columns, rows, out)
    elif kind.value == "csv":
        _csv(columns, rows, out)
    else:
        _table(columns, rows, out, cut=out.isatty() if cut is None else cut)


def print_records(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    """One line for each column, whole, below the number of its row."""
    names = [_cell(name, None) for name in columns]
    width = max(map(len, names), default=0)
    for number, row in enumerate(rows, start=1):
        out.write(f"-[ {number} ]".ljust(width + 1, "-") + "\n")
        for name, column in zip(names, columns, strict=True):
            out.write(f"{name.ljust(width)}  {_cell(row[column], None)}\n")


def _json(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    """One array, one row a line: it reads as a whole and line by line alike."""
    first = True
    for row in rows:
        out.write("[\n" if first else ",\n")
        value = {name: _plain(row[name]) for name in columns}
        out.write(printable_json(json.dumps(value, ensure_ascii=False)))
        first = False
    out.write("[]\n" if first else "\n]\n")


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    # It quotes what its own line end has: with "\n" alone, no "\r" (Python 3.11).
    line = io.StringIO(newline="")
    writer = csv.writer(line, lineterminator="\r\n")

    def write(values: Sequence[str]) -> None:
        writer.writerow(values)
        out.write(line.getvalue().removesuffix("\r\n") + "\n")
        line.seek(0)
        line.truncate()

    write(columns)
    for row in rows:
        write(["" if row[name] is None else _text(row[name]) for name in columns])


def _table(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO, *, cut: bool
) -> None:
    limit = _CELL_ON_TERMINAL if cut else None
    found = list(rows)
    right = [
        any(row[name] is not None for row in found)
        and all(row[name] is None or _is_number(row[name]) for row in found)
        for name in columns
    ]
    cells = [[_cell(row[name], limit) for name in columns] for row in found]
    widths = [max((len(line[i]) for line in cells), default=0) for i in range(len(columns))]
    names = [_cell(name, None) for name in columns]
    widths = [max(width, len(name)) for width, name in zip(widths, names, strict=True)]
    for line in (names, ["-" * width for width in widths], *cells):
        padded = [
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ]
        out.write("  ".join(padded).rstrip() + "\n")


class EndlessRows:
    """Rows that are printed as they come, as one output.

    A table has one header, and its columns only get wider; JSON is one object a line.
    """

    def __init__(
        self, columns: Sequence[str], kind: ReportFormat | SqlFormat, stream: TextIO | None = None
    ) -> None:
        self._columns = columns
        self._kind = kind.value
        self._out = stream or sys.stdout
        self._widths = [0] * len(columns)
        self._begun = False

    def show(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print them now."""
        lines = io.StringIO()
        if self._kind == "json":
            for row in rows:
                value = {name: _plain(row[name]) for name in self._columns}
                lines.write(printable_json(json.dumps(value, ensure_ascii=False)) + "\n")
        elif self._kind == "csv":
            _csv(self._columns, rows, lines)
            header = io.StringIO()
            _csv(self._columns, (), header)
            self._out.write("" if self._begun else header.getvalue())
            lines = io.StringIO(lines.getvalue().removeprefix(header.getvalue()))
        else:
            self._table(list(rows), lines)
        self._out.write(lines.getvalue())
        self._out.flush()
        self._begun = True

    def _table(self, rows: Sequence[Mapping[str, Any]], out: TextIO) -> None:
        limit = _CELL_ON_TERMINAL if self._out.isatty() else None
        cells = [[_cell(row[name], limit) for name in self._columns] for row in rows]
        header = [[_cell(name, None) for name in self._columns]]
        self._widths = [
            max(width, *(len(line[at]) for line in (*header, *cells)))
            for at, width in enumerate(self._widths)
        ]
        if not self._begun:
            cells = [*header, ["-" * width for width in self._widths], *cells]
        for line in cells:
            padded = (cell.ljust(width) for cell, width in zip(line, self._widths, strict=True))
            out.write("  ".join(padded).rstrip() + "\n")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: Any, limit: int | None) -> str:
    if value is None:
        return "NULL"
    text = _text(value).replace("\n", "\\n").replace("\t", "\\t")
    text = printable(text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    plain = _plain(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """As JSON has it: times in ISO 8601 (UTC), bytes in base64, other values as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return _moment(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Mapping():
            return {_key(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return str(value)


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _text(value)
