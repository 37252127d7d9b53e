"""Runs statements, one after the other, and brings their results where they are wanted."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from offloader.cli.render import SqlFormat, say
from offloader.cli.results import rows_of, unique_names, write_rows
from offloader.cli.shell.execution import Execution, Session
from offloader.cli.shell.progress import ProgressLine
from offloader.cli.shell.screen import SHOWN_ROWS, Screen
from offloader.cli.shell.statements import SqlStatement
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError, plain_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Output", "StandardOutput", "one_line", "run_all", "run_statement"]

_PLACE = re.compile(r"[.;]?\s*SQLSTATE: \w+|;? \(?line \d+,? pos \d+\)?")


class Output(Protocol):
    """A destination of results."""

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], /) -> object:
        """Take one result, as far as it is wanted."""
        ...


class StandardOutput:
    """Standard output of a command: all rows, but on a terminal a table's first ones."""

    def __init__(self, kind: SqlFormat) -> None:
        self._kind = kind
        self._cuts = kind is SqlFormat.table and sys.stdout.isatty()

    @property
    def shares_the_terminal(self) -> bool:
        """Return whether rows appear on a terminal as they come, where no progress may be drawn."""
        return not self._cuts and sys.stdout.isatty()

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> object:
        """Print one result."""
        if not self._cuts:
            count = write_rows(unique_names(schema.names), rows_of(batches), self._kind, sys.stdout)
            sys.stdout.flush()
            return count
        taken = Screen(rows=SHOWN_ROWS, pager=False).write(schema, batches)
        if taken is not None and taken.cut:
            say(f"{taken} shown (all of them: --output FILE, or into a pipe)", err=True)
        return taken


def run_statement(session: Session, text: str, output: Output, progress: ProgressLine) -> object:
    """Run one statement. Return what ``output`` returns for its result.

    Raises PulsarLakeError for any error of Spark's. KeyboardInterrupt cancels the statement first.
    """
    execution = Execution(session, text, progress.draw)
    try:
        schema = execution.schema()
        progress.clear()
        return output.write(schema, _cleared(execution, output, progress))
    except (BrokenPipeError, PulsarLakeError):
        raise
    except Exception as error:
        raise _told(session, error) from error
    finally:
        progress.clear()
        execution.stop()


def _cleared(
    execution: Execution, output: Output, progress: ProgressLine
) -> Iterator[pa.RecordBatch]:
    for batch in execution.batches():
        progress.clear()
        yield batch
        if getattr(output, "shares_the_terminal", False):
            progress.mute()
        else:
            progress.draw(execution)


def run_all(
    session: Session, found: Iterable[SqlStatement], output: Output, name: str | None
) -> None:
    """Run statements until one fails; ``name``: of the file they are from, for the error.

    Raises as ``run_statement``.
    """
    for one in found:
        try:
            run_statement(session, one.text, output, ProgressLine())
        except PulsarLakeError as error:
            if name is not None:
                error.message = f"{name}:{one.line}: {error.message}"
            raise


def _told(session: Session, error: Exception) -> PulsarLakeError:
    """Return the error to show: ours, that the JVM has ended, or the first line of Spark's."""
    from spark_ext import error_of

    found = error_of(error)
    if found is not None:
        return found
    if _lost(session, error):
        return UnavailableError(
            "Spark's JVM has ended",
            hint="the next statement starts another; temporary views and settings are gone",
        )
    return ConfigurationError(one_line(str(error)) or type(error).__name__)


def _lost(session: Session, error: Exception) -> bool:
    # A connection breaks a moment before the process is gone.
    broken = isinstance(error, OSError | EOFError) or "Py4J" in type(error).__name__
    for _ in range(20 if broken else 1):
        if session.lost():
            return True
        time.sleep(0.1 if broken else 0)
    return False


def one_line(text: str) -> str:
    """Spark's own message: its first line, without error codes and the plan beneath."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return plain_text(_PLACE.sub("", first)).rstrip(" ;")
