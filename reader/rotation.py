"""Files that are rotated while processes run: certificates, keys, secrets.

What is made of them is made anew once they have changed. Where that fails, because a certificate
is there and its key not yet, what was made before is used for a while.
"""

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from reader.errors import ConfigurationError

T = TypeVar("T")

FileState = tuple[Path, int, int, int] | None

_MISSING = (-1, -1, -1)
_USELESS_SECONDS = 60.0
_LONG_AGO = 2 * _USELESS_SECONDS  # while it is asked, it tries again each minute
_MISSING_SECONDS = 1.0
"""A link that is replaced may be missing for a moment; a file that was deleted is for longer."""


def file_state(path: Path | None) -> FileState:
    """What is another value once the file has been rotated, also through a link."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return path, *_MISSING
    return path, found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class _Failure:
    """Times are of the clock. ``since``: the first one after a success."""

    error: ConfigurationError
    since: float
    tried: float
    bearable_until: float


class Rotating(Generic[T]):
    """What ``make`` makes of ``files``, anew once they have changed. Thread-safe.

    Where ``make`` raises ConfigurationError, what it made before is used for a minute, or for a
    second where a file is missing; then that error is raised. It is called again once the files
    have changed, or after a minute. ``clock``: seconds.
    """

    def __init__(
        self,
        make: Callable[[], T],
        *files: Path | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        self._states: tuple[FileState, ...] = ()
        self._made: T | None = None
        self._failure: _Failure | None = None

    def current(self) -> T:
        """What to use now. Raises what ``make`` raises."""
        with self._lock:
            # Looked at before they are read: what changes meanwhile is read once more.
            states, now, failure = tuple(map(file_state, self._files)), self._clock(), self._failure
            again = failure and now - failure.tried >= _USELESS_SECONDS
            if self._made is None or states != self._states or again:
                try:
                    self._made, self._failure = self._make(), None
                except ConfigurationError as error:
                    if self._made is None:
                        raise
                    # Of a rotation long ago nobody saw the end, if others are of no use now.
                    anew = failure and states != self._states and now - failure.tried > _LONG_AGO
                    since = failure.since if failure and not anew else now
                    until = since + _USELESS_SECONDS
                    if any(state is not None and state[1:] == _MISSING for state in states):
                        until = min(until, now + _MISSING_SECONDS)
                    # A copy: it has no frames, which would be kept with it.
                    self._failure = _Failure(copy.copy(error), since, now, until)
                self._states = states
            if self._failure and now >= self._failure.bearable_until:
                raise copy.copy(self._failure.error)
            return self._made
