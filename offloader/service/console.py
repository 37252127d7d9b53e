"""The daemon's log on standard error, and on a terminal a progress bar beneath it.

Who reads it may go away (a closed pipe, a terminal that hangs up), or not read: then less is
written, or nothing, and nothing else changes.
"""

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO, cast

from rich.console import Console as Terminal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from offloader.model import Committed, Release, size_text
from offloader.service.unbreakable import Unbreakable
from reader.model import Topic
from reader.printable import printable


class Console:
    """One line per event; a progress bar while files are written, if ``stream`` is a terminal.

    Thread-safe. Of topics that are converted in parallel the bar shows the one that progressed
    last. ``clock``: seconds since the epoch.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._stream = cast(TextIO, Unbreakable(stream or sys.stderr))
        self._terminal = Terminal(file=self._stream, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            TimeElapsedColumn(),
            console=self._terminal,
            disable=not self._terminal.is_terminal,
            transient=True,
        )
        self._task = None if self._bar.disable else self._bar.add_task("", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        self._stream.flush()

    def log(self, text: str, style: str = "") -> None:
        """One line, prefixed with the local time."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self._clock()))
        line = f"{now} {printable(' '.join(text.split()))}"
        if self._terminal.is_terminal:
            self._terminal.print(Text(line, style=style), soft_wrap=True)
        else:
            self._stream.write(f"{line}\n")  # one write, so that lines of threads do not mix
            self._stream.flush()

    def tasks(self, topic: Topic, done: int, total: int) -> None:
        """How far the conversion of a topic is."""
        if self._task is not None:
            self._bar.update(
                self._task,
                description=printable(topic),
                completed=done,
                total=total,
                visible=done < total,
            )

    def committed(self, topic: Topic, found: Committed) -> None:
        """A commit is in the log."""
        self.log(
            f"{topic}: {found.ledgers} ledgers, {found.rows} rows in {found.files} files "
            f"({size_text(found.bytes)}) committed as version {found.version} "
            f"in {found.seconds:.1f} s; {found.reason}"
        )

    def released(self, moves: tuple[Release, ...]) -> None:
        """Holds were moved."""
        for move in moves:
            self.log(f"{move.partition}: hold moved from {move.before} to {move.after}")

    def failed(self, what: object, error: str) -> None:
        """Something failed; the daemon goes on."""
        self.log(f"error: {what}: {error}", style="red")
