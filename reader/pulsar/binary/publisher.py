"""Producers on the brokers' connections, opened where each topic is served."""

from reader.model import Partition
from reader.pulsar.binary.broker_requests import BrokerRequests
from reader.pulsar.binary.producer import Producer
from reader.pulsar.binary.schema_messages import SchemaFound


class Publisher(BrokerRequests):
    """Opens producers and keeps connections, as ``BrokerRequests`` has it."""

    MOST_MEANWHILE = 1 << 20

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

        return self._persistently(open_one, seconds)

    def schema(self, partition: Partition) -> SchemaFound | None:
        """The topic's newest schema; None where it has none. Raises as ``producer``."""
        return self._schema(partition, None)

    def most_bytes(self, partition: Partition) -> int:
        """Of an entry, as the partition's broker takes it. Raises as ``producer``."""

        def ask(deadline: float) -> int:
            served = self._connections.served(partition.full_name, deadline)
            return self._connections.connection(served, deadline, entries=False).most_bytes

        return self._persistently(ask)
