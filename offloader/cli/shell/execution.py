"""A statement in a thread of its own: the caller's thread draws its progress, and may be
interrupted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Any

from reader.background import in_thread
from reader.errors import PulsarLakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_ext import PulsarLake
    from spark_ext.statement import Progress, Statement

__all__ = ["Execution", "Session"]

_TICK_SECONDS = 0.2
_BATCHES_AHEAD = 4
_PATIENCE_SECONDS = 1.5


class Session:
    """A lake whose Spark is started in the background, and again where its JVM has ended.

    ``open_lake`` is called in the background as well: what it imports takes its time.
    """

    def __init__(self, open_lake: Callable[[], PulsarLake]) -> None:
        self._opened = in_thread(open_lake)
        self._started: Future[Any] | None = None
        # Its errors are raised as well; as log lines they would stand in the middle of a shell.
        logging.getLogger().addFilter(_not_of_py4j)

    @property
    def lake(self) -> PulsarLake:
        """Once it is open. Raises what opening it raises."""
        return self._opened.result()

    def start(self) -> Future[Any]:
        """Begin to start Spark, unless that was done; a start that failed is tried again."""
        found = self._started
        if found is None or (found.done() and found.exception() is not None):
            found = self._started = in_thread(lambda: self.lake.spark)
        return found

    @property
    def ready(self) -> bool:
        """Whether statements run at once."""
        return self._started is not None and self._started.done()

    def lost(self) -> bool:
        """Whether Spark's JVM has ended; then the next statement starts another."""
        started = self._started
        if started is None or not started.done() or started.exception() is not None:
            return False
        if not self.lake.lost():
            return False
        self._started = None
        return True

    def close(self) -> None:
        """Stop Spark; a start that is under way is not waited for."""
        if self._started is not None and self._started.done() and not self._opened.exception():
            self.lake.close()


class Execution:
    """One statement. ``draw`` is called now and then while the caller waits for it.

    An interrupt (KeyboardInterrupt) may come from any method; ``stop`` is called after it.
    """

    def __init__(self, session: Session, text: str, draw: Callable[[Execution], None]) -> None:
        self.session = session
        self.statement: Statement | None = None
        self.begun = time.monotonic()
        self._text = text
        self._draw = draw
        self._items: Queue[Any] = Queue(_BATCHES_AHEAD)
        self._stopped = Event()
        self._watched: Future[None] | None = None
        self._progress: Progress | None = None
        self._done = in_thread(self._work)

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return time.monotonic() - self.begun

    def schema(self) -> pa.Schema:
        """Wait until it is analysed (a command: done). Raises what Spark raises."""
        return self._next()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, after ``schema``. Raises what Spark raises."""
        while (item := self._next()) is not None:
            yield item

    @property
    def progress(self) -> Progress | None:
        """How far it was a moment ago; None where nobody knows yet. Asked for from now on."""
        if self._watched is None and self.statement is not None:
            self._watched = in_thread(self._watch)
        return self._progress

    def stop(self) -> bool:
        """Cancel what is left of it; False if Spark has not let go of it a moment later.

        It runs no job any more in any case.
        """
        self._stopped.set()
        if self._done.done() or self.statement is None:  # over, or Spark is still starting
            return self._done.done()
        with suppress(Exception):  # a JVM that has ended has no jobs either
            in_thread(self.statement.cancel).result(_PATIENCE_SECONDS)
        try:
            self._done.result(_PATIENCE_SECONDS)
        except TimeoutError:
            return False
        return True

    def _next(self) -> Any:
        while True:
            try:
                item = self._items.get(timeout=_TICK_SECONDS)
            except Empty:
                self._draw(self)
                continue
            if isinstance(item, BaseException):
                raise item
            return item

    def _work(self) -> None:
        try:
            self.session.start().result()
            self._refuse_stopped()
            statement = self.statement = self.session.lake.statement(self._text)
            self._refuse_stopped()
            schema = statement.run()
            self._put(schema)
            for batch in statement.batches(schema):
                self._put(batch)
            self._put(None)
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            with suppress(_StoppedError):
                self._put(error)

    def _watch(self) -> None:
        assert self.statement is not None
        while not self._stopped.wait(_TICK_SECONDS):
            self._progress = self.statement.progress()

    def _refuse_stopped(self) -> None:
        if self._stopped.is_set():
            raise _StoppedError("it is not wanted any more")

    def _put(self, item: Any) -> None:
        while True:
            self._refuse_stopped()
            with suppress(Full):
                self._items.put(item, timeout=_TICK_SECONDS)
                return


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


class _StoppedError(PulsarLakeError):
    """Nobody waits for the rest."""
