"""A Pulsar in memory: topics, ledgers, cursors, transactions; what deletes messages."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from testbed.simulation.clock import Clock, HostClock
from testbed.simulation.entry_bytes import marker_entry, message_entry, stamped
from testbed.simulation.evolving_schema import SchemaRegistry
from testbed.simulation.ledgers import Entry, Ledger, ManagedLedger, Position

HOLD = "pulsar-lake"
_MOST_BITS = 1


@dataclass(slots=True, eq=False)
class SimulatedTopic:
    """``count``: of its partitions; 0: it has none, and one managed ledger of index -1.

    ``gone``: earlier ones of the same name, and what a restore has undone. ``properties``: of the
    topic. ``migrated``: whether it became a scalable topic of Pulsar 5.
    """

    name: str
    count: int
    parts: dict[int, ManagedLedger] = field(default_factory=dict)
    gone: list[ManagedLedger] = field(default_factory=list)
    schema: SchemaRegistry = field(default_factory=SchemaRegistry)
    properties: dict[str, str] = field(default_factory=dict)
    migrated: bool = False


class ClusterState:
    """``deleted`` is told of each ledger with entries that Pulsar deletes, and why; ``unloaded``
    of each partition that another broker loads.

    ``clock``: the true one; ``brokers_clock``: what brokers stamp with. ``bookie``: the address of
    the bookie that has all ledgers.
    """

    def __init__(self, clock: Clock, *, broker_times: bool, transactions: bool) -> None:
        self.clock = clock
        self.brokers_clock = HostClock(clock)
        self.broker_times = broker_times
        self.transactions = transactions
        self.topics: dict[str, SimulatedTopic] = {}
        self.next_ledger = 5
        self._since_ms = clock.now_ms
        self.made = 0
        self.deleted: Callable[[ManagedLedger, Ledger, str], None] = lambda ml, ledger, why: None
        self.unloaded: Callable[[ManagedLedger], None] = lambda ml: None
        self.bookies_down = False
        self.bookie = "bookie-1:3181"
        self._backup: tuple[int, dict[str, dict[int, ManagedLedger]]] | None = None

    # -- topics and ledgers ------------------------------------------------------------------

    def make_topic(self, name: str, count: int) -> SimulatedTopic:
        """Make it, or make it again."""
        before = self.topics.get(name)
        topic = SimulatedTopic(name, count)
        if before:
            topic.gone, topic.schema = before.gone, before.schema
        self.topics[name] = topic
        for index in range(count) if count else (-1,):
            topic.parts[index] = self._managed_ledger(topic, index)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete it, on purpose; ``make_topic`` makes it again."""
        topic = self.topics[name]
        for one in topic.parts.values():
            for ledger in one.listing:
                self._delete(one, ledger, "topic deleted")
        topic.gone += topic.parts.values()
        topic.parts = {}

    def add_partitions(self, name: str, count: int, *, subscriptions: bool) -> None:
        """Of a topic that has partitions.

        ``subscriptions``: Pulsar makes those of the first one there as well, with their
        properties; else its broker stops in between.
        """
        topic = self.topics[name]
        first = topic.parts[0]
        for index in range(topic.count, topic.count + count):
            ml = topic.parts[index] = self._managed_ledger(topic, index)
            if subscriptions:
                ml.cursors = dict.fromkeys(first.cursors, (ml.listing[-1].id, 0))
                ml.properties = {one: dict(noted) for one, noted in first.properties.items()}
                ml.held = HOLD in ml.cursors
        topic.count += count

    def ledger(self, ledger_id: int) -> Ledger | None:
        """What bookies have of that id."""
        parts = (ml for topic in self.topics.values() for ml in topic.parts.values())
        for ml in parts:
            if ml.compacted is not None and ml.compacted.id == ledger_id:
                return ml.compacted
            if (found := ml.get(ledger_id)) is not None:
                return found
        return None

    def _managed_ledger(self, topic: SimulatedTopic, index: int) -> ManagedLedger:
        self.made += 1
        suffix = f"-partition-{index}" if index >= 0 else ""
        found = ManagedLedger(topic.name + suffix, index, self._creation_time())
        found.ledgers.append(self._ledger())
        return found

    def _creation_time(self) -> str:
        """Another one for each managed ledger."""
        at = datetime.fromtimestamp(self._since_ms / 1000, UTC) + timedelta(milliseconds=self.made)
        return at.isoformat(timespec="milliseconds")

    def _ledger(self) -> Ledger:
        self.next_ledger += 1
        return Ledger(self.next_ledger - 1)

    def unload(self, ml: ManagedLedger, recovery_ms: int = 0) -> None:
        """Close the open ledger and open another; an empty one is deleted."""
        last = ml.listing[-1]
        if last.entries:
            last.closed_ms = self.brokers_clock.now_ms
        else:
            last.deleted = True
        ml.ledgers.append(self._ledger())
        ml.added, ml.loads = 0, ml.loads + 1
        if self.transactions:
            ml.recovering_ms = self.clock.now_ms + recovery_ms
        self.unloaded(ml)

    def roll(self, ml: ManagedLedger) -> None:
        """The open ledger is full, if it has an entry: the topic stays loaded."""
        last = ml.listing[-1]
        if last.entries:
            last.closed_ms = self.brokers_clock.now_ms
            ml.ledgers.append(self._ledger())

    # -- messages ----------------------------------------------------------------------------

    def publish(
        self,
        ml: ManagedLedger,
        values: Sequence[bytes | None],
        *,
        batch: bool = False,
        transaction: int | None = None,
        chunk: tuple[bytes, int, int] | None = None,
        total: int = 0,
        schema: int | None = None,
        producer_ahead_ms: int = 0,
        **more: Any,
    ) -> Position:
        """Store one entry. ``total``: bytes of the message that ``chunk`` is of; ``schema``: its
        version; ``producer_ahead_ms``: how far its producer's clock is ahead. ``more``: what else
        ``message_entry`` takes."""
        now = self.clock.now_ms
        if transaction is not None:
            more |= {"txnid_most_bits": _MOST_BITS, "txnid_least_bits": transaction}
        if chunk is not None:
            uuid, number, count = chunk
            more |= {"uuid": uuid, "num_chunks_from_msg": count, "chunk_id": number}
            more |= {"total_chunk_msg_size": total}
        if schema is not None:
            more |= {"schema_version": schema.to_bytes(8, "big")}
        published = now + producer_ahead_ms
        data = message_entry(
            values,
            publish_ms=published,
            broker_ms=self.brokers_clock.now_ms if self.broker_times else None,
            batch=batch,
            **more,
        )
        key = more.get("partition_key")
        entry = Entry(data, tuple(values), now, published, batch, transaction, chunk, key)
        position = self._append(ml, entry)
        if transaction is not None:
            ml.open.setdefault(transaction, position)
        return position

    def store(
        self,
        ml: ManagedLedger,
        data: bytes,
        values: Sequence[bytes | None],
        *,
        producer: str,
        ids: tuple[int, int],
    ) -> Position:
        """Store an entry as a producer has sent it."""
        now = self.clock.now_ms
        if self.broker_times:
            data = stamped(data, self.brokers_clock.now_ms)
        batch = len(values) > 1
        return self._append(
            ml, Entry(data, tuple(values), now, now, batch, producer=producer, ids=ids)
        )

    def keep(self, ml: ManagedLedger, data: bytes) -> Position:
        """Store an entry of which nobody knows what it holds. No time goes by."""
        ledger = ml.listing[-1]
        ledger.entries.append(Entry(data, (data,), self.clock.now_ms, self.clock.now_ms))
        ml.bytes_in += len(data)
        ml.added += 1
        return ledger.id, len(ledger.entries) - 1

    def end_transaction(self, ml: ManagedLedger, transaction: int, *, commit: bool) -> None:
        """Decide it: a marker in the partition."""
        now = self.clock.now_ms
        kind = 21 if commit else 22
        self._append(ml, Entry(marker_entry(kind, _MOST_BITS, transaction, now), (), now, now))
        del ml.open[transaction]
        if not commit:
            ml.aborted.add(transaction)

    def _append(self, ml: ManagedLedger, entry: Entry) -> Position:
        ledger = ml.listing[-1]
        ledger.entries.append(entry)
        ledger.load = ml.loads
        ml.bytes_in += len(entry.data)
        ml.added += 1
        self.clock.advance(1)
        return ledger.id, len(ledger.entries) - 1

    # -- what deletes ------------------------------------------------------------------------

    def trim(self, ml: ManagedLedger, why: str = "trimmed") -> None:
        """Delete closed ledgers that no cursor needs (retention 0)."""
        for one in ml.listing[:-1]:
            if all(at >= (one.id, len(one.entries)) for at in ml.cursors.values()):
                self._delete(ml, one, why)

    def expire_messages(self, ml: ManagedLedger) -> None:
        """A message TTL: every cursor goes past what is closed, and Pulsar trims."""
        last = ml.listing[-1]
        ml.cursors = {name: max(at, (last.id, 0)) for name, at in ml.cursors.items()}
        self.trim(ml, "TTL")

    def delete_hold(self, ml: ManagedLedger) -> None:
        """Somebody unsubscribes, or Pulsar expires the subscription; then it trims."""
        ml.cursors.pop(HOLD, None)
        ml.properties.pop(HOLD, None)
        self.trim(ml, "hold deleted")

    def _delete(self, ml: ManagedLedger, ledger: Ledger, why: str) -> None:
        ledger.deleted = True
        if ledger.entries:
            self.deleted(ml, ledger, why)

    def delete_inactive(self, ml: ManagedLedger) -> bool:
        """A broker deletes an idle partition, as by default, if it has no subscription.

        Whether it did. The topic keeps its number of partitions.
        """
        topic = next(one for one in self.topics.values() if ml in one.parts.values())
        if ml.cursors or not topic.count:
            return False
        for ledger in ml.listing:
            self._delete(ml, ledger, "inactive")
        topic.gone.append(topic.parts.pop(ml.index))
        return True

    def partition(self, name: str) -> ManagedLedger | None:
        """One by its full name; made again if only its topic knows of it, as brokers do for
        producers and consumers."""
        for topic in self.topics.values():
            for index in range(topic.count) if topic.count else (-1,):
                suffix = f"-partition-{index}" if index >= 0 else ""
                if topic.name + suffix == name:
                    if index not in topic.parts and topic.count:
                        topic.parts[index] = self._managed_ledger(topic, index)
                    return topic.parts.get(index)
        return None

    # -- another cluster ---------------------------------------------------------------------

    def backup(self) -> None:
        """Keep the metadata as it is now; the bookies' entries are part of it here."""
        parts = {
            name: {index: deepcopy(ml) for index, ml in topic.parts.items()}
            for name, topic in self.topics.items()
        }
        self._backup = self.next_ledger, parts

    def restore(self) -> bool:
        """Go back to the backup, if there is one: ledger ids are given again."""
        if self._backup is None:
            return False
        self.next_ledger, parts = self._backup
        for name, kept in parts.items():
            topic = self.topics[name]
            topic.gone += topic.parts.values()
            topic.parts = {index: deepcopy(ml) for index, ml in kept.items()}
            topic.count = sum(index >= 0 for index in kept)
            for ml in topic.parts.values():
                ml.restored = True
                self._same_rows(topic, ml)
                last = ml.listing[-1]
                last.closed_ms = self.brokers_clock.now_ms  # recovered
                ml.ledgers.append(self._ledger())
        return True

    def _same_rows(self, topic: SimulatedTopic, ml: ManagedLedger) -> None:
        """What was offloaded since the backup, and is there again, is in the table once."""
        for gone in topic.gone:
            if gone.created != ml.created:
                continue
            gone.restored = True
            ml.overdue |= gone.overdue
            gone.overdue |= ml.overdue
            for ledger in gone.ledgers:
                again = ml.get(ledger.id)
                if again and ledger.cold and len(again.entries) == len(ledger.entries):
                    ledger.cold, again.cold = False, True
                elif (
                    again and ledger.cold and again.entries == ledger.entries[: len(again.entries)]
                ):
                    again.copied = True  # what was written to it since is in the table, too
            for ledger in ml.ledgers:  # of before the backup
                same = next((one for one in gone.ledgers if one.id == ledger.id), None)
                if same and same.cold and ledger.cold:
                    same.cold = False

    def wipe(self) -> None:
        """Another cluster at the same address: the same topics, ids from the beginning."""
        names = {one.name: one.count for one in self.topics.values()}
        for name in names:
            self.delete_topic(name)
        self.next_ledger, self._backup = 5, None
        for name, count in names.items():
            self.make_topic(name, count)
