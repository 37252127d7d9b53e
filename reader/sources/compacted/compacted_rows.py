"""The rows of a partition's compacted ledger."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from reader.decode import NO_CHUNKS, ChunkSequence
from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import BEFORE_ALL, EntryBlock, Position, TransactionId
from reader.plan import CompactedPart
from reader.pulsar import CompactedLedger
from reader.sources.compacted.raw_messages import unwrapped
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from reader.sources.source_clients import SourceClients


def read_compacted(
    clients: SourceClients, part: CompactedPart, rows: RowFormat
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ledgers below ``part.before`` that compaction has kept, by position.

    Compaction leaves out a key's message if a later one follows, and a deleted key. So of two
    compacted ledgers that both serve the snapshot, either gives the same view to a query that reads
    all ledgers from ``before`` on as well. If Pulsar replaces the ledger meanwhile, the newer one
    is read from where this one ended.
    Raises NotFoundError if the snapshot's compacted ledger is gone, and the one in its place has
    messages behind the snapshot's end; UnavailableError if no server answers; CorruptError if an
    entry is not what compaction writes.
    """
    builder = RowBuilder(part.partition, rows)
    decryption = clients.decryption(part.partition.topic)
    for block in _entries(clients, part):
        decoder = builder.entry_decoder(
            _NothingElse(), decryption=decryption, rescue_incomplete=True
        )
        for messages in decoder.decode(block):
            yield from builder.build(messages)


def _entries(clients: SourceClients, part: CompactedPart) -> Iterator[EntryBlock]:
    """The entries of ledgers below ``part.before``, in blocks of one ledger each, by position."""
    reached, previous = BEFORE_ALL, None
    while True:
        ledger = _ledger(part, clients.admin.compacted(part.partition))
        try:
            for block in _read(clients, ledger):
                for found in unwrapped(block, reached):
                    if found.ledger_id >= part.before:
                        return
                    reached = Position(found.ledger_id, int(found.entry_ids[-1]))
                    yield found
            return
        except NotFoundError as error:
            if ledger.ledger_id == previous:
                raise NotFoundError(
                    f"compacted ledger {previous} of {part.partition} is gone, and no other one "
                    f"ends at {part.end} or before, as the query's snapshot does",
                    hint="Pulsar has compacted what was published since: make the query anew",
                ) from error
            previous = ledger.ledger_id


def _ledger(part: CompactedPart, newest: CompactedLedger | None) -> CompactedLedger:
    """Return the compacted ledger to read: the newest one, or the snapshot's own.

    Pulsar may have deleted that. Bookies keep its entries for a while, mostly for long enough.
    """
    serving = newest is not None and part.serves(newest)
    for ledger in (newest, part.ledger) if serving else (part.ledger,):
        if ledger is not None and ledger.metadata is not None:
            return ledger
    if serving:
        raise UnavailableError(
            f"Pulsar does not show the compacted ledger of {part.partition}",
            hint="its bookies do not answer, or it is about to be replaced: try again",
        )
    raise NotFoundError(
        f"the compacted ledger of {part.partition} ends behind the query's snapshot",
        hint="Pulsar has compacted what was published since: make the query anew",
    )


def _read(clients: SourceClients, ledger: CompactedLedger) -> Iterator[EntryBlock]:
    assert ledger.metadata is not None
    last = ledger.metadata.last_entry if ledger.metadata.closed else ledger.entries - 1
    with clients.bookies() as client, closing(client.read(ledger.metadata, 0, last)) as blocks:
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
