"""How far a statement is: one line on standard error that leaves nothing behind."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, RLock
from typing import TYPE_CHECKING, TextIO, TypeVar

from offloader.cli.shell.execution import Execution
from reader.background import in_thread
from reader.printable import printable

if TYPE_CHECKING:
    from reader.plan import Plan
    from spark_ext.statement import Progress

T = TypeVar("T")

_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Drawn by a thread of its own, once a statement takes longer than a second.

    Nothing is drawn where ``stream`` is no terminal.
    """

    def __init__(self, execution: Execution, stream: TextIO | None = None) -> None:
        self._execution = execution
        self._stream = stream or sys.stderr
        self._begun = time.monotonic()
        self._drawn = ""
        self._over = Event()
        self._drawing = RLock()
        self._tiers: Future[str] | None = None
        if self._stream.isatty():
            in_thread(self._draw)

    def beside(self, batches: Iterable[T], *, same_terminal: bool) -> Iterator[T]:
        """Yield the batches, with no line there while the caller has one.

        ``same_terminal``: rows appear on the same terminal, so the first batch ends the line.
        """
        for batch in batches:
            with self._drawing:
                self._erase()
                if same_terminal:
                    self._over.set()
                yield batch
        self.end()

    def end(self) -> None:
        """Erase the line, and draw none any more."""
        with self._drawing:
            self._over.set()
            self._erase()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn = ""

    def _draw(self) -> None:
        pause = _PATIENCE_SECONDS
        while not self._over.wait(pause):
            pause = _PAUSE_SECONDS
            text = printable(f"{self._text()} · {time.monotonic() - self._begun:.0f} s")
            text = text[: shutil.get_terminal_size().columns - 1]
            with self._drawing:
                if text != self._drawn and not self._over.is_set():
                    self._stream.write(f"{_CLEAR}{text}")
                    self._stream.flush()
                    self._drawn = text

    def _text(self) -> str:
        session, statement = self._execution.session, self._execution.statement
        if not session.ready:
            return "starting Spark"
        if statement is None or (frame := statement.frame) is None:
            return "planning"
        if self._tiers is None:
            self._tiers = in_thread(lambda: tiers_text(session.lake.query_plans(frame)))
        tiers = ""
        if self._tiers.done() and self._tiers.exception() is None:
            tiers = self._tiers.result()
        with suppress(Exception):  # the statement fails with the same
            return progress_text(statement.progress(), tiers)
        return "planning"


def progress_text(progress: Progress, tiers: str) -> str:
    """Return tasks, rows and tiers, as far as they are known."""
    parts = []
    if progress.tasks:
        parts.append(f"{progress.tasks_done:,} of {progress.tasks:,} tasks")
    if progress.rows:
        parts.append(f"{progress.rows:,} rows read")
    return " · ".join([*parts, *([tiers] if tiers else [])]) or "planning"


def tiers_text(plans: Iterable[Plan]) -> str:
    """Return the tiers that a query reads, each with the number of its segments."""
    found: dict[str, int] = {}
    for plan in plans:
        for one in plan.segments:
            if one.read:
                found[str(one.segment.tier)] = found.get(str(one.segment.tier), 0) + 1
    return ", ".join(f"{name} ({count})" for name, count in sorted(found.items()))
