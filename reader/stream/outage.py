"""Servers that do not answer for a while: a running stream waits for them, and says so once.

A broker that restarts is away for half a minute, and a query that ended each time would have to be
watched. Only what stays away is an error.
"""

from collections.abc import Callable
from typing import TypeVar

from reader.errors import UnavailableError

T = TypeVar("T")

_LONGEST_SECONDS = 600.0
"""How long servers may be away while a stream looks for more; then the query ends."""
_BATCH_SECONDS = 60.0
"""How long a batch that was begun waits: its query asks for nothing else meanwhile."""
_PAUSE_SECONDS = 1.0


class Outage:
    """Of the servers of one stream. ``warn`` is told when it begins and ends; ``clock`` and
    ``sleep``: seconds."""

    def __init__(
        self,
        name: str,
        warn: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._name = name
        self._warn = warn
        self._clock = clock
        self._sleep = sleep
        self._since: float | None = None
        self._ask_at = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether it is too early to ask again."""
        return self._since is not None and self._clock() < self._ask_at

    def ask(self, question: Callable[[], T]) -> T | None:
        """The answer; None as long as servers are away. Raises UnavailableError when they are away
        for too long."""
        begun = self._clock()
        try:
            answer = question()
        except UnavailableError as error:
            self._failed(error, begun)
            return None
        self._over()
        return answer

    def wait(self, question: Callable[[], T]) -> T:
        """The answer, as soon as servers have one. Raises as ``ask``, after a shorter time."""
        first = self._clock()
        while True:
            begun = self._clock()
            try:
                answer = question()
            except UnavailableError as error:
                if self._clock() - first >= _BATCH_SECONDS:
                    raise
                self._failed(error, begun)
            else:
                self._over()
                return answer
            self._sleep(_PAUSE_SECONDS)

    def _failed(self, error: UnavailableError, begun: float) -> None:
        now = self._clock()
        if self._since is None:
            self._since = begun
            self._warn(f"the stream of {self._name} waits for its servers: {error}")
        if now - self._since >= _LONGEST_SECONDS:
            raise error
        self._ask_at = now + _PAUSE_SECONDS

    def _over(self) -> None:
        if self._since is not None:
            self._warn(f"the stream of {self._name} goes on: its servers answer again")
            self._since = None
