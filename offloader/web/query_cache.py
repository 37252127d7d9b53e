"""Queries to Pulsar and the storage for HTTP clients: few at a time, answers cached for seconds.

They run in daemon threads, so that a server that hangs does not delay the exit.
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from reader.background import in_thread
from reader.errors import UnavailableError

T = TypeVar("T")

_MOST = 4
_WAITING = 64
_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Asked:
    task: asyncio.Task[Any]
    at: float
    keep: float

    def over(self, now: float) -> bool:
        return self.task.done() and now - self.at >= self.keep


class QueryCache:
    """For one event loop. The same query runs once, however many wait for it.

    ``clock``: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: dict[Hashable, _Asked] = {}
        self._free = asyncio.Semaphore(_MOST)

    def __len__(self) -> int:
        """How many answers are kept or on their way."""
        return len(self._asked)

    async def get(
        self, key: Hashable, ask: Callable[[], T], *, keep: float, timeout: float = 60.0
    ) -> T:
        """What ``ask`` returns, or raises, now or up to ``keep`` seconds ago.

        Raises UnavailableError without an answer in time, or if too many are waiting already.
        """
        now = self._clock()
        found = self._asked.get(key)
        if found is None or found.over(now):
            self._forget(now)
            if sum(not one.task.done() for one in self._asked.values()) >= _WAITING:
                raise UnavailableError("too many queries at once", hint="try again later")
            task = asyncio.create_task(self._ask(ask))
            task.add_done_callback(_retrieve)
            found = self._asked[key] = _Asked(task, now, keep)
        try:
            result: T = await asyncio.wait_for(asyncio.shield(found.task), timeout)
        except TimeoutError as error:
            raise UnavailableError(f"no answer within {timeout:g} s") from error
        return result

    async def _ask(self, ask: Callable[[], T]) -> T:
        async with self._free:
            return await asyncio.wrap_future(in_thread(ask))

    def _forget(self, now: float) -> None:
        """Drop expired answers, and the oldest others beyond a limit."""
        answered = [key for key, one in self._asked.items() if one.task.done()]
        for number, key in enumerate(reversed(answered)):
            if number >= _KEPT or self._asked[key].over(now):
                del self._asked[key]


def _retrieve(task: asyncio.Task[Any]) -> None:
    """The client may have gone: its error is then nobody's, and asyncio is not to log it."""
    if not task.cancelled():
        task.exception()
