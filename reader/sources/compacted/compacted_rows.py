"""The rows of a partition's compacted ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from reader.decode import NO_CHUNKS, ChunkSequence
from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock, Partition, Position, TransactionId
from reader.pulsar import CompactedLedger
from reader.sources.base import PublishRange
from reader.sources.compacted.raw_messages import unwrapped
from reader.sources.rows import RowBuilder, RowFormat
from reader.sources.source_clients import SourceClients

__all__ = ["read_compacted"]

_BEFORE_ALL = Position(-1, -1)


def read_compacted(
    clients: SourceClients,
    partition: Partition,
    before: int,
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
) -> Iterator[pa.RecordBatch]:
    """The rows of ledgers below ``before`` that compaction has kept, by position.

    Compaction leaves out a key's message where a later one follows, and a deleted key; so of two
    compacted ledgers either serves, for who reads all ledgers from ``before`` on as well. Where
    Pulsar replaces the ledger meanwhile, the newer one is read from where this one ended.
    ``publish_range`` (µs, inclusive) drops entries early.
    Raises NotFoundError where the partition has no compacted ledger any more, UnavailableError
    where nobody answers, CorruptError where an entry is not what compaction writes.
    """
    builder = RowBuilder(partition, rows)
    decryption = clients.decryption(partition.topic)
    for block in _entries(clients, partition, before):
        decoder = builder.entry_decoder(
            _NothingElse(),
            decryption=decryption,
            publish_range=publish_range,
            rescue_incomplete=True,
        )
        for messages in decoder.decode(block):
            yield from builder.build(messages)


def _entries(clients: SourceClients, partition: Partition, before: int) -> Iterator[EntryBlock]:
    """The entries of ledgers below ``before``, in blocks of one ledger each, by position."""
    reached, previous = _BEFORE_ALL, None
    while True:
        ledger = clients.admin.compacted(partition)
        if ledger is None:
            raise NotFoundError(f"partition {partition} has no compacted ledger any more")
        try:
            for block in _read(clients, partition, ledger):
                for found in unwrapped(block, reached):
                    if found.ledger_id >= before:
                        return
                    reached = Position(found.ledger_id, int(found.entry_ids[-1]))
                    yield found
            return
        except NotFoundError:
            if ledger.ledger_id == previous:
                raise
            previous = ledger.ledger_id


def _read(
    clients: SourceClients, partition: Partition, ledger: CompactedLedger
) -> Iterator[EntryBlock]:
    if ledger.metadata is None:
        raise UnavailableError(
            f"Pulsar lists no metadata of compacted ledger {ledger.ledger_id} of {partition}",
            hint="check the metadata store of bookies and brokers",
        )
    last = ledger.metadata.last_entry if ledger.metadata.closed else ledger.entries - 1
    with (
        clients.bookies() as client,
        closing(client.read(ledger.metadata, 0, last)) as blocks,
    ):
        yield from blocks


class _NothingElse:
    """The rest of the partition: compaction wrote only messages of committed transactions."""

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        return ()

    def sequence_before(self, uuid: bytes) -> ChunkSequence:
        return NO_CHUNKS

    def pick(self, ledger: int, entries: Sequence[int]) -> Iterator[EntryBlock]:
        raise CorruptError(f"entry {ledger}:{entries[0]} is not in the compacted ledger")
