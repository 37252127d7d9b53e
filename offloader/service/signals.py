"""Ctrl-C and SIGTERM: the first lets running Spark jobs finish, and commits what is whole then; the
second ends at once.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Self

_CANCEL_SECONDS = 2.0
EXIT_INTERRUPTED = 130


class Stop:
    """Handles the signals while it is entered; ``set`` after the first one.

    ``cancel`` is called, for at most two seconds, before a second signal ends the process with
    exit code 130. What is half done then is what a crash would leave: files without a commit.
    """

    def __init__(self, *, announce: Callable[[str], None] = lambda text: None) -> None:
        self._event = threading.Event()
        self._announce = announce
        self._before: dict[signal.Signals, object] = {}
        self.cancel: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    @property
    def set(self) -> bool:
        """Whether a signal came."""
        return self._event.is_set()

    def request(self) -> None:
        """As a first signal does, without one."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, or less if a signal comes; whether one came."""
        return self._event.wait(seconds)

    def _received(self, number: int, frame: FrameType | None) -> None:
        if not self.set:
            self.request()
            self._announce("stopping after the running jobs; a second signal stops at once")
            return
        worker = threading.Thread(target=self.cancel, daemon=True)
        worker.start()
        worker.join(_CANCEL_SECONDS)
        with suppress(Exception):  # nobody may be there to read it
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h\n")  # a progress bar has hidden the cursor
            sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)
