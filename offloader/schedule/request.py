"""A request to the scheduler to offload one topic now, with progress and a result."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from offloader.model import Committed, listener
from reader.model import Topic


@dataclass(frozen=True, slots=True)
class RequestProgress:
    """How far a request is. ``tasks`` of the Spark job that its ledgers are in: (done, all)."""

    state: str
    tasks: tuple[int, int]
    committed: tuple[Committed, ...]


@dataclass(frozen=True, slots=True)
class RequestResult:
    """Everything that was asked for is in the table, in these commits (none: it was before)."""

    topic: Topic
    committed: tuple[Committed, ...]


class Request:
    """Thread-safe. Made by ``Scheduler.request``; ``now``: not only what is due."""

    def __init__(self, topic: Topic, *, now: bool) -> None:
        self.topic = topic
        self.now = now
        self._lock = threading.Lock()
        self._tasks = (0, 0)
        self._committed: tuple[Committed, ...] = ()
        self._future: Future[RequestResult] = Future()
        self._listeners: dict[object, Callable[[], None]] = {}

    def result(self, timeout: float | None = None) -> RequestResult:
        """Wait for the end, for at most ``timeout`` seconds (None: without a limit).

        Raises what the turn failed with, or TimeoutError; StoppedError if the offloader was stopped
        before that.
        """
        return self._future.result(timeout)

    @property
    def done(self) -> bool:
        """Whether ``result`` returns, or raises, at once."""
        return self._future.done()

    def when_done(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call ``tell`` once it is done, in any thread; at once if it is done already.

        Returns what takes that back, for whoever stops waiting.
        """
        key, tell = object(), listener(tell)
        with self._lock:
            done = self.done
            if not done:
                self._listeners[key] = tell

        def forget() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        if done:
            tell()
        return forget

    @property
    def progress(self) -> RequestProgress:
        """How far it is, now: ``waiting``, ``running`` or ``done``."""
        with self._lock:
            running = self._tasks != (0, 0) or bool(self._committed)
            state = "done" if self.done else "running" if running else "waiting"
            return RequestProgress(state, self._tasks, self._committed)

    # -- the scheduler's side ------------------------------------------------------------------

    def moved(self, done: int, total: int) -> None:
        with self._lock:
            self._tasks = done, total

    def add(self, committed: Committed) -> None:
        with self._lock:
            self._committed += (committed,)

    def finish(self) -> None:
        self._future.set_result(RequestResult(self.topic, self._committed))
        self._tell()

    def fail(self, error: BaseException) -> None:
        self._future.set_exception(error)
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            listeners, self._listeners = self._listeners, {}
        for tell in listeners.values():
            tell()
