"""Things that are expensive to open and for one user at a time: lent, and kept for the next one."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from reader.closing import Closing

C = TypeVar("C", bound=Closing)

_MOST_IDLE = 8
_IDLE_SECONDS = 60.0
"""What was idle for longer is opened anew: firewalls forget connections without a word."""


_of_parent: list[object] = []
"""What was lent before a fork and came back after it: kept for good, as its end may close it."""


@dataclass(frozen=True, slots=True)
class _Idle(Generic[C]):
    thing: C
    since: float  # of the clock


def _nothing(_: object) -> None:
    pass


class Lender(Closing, Generic[C]):
    """Lends what ``make`` opens; thread-safe.

    ``on_lend`` is called before a thing that was kept is lent again, ``on_return`` when it comes
    back; one that raises, or whose user did, is closed and not kept. What comes back in a forked
    child is its parent's: neither kept nor closed. ``clock``: seconds.
    """

    def __init__(
        self,
        make: Callable[[], C],
        *,
        on_lend: Callable[[C], None] = _nothing,
        on_return: Callable[[C], None] = _nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._on_lend = on_lend
        self._on_return = on_return
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[_Idle[C]] = []

    @contextmanager
    def lend(self) -> Iterator[C]:
        """One thing, for this user alone until the end of the ``with``. Raises what ``make`` does.

        A user that gives up early (a generator that is closed) has done it no harm.
        """
        thing = self._kept() or self._make()
        process, whole = os.getpid(), False
        try:
            yield thing
            whole = True
        except GeneratorExit:
            whole = True
            raise
        finally:
            if process != os.getpid():
                _of_parent.append(thing)
            elif whole:
                self._keep(thing)
            else:
                thing.close()

    def close(self) -> None:
        """Close what is idle. What is lent is kept when it comes back, as ever."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.thing.close()

    def forget(self) -> list[C]:
        """Drop what is idle without closing it, and the lock: after a fork."""
        idle, self._idle, self._lock = self._idle, [], threading.Lock()
        return [one.thing for one in idle]

    def _kept(self) -> C | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                one = self._idle.pop()
            if self._clock() - one.since <= _IDLE_SECONDS:
                try:
                    self._on_lend(one.thing)
                except Exception:  # noqa: BLE001 - whatever it is: the next one, or a new one
                    one.thing.close()
                    continue
                return one.thing
            one.thing.close()

    def _keep(self, thing: C) -> None:
        try:
            self._on_return(thing)
        except BaseException:
            thing.close()
            raise
        with self._lock:
            self._idle.append(_Idle(thing, self._clock()))
            surplus = self._idle[:-_MOST_IDLE]
            del self._idle[:-_MOST_IDLE]
        for one in surplus:
            one.thing.close()
