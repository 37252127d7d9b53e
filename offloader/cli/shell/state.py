"""What a shell has: one session, where results go, its switches; it runs a statement at a time."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TypeVar, cast

from offloader.cli.render import say
from offloader.cli.results import ResultFile
from offloader.cli.shell.execution import Session
from offloader.cli.shell.progress import ProgressLine
from offloader.cli.shell.runner import Output, one_line, run_statement
from offloader.cli.shell.screen import Screen, Taken, rows_text
from offloader.cli.shell.statements import TokenKind, tokens
from reader.background import in_thread
from reader.errors import ConfigurationError, PulsarLakeError

__all__ = ["Shell"]

T = TypeVar("T")

_WAIT_SECONDS = 0.2


class Shell:
    """``file``: where results go, None: to the screen. ``timing``: whether their time is told.

    ``namespace``: that of ``USE``, if it is Pulsar's.
    """

    def __init__(self, session: Session, screen: Screen, file: ResultFile | None = None) -> None:
        self.session = session
        self.screen = screen
        self.file = file
        self.timing = True
        self.namespace: str | None = None
        self._progress = ProgressLine()

    def run(self, text: str) -> None:
        """Run one statement and show its result. Raises PulsarLakeError, KeyboardInterrupt."""
        if self.session.lost():
            say("Spark's JVM had ended: another one starts, without views and settings", err=True)
            self.namespace = None
        begun = time.monotonic()
        output: Output = self.file or self.screen
        result = run_statement(self.session, text, output, self._progress)
        # Not the time that somebody looks at it in a pager.
        done = result.at if isinstance(result, Taken) else time.monotonic()
        self._tell(result, done - begun)
        words = (one.text.upper() for one in tokens(text) if one.kind is TokenKind.word)
        if next(words, "") in ("USE", "SET"):
            self.namespace = self.wait(in_thread(self._namespace))

    def wait(self, work: Future[T]) -> T:
        """What a background thread works out; may be interrupted. Raises what it raises."""
        while True:
            try:
                return work.result(_WAIT_SECONDS)
            except TimeoutError:
                if work.done():
                    raise
            except (PulsarLakeError, OSError):
                raise
            except Exception as error:
                from spark_ext import error_of

                raise (error_of(error) or ConfigurationError(one_line(str(error)))) from error

    def say(self, text: str) -> None:
        """A line about the shell itself."""
        say(text)

    def _tell(self, result: object, seconds: float) -> None:
        """What came of a statement: how many rows, where they are if not all are shown."""
        after = f", {seconds:.2f} s" if self.timing else ""
        if result is None:
            self.say(f"(done{after})\n")
        elif isinstance(result, Taken):
            more = "; \\rows all or \\o FILE for all of them" if result.cut else ""
            self.say(f"({result}{more}{after})\n")
        else:
            name = self.file.path if self.file else ""
            self.say(f"({rows_text(cast(int, result))} to {name}{after})\n")

    def _namespace(self) -> str | None:
        catalog = self.session.lake.spark.catalog
        if catalog.currentCatalog() != "pulsar":
            return None
        return catalog.currentDatabase().replace("`", "") or None
