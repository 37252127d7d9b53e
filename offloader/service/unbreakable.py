"""A text stream whose writers neither fail nor wait, whoever reads it or does not."""

import io
import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Any, TextIO

_MOST = 10_000
"""Texts that wait to be written, before more are dropped."""
_PATIENCE = 1.0
"""So long, s, a writer waits for what was written before it is known that nobody reads."""


class Unbreakable:
    """``stream``, written to by a thread of its own; all else is as the stream has it. None: none.

    Where nobody reads (a pipe that is full, a terminal that was stopped), texts wait, and are
    dropped once there are too many; the next that is written says how many. Once the other end is
    closed, nothing is written any more. Thread-safe.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or io.StringIO()
        self._file: int | None = None
        with suppress(OSError, ValueError):
            self._file = self._stream.fileno()
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._dropped = 0
        self._writing = False
        self._stuck = False
        self._gone = stream is None
        self._thread: threading.Thread | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write ``text`` soon, whole."""
        with self._changed:
            if self._gone:
                return len(text)
            if len(self._waiting) < _MOST:
                self._waiting.append(text)
            else:
                self._dropped += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Wait until all is written, unless nobody reads."""
        with self._changed:
            if not self._stuck:
                self._stuck = not self._changed.wait_for(self._is_written, _PATIENCE)

    def _is_written(self) -> bool:
        return not self._waiting and not self._writing

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                text = "".join(self._waiting)
                if self._dropped:
                    text += f"… and {self._dropped} more, which nobody read\n"
                self._waiting.clear()
                self._dropped, self._writing = 0, True
            try:
                self._put(text)
            except (BrokenPipeError, ValueError):  # ValueError: it is closed
                self._give_up()
            except OSError:
                pass  # a full disk: what comes later may be read
            with self._changed:
                self._writing = self._stuck = False
                self._changed.notify_all()

    def _put(self, text: str) -> None:
        if self._stream.closed:
            raise ValueError("closed")
        if self._file is None:
            self._stream.write(text)
            self._stream.flush()
            return
        # Not through the stream's buffer, whose lock the interpreter would want at its end.
        left = memoryview(text.encode(errors="backslashreplace"))
        ready = select.poll()
        ready.register(self._file, select.POLLOUT)
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except BlockingIOError:  # whoever shares the pipe may have made it so
                ready.poll()

    def _give_up(self) -> None:
        with self._changed:
            self._gone = True
            self._waiting.clear()
        if self._file is None or self._stream.closed:
            return
        # The interpreter writes what is left at its end, and would fail by that.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with suppress(OSError):
            os.dup2(nowhere, self._file)
        os.close(nowhere)
