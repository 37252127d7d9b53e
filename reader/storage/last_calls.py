"""Calls of pyarrow's threads into Python, which have to be over before the interpreter ends.

A scan that was given up goes on reading ahead for a moment, in threads of pyarrow's, and then drops
its files. A thread that asks for the interpreter's lock once that has begun to end never gets it:
the process hangs, or aborts. So at exit what still reads is closed (``before_the_end``), then no
call is let in any more, and those under way, and the files, are waited for.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUIET_SECONDS = 0.1
_HELD_SECONDS = 3.0
"""Longer than a thread takes between two calls; who still has a file in a variable waits for it."""


class _Calls:
    def __init__(self) -> None:
        self._lock = threading.RLock()  # ``Held`` may be dropped anywhere
        self._running = self._held = 0
        self._last = float("-inf")
        self.ending = False

    def begin(self) -> None:
        with self._lock:
            self._last = time.monotonic()
            if self.ending:
                raise OSError("the interpreter ends: nothing is read or written any more")
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            self._last = time.monotonic()

    def hold(self, count: int) -> None:
        with self._lock:
            self._last = time.monotonic()
            self._held += count

    def wait(self) -> None:
        """Until no call has come for a moment, if any has come lately at all."""
        self.ending = True
        while True:
            with self._lock:
                since = time.monotonic() - self._last
                enough = _HELD_SECONDS if self._held else _QUIET_SECONDS
                if not self._running and since > enough:
                    return
            time.sleep(_QUIET_SECONDS / 10)


_calls = _Calls()


class Held:
    """Something that pyarrow's threads may be the last to drop."""

    def __init__(self) -> None:
        self._calls = _calls
        self._calls.hold(1)

    def __del__(self) -> None:
        self._calls.hold(-1)


@contextmanager
def call() -> Iterator[None]:
    """One call. Raises OSError once the interpreter ends."""
    calls = _calls
    calls.begin()
    try:
        yield
    finally:
        calls.end()


def before_the_end(close: Callable[[], None]) -> None:
    """``close`` is called when the interpreter is about to end, while calls are still let in."""
    _closing.append(close)


_closing: list[Callable[[], None]] = []


def _after_fork() -> None:
    global _calls
    _calls = _Calls()


def _at_exit() -> None:
    for close in _closing:
        close()
    _calls.wait()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
