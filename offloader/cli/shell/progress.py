"""How far a statement is: one line on standard error that leaves nothing behind."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TextIO

from offloader.cli.shell.execution import Execution
from reader.background import in_thread
from reader.printable import printable

if TYPE_CHECKING:
    from reader.plan import Plan
    from spark_ext.statement import Progress

__all__ = ["ProgressLine", "progress_text", "tiers_text"]

_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 0.15
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Drawn once a statement takes longer than a second; nothing where nobody sees it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
        self._drawn = ""
        self._at = 0.0
        self._of: Execution | None = None
        self._tiers: Future[str] | None = None

    def draw(self, execution: Execution) -> None:
        """Show how far it is now."""
        if not self._shown or (now := execution.seconds) < _PATIENCE_SECONDS:
            return
        if self._of is execution and now - self._at < _PAUSE_SECONDS:
            return
        self._at = now
        if self._of is not execution:
            self._of, self._tiers = execution, None
        width = shutil.get_terminal_size().columns - 1
        text = printable(self._text(execution))[:width]
        if text != self._drawn:
            self._stream.write(f"{_CLEAR}{text}")
            self._stream.flush()
            self._drawn = text

    def mute(self) -> None:
        """Draw nothing any more: rows are on their way to the same terminal."""
        self._shown = False

    def clear(self) -> None:
        """Take the line away, before anything else is written."""
        if self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn = ""

    def _text(self, execution: Execution) -> str:
        seconds = execution.seconds
        if not execution.session.ready:
            return f"starting Spark · {seconds:.0f} s"
        statement = execution.statement
        if statement is None or statement.frame is None:
            return f"planning · {seconds:.0f} s"
        if self._tiers is None:
            frame, lake = statement.frame, execution.session.lake
            self._tiers = in_thread(lambda: tiers_text(lake.query_plans(frame)))
        tiers = ""
        if self._tiers.done() and self._tiers.exception() is None:
            tiers = self._tiers.result()
        return progress_text(execution.progress, tiers, seconds)


def progress_text(progress: Progress | None, tiers: str, seconds: float) -> str:
    """Tasks, rows, tiers and time; what is not known yet is left out."""
    parts = []
    if progress and progress.tasks:
        parts.append(f"{progress.tasks_done:,} of {progress.tasks:,} tasks")
    if progress and progress.rows:
        parts.append(f"{progress.rows:,} rows read")
    parts += [tiers] if tiers else []
    return " · ".join([*(parts or ["planning"]), f"{seconds:.0f} s"])


def tiers_text(plans: Iterable[Plan]) -> str:
    """The tiers that a query reads, each with the number of its segments."""
    found: dict[str, int] = {}
    for plan in plans:
        for one in plan.segments:
            if one.read:
                found[str(one.segment.tier)] = found.get(str(one.segment.tier), 0) + 1
    return ", ".join(f"{name} ({count})" for name, count in sorted(found.items()))
