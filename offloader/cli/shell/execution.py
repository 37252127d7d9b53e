"""A statement in a thread of its own, so that the caller's thread can be interrupted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Any

from reader.background import in_thread

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_ext import PulsarLake
    from spark_ext.statement import Statement

_PAUSE_SECONDS = 0.2
_BATCHES_AHEAD = 4
_PATIENCE_SECONDS = 1.5


class Session:
    """A lake whose Spark is started in the background, and again if its JVM has ended.

    ``open_lake`` is called in the background as well, because its imports take time.
    """

    def __init__(self, open_lake: Callable[[], PulsarLake]) -> None:
        self._opened = in_thread(open_lake)
        self._started: Future[Any] | None = None
        # Its errors are raised as well; as log lines they would stand in the middle of a shell.
        logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)

    @property
    def lake(self) -> PulsarLake:
        """The lake, once it is open. Raises the error of opening it."""
        return self._opened.result()

    def start(self) -> Future[Any]:
        """Begin to start Spark, unless that was done. A start that failed is tried again."""
        found = self._started
        if found is None or (found.done() and found.exception() is not None):
            found = self._started = in_thread(lambda: self.lake.spark)
        return found

    @property
    def ready(self) -> bool:
        """Whether statements run at once."""
        return self._started is not None and self._started.done()

    def lost(self) -> bool:
        """Return whether Spark's JVM has ended. If so, the next statement starts another."""
        started = self._started
        if started is None or not started.done() or started.exception() is not None:
            return False
        if not self.lake.lost():
            return False
        self._started = None
        return True

    def close(self) -> None:
        """Stop Spark, unless it is still starting."""
        if self.ready and not self._opened.exception():
            self.lake.close()


class Execution:
    """One statement. Any method may raise KeyboardInterrupt; call ``stop`` afterwards."""

    def __init__(self, session: Session, text: str) -> None:
        self.session = session
        self.statement: Statement | None = None
        self._text = text
        self._items: Queue[Any] = Queue(_BATCHES_AHEAD)
        self._stopped = Event()
        self._done = in_thread(self._work)

    def schema(self) -> pa.Schema:
        """Wait until the statement is analysed (a command: done). Raises Spark's errors."""
        return self._next()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, after ``schema``. Raises Spark's errors."""
        while (item := self._next()) is not None:
            yield item

    def stop(self) -> None:
        """Cancel the rest of the statement, and wait a moment until Spark has ended it."""
        self._stopped.set()
        if self._done.done() or self.statement is None:  # over, or Spark is still starting
            return
        with suppress(Exception):  # a JVM that has ended has no jobs either
            in_thread(self.statement.cancel).result(_PATIENCE_SECONDS)
        wait([self._done], _PATIENCE_SECONDS)

    def _next(self) -> Any:
        item = self._items.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def _work(self) -> None:
        try:
            for item in self._steps():
                if not self._put(item):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._put(error)

    def _steps(self) -> Iterator[Any]:
        self.session.start().result()
        statement = self.statement = self.session.lake.statement(self._text)
        if not self._stopped.is_set():  # else ``stop`` may have seen no statement
            schema = statement.run()
            yield schema
            yield from statement.batches(schema)

    def _put(self, item: Any) -> bool:
        """Hand an item over. Return False if nobody waits for it any more."""
        while not self._stopped.is_set():
            with suppress(Full):
                self._items.put(item, timeout=_PAUSE_SECONDS)
                return True
        return False
