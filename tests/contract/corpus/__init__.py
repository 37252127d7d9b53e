"""The corpus: a topic for every kind of message, published once, and read by every reader.

    topics         the kinds: how each is published
    all_kinds      `KINDS`: all of these
    world          publishes all kinds, seals and offloads them
    readers        sources, queries, streams and Iceberg, each of which reads all topics
    spark_readers  one query and one streaming query over all topics
    comparison     a topic's rows beside what was published and what the Java client reads
    readings       what all readers gave in one state, compared

A kind publishes in parts. Each part has ledgers of its own: all topics are sealed between two
parts, and the last part stays in an open ledger until everything is sealed.

`test_readers` reads the topics in four states: hot, after the first part is offloaded, after all
parts are offloaded, and after Pulsar's own tiered storage has taken all ledgers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.contract.java import raw_value
from tests.contract.rows import Key, Row

__all__ = ["Kind", "Payload", "Place", "Publish"]

Payload = Callable[[Json], Row]
"""The payload columns of a message that the Java client read, and other columns that the client
does not know."""


@dataclass
class Place:
    """A topic to publish to, the clients that do it, and what is known of the rows.

    public: public keys by name, of which the readers of `keyed` kinds have the private ones.
    known: columns of rows that the kind itself knows; they win over those of the Java client.
    strays: rows of chunks that the Java client does not show.
    """

    topic: str
    oracle: Oracle
    client: Any
    admin: Admin
    public: Mapping[str, str]
    known: dict[Key, Row] = field(default_factory=dict)
    strays: list[Key] = field(default_factory=list)

    def write(
        self, messages: Sequence[Json], schema: Json | None = None, **options: Any
    ) -> list[Key]:
        """Send with one producer of the Java client; the keys of the rows."""
        ids = self.oracle.write(self.topic, messages, schema, **options)
        return [(partition, ledger, entry, batch) for ledger, entry, partition, batch in ids]


Publish = Callable[[Place], Iterator[None]]
"""Publishes the first part, and one more part after each `yield`."""


@dataclass(frozen=True)
class Kind:
    """One topic of the corpus.

    rows: how many messages the Java client reads.
    publish: publishes the topic.
    payload: the columns that the Java client's message must have.
    config: which settings read it: "plain", "keyed", or "stored", which offloads plaintext.
    unread: readers that cannot give it.
    schema: what the Java client reads by, where its AUTO_CONSUME cannot.
    halves: whether its first part is in sealed ledgers, so that it can be offloaded alone.
    twice: whether it is also offloaded through the broker.
    """

    name: str
    rows: int
    publish: Publish
    payload: Payload = raw_value
    partitions: int = 0
    config: str = "plain"
    unread: frozenset[str] = frozenset()
    schema: Json | None = None
    halves: bool = False
    twice: bool = False
