"""Results on a terminal: cut if they are long, in a pager if they are larger than it."""

from __future__ import annotations

import io
import os
import pydoc
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from offloader.cli.render import SqlFormat, print_records, print_rows, say
from offloader.cli.results import rows_of, unique_names, write_rows
from reader.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS = 1_000
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
    """Return a number of rows, in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def take(
    batches: Iterable[pa.RecordBatch], most: int | None, clock: Callable[[], float] = time.monotonic
) -> Taken:
    """Return the first ``most`` rows (None: all). Count the rest, for a second at most."""
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
    """How a terminal shows results; ``rows``: the most that are shown, None: all.

    ``timing``: whether the time that each took is shown.
    """

    kind: SqlFormat = SqlFormat.table
    expanded: bool = False
    rows: int | None = _SHOWN_ROWS
    pager: bool = True
    timing: bool = True

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Taken | None:
        """Show one result. Return None if it has no columns, as most commands."""
        taken = take(batches, self.rows)
        names = unique_names(schema.names)
        if not names:
            return None
        text = _only_text(taken) if self.kind is SqlFormat.table else None
        out = io.StringIO()
        if text is not None:
            out.write(printable(text).rstrip("\n") + "\n")
        elif self.expanded and self.kind is SqlFormat.table:
            print_records(names, taken.rows, out)
        else:
            print_rows(names, taken.rows, self.kind, out, cut=True)
        self.show(out.getvalue())
        return taken

    def show(self, text: str) -> None:
        """Show lines, in a pager if they are more, or longer, than the terminal's."""
        size, lengths = shutil.get_terminal_size(), [len(line) for line in text.splitlines()]
        is_large = len(lengths) >= size.lines or max(lengths, default=0) > size.columns
        if self.pager and is_large and os.environ.get("PAGER") != "":
            os.environ.setdefault("LESS", "SRX")  # long lines scroll, the last screen stays
            pydoc.pager(text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()


def _only_text(taken: Taken) -> str | None:
    """Return the text of a result that is nothing but one text of several lines, as EXPLAIN's."""
    values = [*taken.rows[0].values()] if taken.count == 1 else []
    if len(values) == 1 and isinstance(values[0], str) and "\n" in values[0]:
        return values[0]
    return None


class StandardOutput:
    """Standard output of a command: all rows, but on a terminal a table's first ones."""

    def __init__(self, kind: SqlFormat) -> None:
        self._kind = kind
        self._cuts = kind is SqlFormat.table and sys.stdout.isatty()
        self.shares_the_terminal = not self._cuts and sys.stdout.isatty()
        """Whether rows appear on a terminal as they come, where no progress may be drawn."""

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Taken | int | None:
        """Print one result. Return as ``Screen`` does, or the number of rows."""
        if not self._cuts:
            count = write_rows(unique_names(schema.names), rows_of(batches), self._kind, sys.stdout)
            sys.stdout.flush()
            return count
        taken = Screen(pager=False).write(schema, batches)
        if taken is not None and taken.cut:
            say(f"{taken} shown (all of them: --output FILE, or into a pipe)", err=True)
        return taken
