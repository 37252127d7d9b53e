"""What the command line prints: lines, and rows as an aligned table, JSON or CSV.

Tables are as wide as their content when the output is not a terminal, so that nothing is cut in a
pipe; on a terminal long cells end in an ellipsis.
"""

import base64
import csv
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, TextIO

import typer

from reader.errors import PulsarLakeError, debugging, plain_text
from reader.printable import printable, printable_json

_CELL_ON_TERMINAL = 60


def say(text: object, *, err: bool = False) -> None:
    """Print lines to standard output or (``err``) standard error."""
    typer.echo(printable(text), err=err)


def say_error(error: Exception, more: str = "", *, about: object = "") -> None:
    """Print an error as one line, after its traceback if PULSAR_LAKE_DEBUG is set.

    Call it where the error was caught. ``more`` follows an error that is not ours, ``about``: what
    failed.
    """
    if debugging():
        say(traceback.format_exc().rstrip(), err=True)
    ours = isinstance(error, PulsarLakeError)
    text = str(error) if ours else f"{type(error).__name__}: {plain_text(error)}{more}"
    say(f"error: {f'{about}: ' if about else ''}{' '.join(text.split())}", err=True)


def say_state(state: str, color: str, text: object) -> None:
    """Print a line that begins with a state, which has a colour on a terminal.

    There is no colour if ``NO_COLOR`` is set (https://no-color.org).
    """
    shown = printable(f"{state:7}")
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = typer.style(shown, fg=color)
    typer.echo(f"{shown}  {printable(text)}")


class ReportFormat(StrEnum):
    """The output formats of ``segments``, ``status`` and ``check``."""

    table = "table"
    json = "json"


ReportOption = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


class SqlFormat(StrEnum):
    """The output formats of ``sql``. Parquet goes only into a file."""

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
) -> int:
    """Print ``rows``, and return how many. Values may be anything that Spark and Arrow return.

    JSON and CSV hold one row at a time, a table all of them. ``cut``: whether long cells of a table
    are cut; None: on a terminal.
    """
    out = stream or sys.stdout
    count = 0

    def counted() -> Iterator[Mapping[str, Any]]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    if kind.value == "json":
        # One array, one row a line: it reads as a whole and line by line alike.
        for row in counted():
            out.write(("[\n" if count == 1 else ",\n") + _json(columns, row))
        out.write("\n]\n" if count else "[]\n")
    elif kind.value == "csv":
        _csv(columns, counted(), out)
    else:
        _table(columns, list(counted()), out, cut=out.isatty() if cut is None else cut)
    return count


def print_records(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    """Print one line for each column, whole, below the number of its row."""
    names = [_cell(name, None) for name in columns]
    width = max(map(len, names), default=0)
    for number, row in enumerate(rows, start=1):
        out.write(f"-[ {number} ]".ljust(width + 1, "-") + "\n")
        for name, column in zip(names, columns, strict=True):
            out.write(f"{name.ljust(width)}  {_cell(row[column], None)}\n")


def _json(columns: Sequence[str], row: Mapping[str, Any]) -> str:
    value = {name: _plain(row[name]) for name in columns}
    return printable_json(json.dumps(value, ensure_ascii=False))


def _csv(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], out: TextIO, *, header: bool = True
) -> None:
    class Lines:
        def write(self, line: str, /) -> None:
            out.write(line.removesuffix("\r\n") + "\n")

    # It quotes what its own line end has: with "\n" alone, no "\r" (Python 3.11).
    writer = csv.writer(Lines(), lineterminator="\r\n")
    if header:
        writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row[name] is None else _text(row[name]) for name in columns])


def _table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], out: TextIO, *, cut: bool
) -> None:
    limit = _CELL_ON_TERMINAL if cut else None
    values = [[row[name] for row in rows if row[name] is not None] for name in columns]
    right = [bool(column) and all(map(_is_number, column)) for column in values]
    lines = [[_cell(name, None) for name in columns]]
    lines += [[_cell(row[name], limit) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    out.writelines(_aligned(lines, widths, right))


def _aligned(
    lines: Iterable[Sequence[str]], widths: Sequence[int], right: Sequence[bool]
) -> Iterator[str]:
    for line in lines:
        cells = zip(line, widths, right, strict=True)
        padded = (cell.rjust(width) if by else cell.ljust(width) for cell, width, by in cells)
        yield "  ".join(padded).rstrip() + "\n"


class EndlessRows:
    """Rows that are printed as they come, as one output.

    A table has one header, and its columns only get wider; JSON is one object a line.
    """

    def __init__(self, columns: Sequence[str], kind: ReportFormat | SqlFormat) -> None:
        self._columns = columns
        self._kind = kind.value
        self._widths = [0] * len(columns)
        self._begun = False

    def show(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print rows now."""
        out = sys.stdout
        if self._kind == "json":
            out.writelines(_json(self._columns, row) + "\n" for row in rows)
        elif self._kind == "csv":
            _csv(self._columns, rows, out, header=not self._begun)
        else:
            limit = _CELL_ON_TERMINAL if out.isatty() else None
            names = [_cell(name, None) for name in self._columns]
            lines = [[_cell(row[name], limit) for name in self._columns] for row in rows]
            columns = zip(self._widths, zip(names, *lines, strict=True), strict=True)
            self._widths = [max(width, *map(len, column)) for width, column in columns]
            if not self._begun:
                lines = [names, ["-" * width for width in self._widths], *lines]
            out.writelines(_aligned(lines, self._widths, [False] * len(names)))
        out.flush()
        self._begun = True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: Any, limit: int | None) -> str:
    if value is None:
        return "NULL"
    text = printable(_text(value).replace("\n", "\\n").replace("\t", "\\t"))
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def _text(value: Any) -> str:
    plain = value if type(value) is str else _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601 (UTC), bytes in base64, others as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Mapping():
            return {_text(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return str(value)
