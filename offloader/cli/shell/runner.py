"""Runs statements, one after the other, and brings their results where they are wanted."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from offloader.cli.results import ResultFile
from offloader.cli.shell.execution import Execution, Session
from offloader.cli.shell.progress import ProgressLine
from offloader.cli.shell.screen import Screen, StandardOutput, Taken
from offloader.cli.shell.statements import SqlStatement
from reader.background import in_thread
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError, plain_text

_PLACE = re.compile(r"[.;]?\s*SQLSTATE: \w+|;? \(?line \d+,? pos \d+\)?")

Output = Screen | StandardOutput | ResultFile
"""A destination of results."""


def run_statement(session: Session, text: str, output: Output) -> Taken | int | None:
    """Run one statement. Return what ``output`` returns for its result.

    Raises PulsarLakeError for any error of Spark's. KeyboardInterrupt cancels the statement first.
    """
    execution = Execution(session, text)
    line = ProgressLine(execution)
    same_terminal = isinstance(output, StandardOutput) and output.shares_the_terminal
    try:
        with _errors_of_spark(session):
            schema = execution.schema()
            return output.write(
                schema, line.beside(execution.batches(), same_terminal=same_terminal)
            )
    finally:
        line.end()
        execution.stop()


def run_all(run: Callable[[str], object], found: Iterable[SqlStatement], name: str | None) -> None:
    """Run statements until one fails. ``name``: their file's, for the error.

    Raises the errors of ``run``.
    """
    for one in found:
        try:
            run(one.text)
        except PulsarLakeError as error:
            if name is not None:
                error.message = f"{name}:{one.line}: {error.message}"
            raise


def explain(session: Session, query: str) -> str:
    """Return the segments and tiers that a query would read, and Spark's plan of it.

    Raises PulsarLakeError for any error of Spark's.
    """

    def work() -> str:
        session.start().result()
        plans, by_spark = session.lake.explain_query(query)
        return "\n".join([*map(str, plans), by_spark])

    with _errors_of_spark(session):
        return in_thread(work).result()


@contextmanager
def _errors_of_spark(session: Session) -> Iterator[None]:
    """Raise Spark's errors as ours: the one behind it, a lost JVM, or Spark's first line."""
    try:
        yield
    except (BrokenPipeError, PulsarLakeError):
        raise
    except Exception as error:
        from spark_ext import error_of

        if (ours := error_of(error)) is not None:
            raise ours from error
        if _is_lost(session, error):
            raise UnavailableError(
                "Spark's JVM has ended",
                hint="the next statement starts another; temporary views and settings are gone",
            ) from error
        raise ConfigurationError(one_line(str(error)) or type(error).__name__) from error


def _is_lost(session: Session, error: Exception) -> bool:
    # A connection breaks a moment before the process is gone.
    broken = isinstance(error, OSError | EOFError) or "Py4J" in type(error).__name__
    for _ in range(20 if broken else 1):
        if session.lost():
            return True
        time.sleep(0.1 if broken else 0)
    return False


def one_line(text: str) -> str:
    """Return the first line of Spark's message, without error codes and the plan beneath."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return plain_text(_PLACE.sub("", first)).rstrip(" ;")
