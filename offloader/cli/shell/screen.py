"""Results on a terminal: cut where they are long, in a pager where they are larger than it."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from offloader.cli.render import SqlFormat, print_records, print_rows
from offloader.cli.results import rows_of, unique_names
from reader.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SHOWN_ROWS", "Screen", "Taken", "page", "pager_for", "rows_text", "take"]

SHOWN_ROWS = 1_000
_COUNTING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The first rows of a result; ``count``: how many there are, or at least (``complete``).

    ``at``: when they were there, by ``time.monotonic``.
    """

    rows: list[Mapping[str, Any]]
    count: int
    complete: bool
    at: float = field(default_factory=time.monotonic)

    @property
    def cut(self) -> bool:
        return len(self.rows) < self.count or not self.complete

    def __str__(self) -> str:
        total = f"{self.count:,}" if self.complete else f"more than {self.count:,}"
        return f"{len(self.rows):,} of {total} rows" if self.cut else rows_text(self.count)


def rows_text(count: int) -> str:
    """So many rows, in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def take(
    batches: Iterable[pa.RecordBatch],
    most: int | None,
    clock: Callable[[], float] = time.monotonic,
) -> Taken:
    """The first ``most`` rows (None: all); the others are counted, for a second at most."""
    rows: list[Mapping[str, Any]] = []
    count = 0
    full_since: float | None = None
    for batch in batches:
        missing = batch.num_rows if most is None else most - len(rows)
        if missing > 0 and batch.num_rows:
            rows += rows_of([batch.slice(0, missing)])
        count += batch.num_rows
        if most is not None and len(rows) >= most:
            full_since = clock() if full_since is None else full_since
            if clock() - full_since > _COUNTING_SECONDS:
                return Taken(rows, count, complete=False)
    return Taken(rows, count, complete=True)


@dataclass
class Screen:
    """How a terminal shows results; ``rows``: so many at most, None: all."""

    kind: SqlFormat = SqlFormat.table
    expanded: bool = False
    rows: int | None = SHOWN_ROWS
    pager: bool = True
    out: io.TextIOBase | Any = field(default_factory=lambda: sys.stdout)

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Taken | None:
        """Show one result; None for what has no columns, as most commands."""
        taken = take(batches, self.rows)
        names = unique_names(schema.names)
        if not names:
            return None
        out = io.StringIO()
        if (text := _only_text(taken)) is not None and self.kind is SqlFormat.table:
            out.write(printable(text).rstrip("\n") + "\n")
        elif self.expanded and self.kind is SqlFormat.table:
            print_records(names, taken.rows, out)
        else:
            print_rows(names, taken.rows, self.kind, out, cut=True)
        self.show(out.getvalue())
        return taken

    def show(self, text: str) -> None:
        """Some lines, in a pager where they are more, or longer, than the terminal's."""
        if self.pager:
            page(text, self.out)
        else:
            self.out.write(text)
            self.out.flush()


def _only_text(taken: Taken) -> str | None:
    """Where a result is nothing but one text of several lines, as EXPLAIN's: that."""
    values = [*taken.rows[0].values()] if taken.count == 1 else []
    if len(values) == 1 and isinstance(values[0], str) and "\n" in values[0]:
        return values[0]
    return None


def pager_for(
    text: str, size: os.terminal_size, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]] | None:
    """The pager's command and environment for a text; None where it fits on the screen.

    As git does it: ``$PAGER``, else less; without ``$LESS``, less chops long lines, shows colours,
    leaves its last screen, and ends by itself unless it has something to scroll.
    """
    lines = text.splitlines()
    wide = any(len(line) > size.columns for line in lines)
    if len(lines) < size.lines and not wide:
        return None
    command = shlex.split(environment.get("PAGER", "less"))
    if not command or command == ["cat"]:
        return None
    flags = "SRX" if wide else "FSRX"
    return command, {"LESS": flags, **environment}


def page(text: str, out: io.TextIOBase | Any) -> None:
    """Show a text on a terminal, where it is too large for it in a pager."""
    found = pager_for(text, shutil.get_terminal_size(), os.environ) if out.isatty() else None
    if found is not None:
        command, environment = found
        with suppress(OSError):  # there is no such program
            pager = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, encoding="utf-8", errors="replace"
            )
            _feed(pager, text)
            return
    out.write(text)
    out.flush()


def _feed(pager: subprocess.Popen[str], text: str) -> None:
    # Ctrl-C is the pager's while it runs.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):  # it was left before its end
            pager.communicate(text)
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
