"""Reads entries of a topic through its broker, as they are stored."""

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import TypeVar

from reader.config import PulsarConfig
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import EntryBlock, Partition, Position, SchemaInfo
from reader.pulsar.binary.broker_requests import FIRST_PAUSE, LONGEST_PAUSE, BrokerRequests
from reader.pulsar.binary.consumer import Consumer
from reader.pulsar.binary.topic_lookup import Served

T = TypeVar("T")

_RELEASE_SECONDS = 2.0
_MOST_WATCHED = 4096


class BrokerClient(BrokerRequests):
    """A context manager that reads topics through their brokers, for one thread.

    In a forked child it does nothing, because the connections belong to the parent. ``clock``,
    ``sleep``: seconds, monotonic.

    **Memory**: one block beside the yielded one, and 40 bytes an entry. A block has
    ``block_bytes``, at least 64 KiB; for a larger entry, at most twice the size of that entry.
    Entries that the broker sends ahead wait in the sockets. FLOW limits them to a thousand messages
    at first, and then to about 8 MiB, at least 4 messages.
    """

    MOST_MEANWHILE = 64 << 20

    def __init__(
        self,
        config: PulsarConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(config, clock=clock, sleep=sleep)
        self._consumer: Consumer | None = None
        self._served: Served | None = None  # of the consumer
        self._assigned: tuple[Partition, Served] | None = None  # where a topic moves to
        self._watched: dict[Partition, Consumer] = {}  # that are asked for their ends alone

    def close(self) -> None:
        """Close all connections."""
        if self._process == os.getpid():
            self._consumer = None
            self._watched.clear()
        super().close()

    def release(self) -> None:
        """Unsubscribe, so that topics can be deleted. The connections stay open."""
        if self._process != os.getpid():
            return
        consumers = [*self._watched.values(), *([self._consumer] if self._consumer else [])]
        self._watched.clear()
        self._consumer = None
        for one in consumers:
            try:
                one.close(self._clock() + _RELEASE_SECONDS)
            except PulsarLakeError:
                one.connection.close()
        self._connections.drop_broken()

    def read(
        self,
        partition: Partition,
        ledger_id: int,
        first: int,
        last: int,
        *,
        block_bytes: int = 4 << 20,
    ) -> Generator[EntryBlock]:
        """Yield entries first..last (inclusive) that the broker sends, ascending, in blocks.

        Each entry is yielded once, as the stored bytes, with the broker's own metadata before them
        (0x0e02) if the broker exposes it. The broker skips markers, entries of aborted
        transactions, entries at and behind an open transaction, and trimmed ledgers. The range
        ends when the broker answers that no message remains, never by a timeout. The subscription
        of the previous call is reused if it can continue at ``first``, and made again if it was
        moved or lost.

        Raises NotFoundError if the topic does not exist. Raises ConfigurationError for a wrong
        identity, permission or URL. Raises UnavailableError if the broker is silent, or cannot be
        reached again, for ``pulsar.timeout``. Raises CorruptError for malformed frames.
        """
        wanted, deadline, pause = Position(ledger_id, first), self._deadline(), FIRST_PAUSE
        while wanted.entry <= last:
            try:
                consumer = self._consumer_at(partition, wanted, deadline)
                for block in consumer.blocks(wanted, last, block_bytes):
                    wanted = Position(ledger_id, int(block.entry_ids[-1]) + 1)
                    yield block
                    deadline, pause = self._deadline(), FIRST_PAUSE
                return
            except UnavailableError:
                self._give_up()
                if self._clock() + pause >= deadline:
                    raise
            except PulsarLakeError:
                self._give_up()
                raise
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def last_position(self, partition: Partition) -> Position:
        """Return the last entry that a consumer would get now. Entry -1: the topic has no message.

        Markers, and entries of aborted and open transactions, may follow it. Raises as ``read``.
        """
        return self.last_positions([partition])[partition]

    def last_positions(self, partitions: Sequence[Partition]) -> dict[Partition, Position]:
        """Return ``last_position`` of each, requested in parallel. Raises as ``read``."""

        def ask(deadline: float) -> dict[Partition, Position]:
            watched = [self._watching(one, deadline) for one in partitions]
            for one in watched:
                one.ask_last_position()
            found = {}
            for one in watched:
                try:
                    found[one.partition] = one.take_last_position(deadline)
                except PulsarLakeError:
                    self._watched.pop(one.partition, None)
                    with suppress(PulsarLakeError):
                        one.close()  # its connection stays, and so would it
                    raise
            return found

        return self._persistently(ask)

    def locate(self, partition: Partition) -> str:
        """Return the address of the broker that serves the topic, after connecting to it.

        Raises as ``read``; UnavailableError contains the address if the broker does not answer.
        """

        def ask(deadline: float) -> str:
            served = self._connections.served(partition.full_name, deadline)
            try:
                return self._connections.connection(served, deadline, entries=False).name
            except UnavailableError as error:
                raise UnavailableError(
                    f"the lookup of {partition} leads to {served[0]}: {error.message}",
                    hint="that address has to be reachable from here: see the broker's "
                    "advertisedAddress, advertisedListeners",
                ) from error

        return self._persistently(ask)

    def greet(self) -> str:
        """Return the address of a broker of ``service_url``, after connecting to it.

        Raises as ``read``, without a second attempt.
        """
        return self._connections.first(self._deadline()).name

    def schema(self, partition: Partition, version: bytes | None) -> SchemaInfo | None:
        """Return a version of the topic's schema, or None if it does not exist.

        ``version``: as messages name it; None: the newest. Raises as ``read``.
        """

        found = self._schema(partition, version)
        return found.schema if found is not None else None

    def _watching(self, partition: Partition, deadline: float) -> Consumer:
        """Return the subscription that requests the partition's last position."""
        consumer = self._watched.pop(partition, None)
        if consumer is None or not consumer.usable:
            consumer, _ = self._subscribe(partition, None, deadline, entries=False)
        self._watched[partition] = consumer
        while len(self._watched) > _MOST_WATCHED:
            self._watched.pop(next(iter(self._watched))).close()
        return consumer

    # -- consumers -----------------------------------------------------------------------------

    def _consumer_at(self, partition: Partition, wanted: Position, deadline: float) -> Consumer:
        known = self._consumer
        if known is not None and known.goes_on_to(partition, wanted):
            return known
        if known is not None:
            self._consumer = None
            known.close()
        self._consumer, self._served = self._subscribe(partition, wanted, deadline, entries=True)
        return self._consumer

    def _subscribe(
        self, partition: Partition, first: Position | None, deadline: float, *, entries: bool
    ) -> tuple[Consumer, Served]:
        assigned, self._assigned = self._assigned, None
        if assigned is not None and assigned[0] == partition:
            served = assigned[1]
        else:
            served = self._connections.served(partition.full_name, deadline)
        consumer = Consumer(
            self._connections.connection(served, deadline, entries=entries),
            partition,
            first,
            deadline=deadline,
            timeout=self._timeout,
            clock=self._clock,
        )
        return consumer, served

    def _give_up(self) -> None:
        """Drop the consumer and its connection."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            moved = consumer.moved
            if moved is not None and self._served is not None:
                there = self._connections.assigned(
                    self._served, moved.assignedBrokerServiceUrl, moved.assignedBrokerServiceUrlTls
                )
                self._assigned = there and (consumer.partition, there)
            # Its entries may still be on their way, and whatever made it fail.
            consumer.connection.close()
        self._connections.drop_broken()

    def _deadline(self) -> float:
        return self._clock() + self._timeout
