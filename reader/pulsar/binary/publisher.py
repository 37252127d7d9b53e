"""Producers on the brokers' connections, opened where each topic is served."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition, SchemaInfo
from reader.pulsar.binary import commands
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.producer import Producer
from reader.pulsar.binary.replies import Failed, SchemaFound
from reader.pulsar.binary.topic_lookup import BrokerConnections

__all__ = ["Publisher", "TopicSchema"]

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_MOST_MEANWHILE = 1 << 20


class TopicSchema:
    """The newest version of a topic's schema.

    ``message``: as the broker writes it, to be given back by producers. ``version``: as messages
    name it.
    """

    __slots__ = ("info", "message", "version")

    def __init__(self, info: SchemaInfo, message: bytes, version: bytes) -> None:
        self.info = info
        self.message = message
        self.version = version


class Publisher(Closing):
    """Opens producers and keeps connections; for one thread; a context manager.

    In a forked child it does nothing, as its connections are its parent's. ``clock``, ``sleep``:
    seconds, monotonic.
    """

    def __init__(
        self,
        config: PulsarConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._timeout = config.timeout.total_seconds()
        self._clock = clock
        self._sleep = sleep
        self._process = os.getpid()
        self._connections = BrokerConnections(config, clock=clock)

    def close(self) -> None:
        """Close all connections, and with them the producers."""
        if self._process == os.getpid():
            self._connections.close()

    def resume(self) -> None:
        """To be called before it is used again after a while, as ``BrokerClient.resume``."""
        self._connections.resume(_MOST_MEANWHILE)

    def producer(
        self,
        partition: Partition,
        *,
        name: str | None = None,
        schema: bytes | None = None,
        encrypted: bool = False,
        seconds: float | None = None,
    ) -> Producer:
        """An open producer; ``Producer`` says of what.

        ``seconds``: how long to try, ``pulsar.timeout`` by default: while no broker serves the
        topic, or another producer has the name. Raises NotFoundError (no such topic),
        ConfigurationError (permission, schema, a terminated topic) and UnavailableError.
        """

        def open_one(deadline: float) -> Producer:
            served = self._connections.served(partition.full_name, deadline)
            return Producer(
                self._connections.connection(served, deadline, entries=True),
                partition,
                name=name,
                schema=schema,
                encrypted=encrypted,
                deadline=min(deadline, self._clock() + self._timeout),
                timeout=self._timeout,
                clock=self._clock,
            )

        return self._persistently(open_one, seconds or self._timeout)

    def schema(self, partition: Partition) -> TopicSchema | None:
        """The topic's newest schema; None where it has none. Raises as ``producer``."""

        def ask(deadline: float) -> TopicSchema | None:
            served = self._connections.served(partition.full_name, deadline)
            connection = self._connections.connection(served, deadline, entries=False)
            number = connection.next_number()
            asked = commands.get_schema(number, partition.topic.full_name, None)
            answer = connection.request(number, asked, deadline)
            if isinstance(answer, SchemaFound):
                return TopicSchema(answer.schema, answer.message, answer.version)
            if not isinstance(answer, Failed):
                raise connection.wrong_answer()
            error = refusal(answer.error, answer.text, f"the schema of {partition}")
            if isinstance(error, NotFoundError):
                return None
            raise error

        return self._persistently(ask, self._timeout)

    def most_bytes(self, partition: Partition) -> int:
        """Of an entry, as the partition's broker takes it. Raises as ``producer``."""

        def ask(deadline: float) -> int:
            served = self._connections.served(partition.full_name, deadline)
            return self._connections.connection(served, deadline, entries=False).most_bytes

        return self._persistently(ask, self._timeout)

    def _persistently(self, ask: Callable[[float], T], seconds: float) -> T:
        deadline, pause = self._clock() + seconds, _FIRST_PAUSE
        while True:
            try:
                return ask(deadline)
            except UnavailableError:
                self._connections.drop_broken()
                if self._clock() + pause >= deadline:
                    raise
            except PulsarLakeError:
                self._connections.drop_broken()
                raise
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
