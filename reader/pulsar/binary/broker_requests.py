"""What those who talk to brokers share: connections, and requests until they are answered."""

import os
import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.schema_messages import SchemaFound, schema_found
from reader.pulsar.binary.topic_lookup import BrokerConnections
from reader.wire.pulsar_pb2 import CommandGetSchema, CommandGetSchemaResponse

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class BrokerRequests(Closing):
    """For one thread; a context manager. ``clock``, ``sleep``: seconds, monotonic.

    In a forked child it does nothing, as its connections are its parent's. ``MOST_MEANWHILE``:
    bytes that may have come while it was idle, before its connection is not worth reading.
    """

    MOST_MEANWHILE: ClassVar[int]

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
        """Close all connections, and with them what was opened through them."""
        if self._process == os.getpid():
            self._connections.close()

    def resume(self) -> None:
        """To be called before it is used again after a while.

        Answers what brokers asked meanwhile; closes connections that ended, or were opened with a
        token or certificate that was rotated. Raises as ``current_identity``.
        """
        self._connections.resume(self.MOST_MEANWHILE)

    def _schema(self, partition: Partition, version: bytes | None) -> SchemaFound | None:
        """A version of the topic's schema, as messages name it; None: the newest.

        None where there is no such. Raises as ``BrokerClient.read``.
        """

        def ask(deadline: float) -> SchemaFound | None:
            # Any broker knows; the topic's own is asked as the others may be without permission.
            topic = partition.topic.full_name
            served = self._connections.served(partition.full_name, deadline)
            connection = self._connections.connection(served, deadline, entries=False)
            try:
                response = connection.request(
                    CommandGetSchema(topic=topic, schema_version=version),
                    CommandGetSchemaResponse,
                    deadline,
                    lambda failed: refusal(failed, f"the schema of {partition}"),
                )
            except NotFoundError:
                return None
            return schema_found(response)

        return self._persistently(ask)

    def _persistently(self, ask: Callable[[float], T], seconds: float | None = None) -> T:
        """What ``ask`` gives, again and again until then; ``seconds``: ``pulsar.timeout``."""
        deadline, pause = self._clock() + (seconds or self._timeout), FIRST_PAUSE
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
            pause = min(2 * pause, LONGEST_PAUSE)
