"""A producer that keeps publishing while queries run."""

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from testbed.publish import Message

_STEP = 20  # messages between two pauses


class LiveProducer:
    """Publishes `messages`, `total` of them, in a thread, until `finish` is called.

    Each second it publishes a share of the remaining messages, 1 / `seconds`: so some remain,
    however slow the queries are, until `finish` publishes the rest. `send` publishes an iterable
    of messages in order and returns once all have arrived.
    """

    def __init__(
        self,
        messages: Iterator[Message],
        total: int,
        send: Callable[[Iterator[Message]], object],
        seconds: float,
    ) -> None:
        self.given = 0
        """How many messages the producer has taken so far; an upper bound of what has arrived."""
        self._messages = messages
        self._send = send
        self._total = total
        self._seconds = seconds
        self._hurry = threading.Event()
        self._stopped = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="live-producer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped = True
        self._hurry.set()
        self._thread.join(timeout=60)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def finish(self) -> int:
        """Publish the rest as fast as possible and wait for it; how many there were in all."""
        self._hurry.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.given

    def _run(self) -> None:
        try:
            self._send(self._paced())
        except Exception as error:  # noqa: BLE001 - `finish` raises it where it can be seen
            self._error = error

    def _paced(self) -> Iterator[Message]:
        for message in self._messages:
            if self._stopped:
                return
            if self.given % _STEP == 0:
                self._hurry.wait(_STEP * self._seconds / max(1, self._total - self.given))
            self.given += 1
            yield message
