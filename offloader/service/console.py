"""What the daemon says on stderr: log lines, and on a terminal a progress bar beneath them."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from offloader.model.text import size_text
from offloader.model.turn import Committed, Release
from reader.model import Topic

__all__ = ["Report"]


class Report:
    """One line an event; a bar while files are written, if ``stream`` is a terminal.

    Thread-safe. Of topics that are converted side by side the bar shows the one that moved last.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._console = Console(file=self._stream, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = None if self._bar.disable else self._bar.add_task("", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def say(self, text: str, style: str = "") -> None:
        """One line, with the time before it."""
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(text.split())}"
        if self._console.is_terminal:
            self._console.print(Text(line, style=style), soft_wrap=True)
        else:
            self._stream.write(f"{line}\n")  # at once, so that lines of threads do not mix
            self._stream.flush()

    def tasks(self, topic: Topic, done: int, total: int) -> None:
        """How far the conversion of a topic is."""
        if self._task is not None:
            self._bar.update(
                self._task,
                description=str(topic),
                completed=done,
                total=total,
                visible=done < total,
            )

    def committed(self, topic: Topic, found: Committed) -> None:
        """A commit is in the log."""
        self.say(
            f"{topic}: {found.ledgers} ledgers, {found.rows} rows in {found.files} files "
            f"({size_text(found.bytes)}) committed as version {found.version} "
            f"in {found.seconds:.1f} s; {found.reason}"
        )

    def released(self, moves: tuple[Release, ...]) -> None:
        """Holds were moved."""
        for move in moves:
            self.say(f"{move.partition}: hold moved from {move.before} to {move.after}")

    def failed(self, what: object, error: str) -> None:
        """Something failed; the daemon goes on."""
        self.say(f"error: {what}: {error}", style="red")
